"""What a release costs and to whom it belongs does not hang on a row."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import core.measuring
import core.runner
from core.__main__ import main
from core.attachment import attach
from core.errors import JustitiaError, LedgerError, SchemaError
from core.parts import request_id
from core.plan import ReadingPlan, TreePlan
from core.private.coding import encode
from core.private.ledger import Ledger, SpendState
from core.private.raw import RawTable, ReadingReport
from core.private.reading import read_table
from core.privci.select import release_tree
from core.releases import PairReference, Relation, Unit
from core.roles import Role, Roles
from core.schema import Schema
from tests.privacy.canaries import (
    PEOPLE,
    ROLES,
    ROOT,
    SCHEMA,
    failing_run,
    frame,
    plan,
    spends,
    write,
)
from tests.privacy.replay import Recorder, Violation, check_neighbours, make_grant

FORKED = """
import os
from fractions import Fraction
from core.errors import BudgetExceeded
from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from tests.privacy.canaries import PEOPLE, frame, plan
from tests.privacy.replay import Recorder, make_grant
raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
grant = make_grant(
    encode(raw, plan().released, unit=PEOPLE, key=b"k"), Recorder(), rho=Fraction(1)
)
child = os.fork()
if child == 0:
    try:
        grant.counts([("sex",)], Fraction(1))
    except BudgetExceeded:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert grant.debited == 0
grant.counts([("sex",)], Fraction(1))
try:
    grant.counts([("sex",)], Fraction(1))
except BudgetExceeded:
    print("refused")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_cannot_spend_a_grant_again():
    # A process of its own: forking one in which other tests started threads may hang.
    done = subprocess.run(
        [sys.executable, "-c", FORKED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "refused"


def test_a_reference_beyond_the_integers_is_refused_before_it_costs_anything():
    raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
    grant = make_grant(encode(raw, plan().released, unit=PEOPLE, key=b"k"), Recorder())
    for high in (1e300, 2.0**20, -1e300):
        shares = {"sex": np.full(4, high), "job": np.full(4, 0.25)}
        with pytest.raises(SchemaError):
            grant.score_pairs([("job", "sex")], PairReference(1.0, shares), Fraction(1, 2))
        with pytest.raises(SchemaError):
            grant.select_pair([("job", "sex")], PairReference(1.0, shares), Fraction(1, 2))
    assert grant.debited == 0


PAID = {
    "rho": lambda p: replace(p, tree=replace(p.tree, rho=Fraction(1, 3))),
    "structure": lambda p: replace(p, tree=replace(p.tree, structure="mst")),
    "split": lambda p: replace(p, tree=TreePlan(p.tree.rho, split=(Fraction(1, 2),) * 2 + (1,))),
    "population": lambda p: replace(p, population=replace(p.population, name="others")),
    "relation": lambda p: replace(
        p, population=replace(p.population, unit=Unit(), relation=Relation.REPLACE_ONE)
    ),
    "unit": lambda p: replace(p, population=replace(p.population, unit=Unit(3, "person"))),
    "roles": lambda p: replace(p, roles=replace(p.roles, proxies=frozenset({"age"}))),
    "ignored": lambda p: replace(p, roles=Roles({**ROLES.by_column, "pay": Role.IGNORE})),
    "schema": lambda p: replace(
        p, schema=Schema((*SCHEMA.columns[:3], replace(SCHEMA["age"], bins=5), *SCHEMA.columns[4:]))
    ),
}


@pytest.mark.parametrize("setting", sorted(PAID))
def test_every_setting_that_changes_a_release_changes_its_id(setting):
    assert request_id(plan(), "t") != request_id(PAID[setting](plan()), "t")


def test_the_table_and_the_attempt_change_the_id_and_free_settings_do_not():
    known = {request_id(plan(), "t"), request_id(plan(), "u"), request_id(plan(), "t", 2)}
    assert len(known) == 3
    free = replace(plan(), synthetic=replace(plan().synthetic, seed=5, rows=3))
    assert request_id(free, "t") == request_id(plan(), "t")


def people(rows):
    return read_table(("person,sex,job\n" + "\n".join(rows) + "\n").encode(), name="people.csv")


SMALL = SCHEMA.select(("person", "sex", "job"))
SMALL_ROLES = Roles({"sex": Role.PROTECTED, "job": Role.OUTCOME})


def small_tree(grant):
    return release_tree(grant, SMALL.select(("sex", "job")), SMALL_ROLES)


def test_the_row_count_of_persons_is_not_public_when_ids_can_be_missing():
    unit = Unit(1, "person")
    rows = ["a,f,cook", "b,m,clerk", ",f,cook"]
    other = ["a,f,cook", ",m,clerk", ",f,cook"]
    try:
        plan(unit=unit, schema=SMALL, roles=SMALL_ROLES, relation=Relation.REPLACE_ONE)
        pair = [encode(people(lines), SMALL, unit=unit, key=b"k") for lines in (rows, other)]
        check_neighbours(small_tree, *pair, unit=unit, relation=Relation.REPLACE_ONE)
    except Violation:
        raise
    except JustitiaError:
        return  # the pair of relation and unit is refused, or the count is not given out


def test_declared_missing_markers_of_the_id_column_are_heeded():
    schema = Schema(
        (replace(SMALL["person"], missing_markers=("", "NA")), SMALL["sex"], SMALL["job"])
    )
    settings = plan(unit=PEOPLE, schema=schema, roles=SMALL_ROLES)
    mine, yours = ["NA,f,cook"] * 2, ["NA,m,clerk"] * 2
    counts = []
    for lines in ([*mine, "a,f,cook"], [*mine, *yours, *yours, "a,f,cook"]):
        vault = attach(settings, people(lines), Ledger("sqlite://")).vault
        counts.append(vault.not_private("test").counts([("job", "sex")])[0])
    # Nobody without an id is counted, so that nobody without an id can push somebody else out.
    assert (counts[0] == counts[1]).all()
    assert counts[0].sum() == 1


def test_the_decimal_sign_enters_the_request_id():
    point, comma = (plan(reading=ReadingPlan(decimal=sign)) for sign in ".,")
    assert request_id(point, "t") != request_id(comma, "t")


@pytest.mark.parametrize("error", [SchemaError("no"), LedgerError("no")], ids=["schema", "ledger"])
def test_any_failure_after_the_charge_exits_with_4(error, home, tmp_path, monkeypatch):
    assert failing_run(tmp_path, monkeypatch, error) == 4


def test_a_release_that_cannot_be_stored_is_spent_without_a_result(home, tmp_path, monkeypatch):
    def finish(self, *arguments):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Ledger, "finish", finish)
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    arguments = ["run", str(tmp_path / "plan.toml"), "--data", str(data)]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--quiet"]) == 4
    (spend,) = spends()
    assert spend.state is SpendState.NO_RESULT


def test_a_replay_refuses_the_release_of_another_charge(home, tmp_path):
    import sqlite3

    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    for more in (False, True):
        core.runner.run(tmp_path / "plan.toml", data, tmp_path / "out", new_release=more)
    with sqlite3.connect(home / "justitia.sqlite") as database:
        (first, digest, blob), (second, _, _) = database.execute(
            "select id, release_sha256, blob from justitia_spend"
            " join justitia_release on spend_id = id order by id"
        ).fetchall()
        assert first < second
        database.execute("update justitia_release set blob = ?", (blob,))
        database.execute("update justitia_spend set release_sha256 = ?", (digest,))
    database.close()
    for attempt in (1, 2):  # the second holds the first one's release now
        ledger = Ledger()
        identity = request_id(plan(), ledger_table(home), attempt)
        try:
            release = core.measuring.stored_release(ledger, ledger.spend(identity))
        except JustitiaError:
            return
        assert release.provenance.request_id == identity


def ledger_table(home):
    import sqlite3

    with sqlite3.connect(home / "justitia.sqlite") as database:
        ((table,),) = database.execute("select table_id from justitia_table").fetchall()
    database.close()
    return table
