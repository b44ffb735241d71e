"""The chain of events: what it holds, what breaks it, and what this machine remembers of it."""

import hashlib
import json
import os
import stat
import time
from fractions import Fraction

import pytest
from sqlalchemy import text

from core.errors import BudgetExceeded, LedgerError
from core.private.chain import START, chained, following, read_events
from core.private.ledger import Ledger, SpendState
from core.private.ledger_tables import delete_release, spend_rows
from tests.accounting.books import SPENT, TENTH, alter, charge, content, filled, people

# -- what it holds -------------------------------------------------------------------------


def events_of(ledger):
    with ledger.database.reading() as connection:
        return read_events(connection)


def test_every_act_is_one_row_and_follows_from_the_one_before(url):
    ledger = filled(url)
    events = events_of(ledger)
    previous = "0" * 64
    for number, event in enumerate(events, 1):
        plain = f"{number}\n{previous}\n{event.body}".encode()
        assert (event.sequence, event.hash) == (number, hashlib.sha256(plain).hexdigest())
        previous = event.hash
    told = [(event.content["kind"], event.content.get("request_id")) for event in events]
    assert told == [
        ("opened", None),
        ("population", None),
        ("population", None),
        *(("charged", name) for name in ("done", "partial", "failed")),
        ("settled", "done"),
        ("charged", "hers"),
        ("settled", "partial"),
        ("settled", "failed"),
        ("terms", None),
        ("charged", "open"),
    ]
    assert len({event.content["salt"] for event in events}) == len(events)
    report = ledger.verify()
    assert report.intact
    assert (report.rows, report.head, report.broken_at) == (len(events), previous, None)
    assert report.words == f"chain intact: 12 rows, the last one {previous[:16]}"


def test_what_changes_nothing_writes_nothing(url):
    ledger = filled(url)
    before = content(ledger)
    ledger.create_population(people(cap=Fraction(9)))
    ledger.set_cap("people", Fraction(3, 2))
    ledger.charge("people", [charge("done"), charge("open", Fraction(1, 7))])
    ledger.recover()
    ledger.verify()
    refused = [
        (BudgetExceeded, lambda: ledger.charge("people", [charge("a"), charge("b", Fraction(9))])),
        (LedgerError, lambda: ledger.charge("people", [charge("a"), charge("a")])),
        (LedgerError, lambda: ledger.charge("people", [charge("hers", Fraction(1))])),
        (LedgerError, lambda: ledger.charge("nobody", [charge("a")])),
        (LedgerError, lambda: ledger.finish("done", b"again", "K", TENTH)),
        (LedgerError, lambda: ledger.finish("open", b"x", "K", Fraction(1))),
        (LedgerError, lambda: ledger.fail("failed", "again")),
        (LedgerError, lambda: ledger.set_cap("people", TENTH)),
    ]
    for error, act in refused:
        with pytest.raises(error):
            act()
    Ledger(url).close()
    assert content(ledger) == before


def test_a_published_hash_tells_nothing_and_is_found_again(url):
    ledger = filled(url)
    head = ledger.chain_head(["done", "failed"])
    assert ledger.has_event(head)
    assert not ledger.has_event("0" * 64)
    assert ledger.chain_head([]) is None
    ledger.charge("people", [charge("later")])
    assert ledger.chain_head(["done", "failed"]) == head  # the same in a replay
    # The same content hashes to something else: nobody can try out moments until one fits.
    same = {"kind": "charged", "created_at": "2026-01-01T00:00:00+00:00"}
    assert following(None, same).hash != following(None, same).hash


def test_verifying_takes_as_long_as_the_chain(tmp_path):
    """Four times the rows take about four times as long, not sixteen."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    ledger.create_population(people(cap=Fraction(10_000)))

    def seconds(upto):
        have = len(ledger.spends("people"))
        ledger.charge("people", [charge(str(number)) for number in range(have, upto)])
        taken = []
        for _ in range(3):
            start = time.process_time()
            assert ledger.verify().intact
            taken.append(time.process_time() - start)
        return min(taken)

    short, long = seconds(500), seconds(2000)
    assert long < 8 * short


# -- what breaks it ------------------------------------------------------------------------

FORGED = {
    "rho": "1/1000",
    "what": "another",
    "created_at": "2001-01-01T00:00:00+00:00",
    "state": "spent, no result",
    "debited": "1/1000",
    "finished_at": "2001-01-01T00:00:00+00:00",
    "release_kind": "Other",
    "release_sha256": "f" * 64,
    "message": "nothing happened",
    "host": "elsewhere",
    "pid": 4,
    "process_start": "never",
    "request_id": "another",
    "population_id": 2,
}


def test_the_forgeries_cover_every_column_of_a_spend():
    assert set(FORGED) == {column.name for column in spend_rows.columns} - {"id"}


@pytest.mark.parametrize("column", FORGED)
def test_every_changed_cell_of_a_spend_is_found_and_mended(tmp_path, column):
    ledger = filled(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    before = ledger.spends("people")
    statement = f"UPDATE justitia_spend SET {column} = :new WHERE request_id = 'done'"
    assert alter(ledger, statement, new=FORGED[column]) == 1
    report = ledger.verify()
    assert not report.intact
    assert report.broken_at == 4
    assert "row 4 (done)" in report.words
    assert "--mend" in report.words
    ledger.mend()
    if column != "request_id":  # a charge under another name is one more charge
        assert ledger.spends("people") == before
        assert ledger.verify().intact
    assert ledger.spent("people") >= SPENT


POPULATION = {
    "cap": "1000/1",
    "relation": "replace_one",
    "unit_rows": 5,
    "unit_person_column": "id",
    "delta": 0.5,
    "simulated": True,
    "expected_rows": 7,
    "name": "nobody",
}


@pytest.mark.parametrize("column", POPULATION)
def test_every_changed_term_of_a_population_is_found(url, column):
    ledger = filled(url)
    statement = f"UPDATE justitia_population SET {column} = :new WHERE name = 'people'"
    assert alter(ledger, statement, new=POPULATION[column]) == 1
    report = ledger.verify()
    assert not report.intact
    assert report.broken_at == 2
    assert "people" not in report.words  # other owners read this line too


@pytest.mark.parametrize(
    ("statement", "row", "words"),
    [
        ("UPDATE justitia_event SET body = replace(body, '1/3', '1/9')", 6, "row 5"),
        ("UPDATE justitia_event SET hash = '{zeros}' WHERE sequence = 6", 6, "changed"),
        ("UPDATE justitia_event SET subject = 'x' WHERE sequence = 6", 6, "another request"),
        ("DELETE FROM justitia_event WHERE sequence = 6", 6, "missing"),
        ("DELETE FROM justitia_event WHERE sequence = 1", 1, "missing"),
        ("DELETE FROM justitia_event WHERE sequence = 12", 13 - 1, "older copy"),
        ("DELETE FROM justitia_event", 1, "all rows are missing"),
        ("UPDATE justitia_event SET sequence = 99 WHERE sequence = 6", 6, "missing"),
        ("DELETE FROM justitia_spend WHERE request_id = 'open'", 12, "missing"),
        ("DELETE FROM justitia_release", 7, "missing"),
        ("UPDATE justitia_release SET blob = x'00'", 7, "not the one that was stored"),
        ("UPDATE justitia_release SET blob = 'text'", 7, "not the one that was stored"),
    ],
)  # fmt: skip
def test_every_changed_row_is_named(tmp_path, statement, row, words):
    ledger = filled(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    assert alter(ledger, statement.format(zeros="0" * 64)) >= 1
    report = ledger.verify()
    assert (report.intact, report.broken_at) == (False, row)
    assert words in report.words
    assert f"row {row}" in report.words or "request" in report.words


def rewrite(ledger, change):
    """Recompute the whole chain after a change, as somebody with the program would."""
    events, previous = events_of(ledger), START
    for event in events:
        body = json.dumps(change(event.content), sort_keys=True, separators=(",", ":"))
        previous = chained(event.sequence, previous, body)
        alter(
            ledger,
            "UPDATE justitia_event SET body = :body, hash = :hash WHERE sequence = :row",
            body=body,
            hash=previous,
            row=event.sequence,
        )


def cheaper(body):
    return (
        {**body, "rho": "1/1000"} if body.get("request_id") == "failed" and "rho" in body else body
    )


def test_a_chain_recomputed_from_the_start_is_found_by_this_machines_memory(url):
    ledger = filled(url)
    rewrite(ledger, cheaper)
    alter(ledger, "UPDATE justitia_spend SET rho = '1/1000' WHERE request_id = 'failed'")
    report = ledger.verify()
    assert (report.intact, report.broken_at) == (False, 6)
    assert "rewritten" in report.words
    before = content(ledger)
    with pytest.raises(LedgerError, match="rewritten"):
        ledger.charge("people", [charge("new")])
    with pytest.raises(LedgerError, match="rewritten"):
        ledger.finish("open", b"x", "K", TENTH)
    with pytest.raises(LedgerError, match="rewritten"):
        ledger.mend()
    assert content(ledger) == before
    again = Ledger(url)  # it opens, so that it can be looked at
    assert "rewritten" in again.trouble
    assert len(again.spends("people")) == 4
    # The machine's memory is what finds it: in itself the forgery is in perfect order.
    ledger.witness.path.rename(ledger.witness.path.with_suffix(".away"))
    assert Ledger(url).verify().intact


def third(**changes):
    """Changes the charge of 1/3."""
    return lambda body: {**body, **changes} if body.get("rho") == "1/3" else body


def term(**changes):
    """Changes what the change of a cap changed."""
    return lambda body: {**body, "changes": changes} if "changes" in body else body


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (third(rho="2/1"), "passes"),
        (third(rho="-1/3"), "nothing"),
        (third(kind="gift"), "kind"),
        (third(name="x"), "population"),
        (third(request_id="done"), "before"),
        (third(kind="settled", request_id="done"), "incomplete"),
        (third(kind="opened"), "begins"),
        (third(kind="population", name="people"), "there already"),
        (third(kind="removed", request_id="partial"), "never was"),
        (third(kind="lost", request_id="nobody"), "no row before it"),
        (term(cap="1/9"), "lowers"),
        (term(unit_rows=9), "fixed"),
        (lambda body: {"kind": body["kind"]}, "incomplete"),
    ],
)
def test_a_consistent_chain_of_impossible_events_is_refused(tmp_path, change, words):
    ledger = filled(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    rewrite(ledger, change)
    report = ledger.verify()
    assert not report.intact
    assert words in report.words


# -- what this machine remembers -----------------------------------------------------------


def test_the_witness_is_for_its_owner_only_and_holds_every_row(url):
    ledger = filled(url)
    assert [(e.sequence, e.hash) for e in ledger.witness.seen()] == [
        (e.sequence, e.hash) for e in events_of(ledger)
    ]
    if os.name == "posix":
        assert stat.S_IMODE(ledger.witness.path.stat().st_mode) == 0o600


def test_a_torn_line_and_a_lost_tail_are_noted_again(url):
    ledger = filled(url)
    whole = ledger.witness.path.read_bytes()
    for kept in (len(whole) - 100, len(whole) - 2000, 3, 0):
        ledger.witness.path.write_bytes(whole[:kept])
        assert ledger.verify().intact
        ledger.charge("people", [charge(f"after {kept}", Fraction(1, 100))])
        assert len(ledger.witness.seen()) == len(events_of(ledger))
        whole = ledger.witness.path.read_bytes()
    ledger.witness.path.unlink()
    Ledger(url).close()
    assert len(ledger.witness.seen()) == len(events_of(ledger))


def test_nothing_is_charged_where_the_witness_cannot_be_written(url):
    ledger = filled(url)
    path = ledger.witness.path
    path.rename(path.with_suffix(".away"))
    path.mkdir()
    with pytest.raises(LedgerError, match="witness file"):
        ledger.charge("people", [charge("new")])
    assert ledger.spend("new") is None
    assert ledger.spent("people") == SPENT


def test_a_charge_stands_when_the_witness_fails_after_it(url, monkeypatch, caplog):
    ledger = filled(url)
    with monkeypatch.context() as patch:
        patch.setattr(type(ledger.witness), "note", lambda self, events: broken())
        ((_, fresh),) = ledger.charge("people", [charge("new")])
    assert fresh
    assert "disk" in caplog.text
    assert len(ledger.witness.seen()) == 12
    ledger.fail("new", "no")
    assert len(ledger.witness.seen()) == 14


def broken():
    raise LedgerError("the disk is full")


def test_a_server_that_lost_its_ledger_is_not_taken_for_a_new_one(postgres_url):
    filled(postgres_url).close()
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    with pytest.raises(LedgerError, match="gone or empty"):
        Ledger(postgres_url)


# -- deleted on purpose --------------------------------------------------------------------


def test_a_release_deleted_on_purpose_is_in_the_chain_and_stays_deleted(url):
    ledger = filled(url)
    with ledger.database.reading() as connection:
        query = text("SELECT id, blob FROM justitia_spend JOIN justitia_release ON spend_id = id "
                     "WHERE request_id = 'done'")  # fmt: skip
        row = connection.execute(query).one()
    with ledger.writing() as book:
        delete_release(book, row.id, "done")
    assert ledger.verify().intact
    assert ledger.spend("done").state is SpendState.DONE
    assert ledger.spent("people") == SPENT
    alter(ledger, "INSERT INTO justitia_release VALUES (:id, :blob)", id=row.id, blob=row.blob)
    assert "is there again" in ledger.verify().words
    ledger.mend()
    assert ledger.release_blob("done") is None
    assert ledger.verify().intact
