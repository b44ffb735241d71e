"""Reading and altering ledgers behind their back, for tests."""

from fractions import Fraction

from sqlalchemy import text

from core.private.ledger import Charge, Ledger, Population, SpendState
from core.releases import Relation, Unit

TENTH = Fraction(1, 10)
#: Tables of the accounts, with a column that orders each.
ACCOUNTS = {
    "justitia_population": "id",
    "justitia_spend": "id",
    "justitia_release": "spend_id",
    "justitia_table": "table_id",
    "justitia_event": "sequence",
}


def people(name="people", cap=Fraction(1), **terms):
    return Population(name, Relation.ADD_REMOVE, Unit(), cap, **terms)


def charge(identity, rho=TENTH, what="tree"):
    return Charge(identity, what, rho)


def content(ledger):
    """Everything that the accounts hold, and what this machine noted of them, byte for byte."""
    with ledger.database.reading(snapshot=True) as connection:
        held = {
            table: [
                tuple(row)
                for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY {order}"))
            ]
            for table, order in ACCOUNTS.items()
        }
    return held, ledger.witness.path.read_bytes()


def alter(ledger, statement, **values):
    """Write to the database as somebody with the password would."""
    with ledger.database._engine.begin() as connection:
        return connection.execute(text(statement), values).rowcount


def filled(url):
    """A ledger with one charge of every kind: done, partial, failed and open, and a changed cap."""
    ledger = Ledger(url)
    ledger.create_population(people(cap=Fraction(2), expected_rows=100))
    ledger.create_population(people("others", owner="anna"))
    ledger.charge("people", [charge("done"), charge("partial"), charge("failed", Fraction(1, 3))])
    ledger.finish("done", b"the release", "TreeRelease", TENTH)
    ledger.charge("others", [charge("hers", Fraction(1))], owner="anna")
    ledger.finish("partial", b"half of it", "TreeRelease", Fraction(1, 20), SpendState.PARTIAL)
    ledger.fail("failed", "the estimator stopped")
    ledger.set_cap("people", Fraction(3, 2))
    ledger.charge("people", [charge("open", Fraction(1, 7))])
    return ledger


SPENT = 2 * TENTH + Fraction(1, 3) + Fraction(1, 7)
