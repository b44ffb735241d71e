"""People, charges and addresses that the ledger's tests share."""

from fractions import Fraction
from pathlib import Path

from core.private.ledger import Charge, Population
from core.releases import Relation, Unit

ROOT = Path(__file__).parents[3]
POSTGRES = "JUSTITIA_TEST_POSTGRES"
TENTH = Fraction(1, 10)


def people(name="people", cap=Fraction(1), **terms):
    return Population(name, Relation.ADD_REMOVE, Unit(), cap, **terms)


def charge(identity, rho=TENTH, what="tree"):
    return Charge(identity, what, rho)


def snapshot(ledger):
    return [(p, ledger.spends(p.name, owner=p.owner)) for p in ledger.populations()]
