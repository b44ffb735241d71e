"""What looks at real rows must leave no trace of them."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from core.attachment import attach
from core.audit.looking import look
from core.audit.room import AuditSettings, audit_private, audit_released
from core.audit.worlds import real_world
from core.bundle import opened
from core.errors import JustitiaError, ReadingError
from core.private.ledger import Ledger
from core.private.raw import RawTable, ReadingReport
from core.release_log import Act, ReleaseLog
from core.report.page import released_report
from tests.privacy.canaries import ROWS, frame, needles_in, plan, traces, write

ROOT = Path(__file__).parents[2]
CHEAP = AuditSettings(draws=20, permutations=20, learners=("logistic",))


def command(folder, *arguments):
    """A command in another process, so that everything on its standard error is seen."""
    return subprocess.run(
        [sys.executable, "-m", "core", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "JUSTITIA_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A release of the planted table, audited from the command line."""
    folder = tmp_path_factory.mktemp("audited")
    data = write(folder / "data", "csv")
    (folder / "plan.toml").write_text(plan(rho="100").to_toml())
    done = command(
        folder, "run", folder / "plan.toml", "--data", data, "--out", folder / "out", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    bundle = folder / "out" / "bundle.zip"
    made = command(folder, "audit", bundle, "--out", folder / "audit.html")
    assert made.returncode == 0, made.stderr
    return folder, made


@pytest.fixture(scope="module")
def scene(audited):
    """The same in this process: the released audit, and the private one."""
    folder, _ = audited
    bundle = opened(folder / "out" / "bundle.zip")
    released = audit_released(
        bundle.releases.tree, bundle.free.synthetic, bundle.free.certificate, settings=CHEAP
    )
    raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
    attached = attach(plan(rho="100"), raw, Ledger("sqlite://"))
    handle = attached.vault.not_private("a test")
    return released, audit_private(released, real_world(handle, released.release.schema))


def test_the_audit_leaves_no_trace_of_a_row(audited):
    folder, told = audited
    assert not needles_in(told.stdout)
    assert not needles_in(told.stderr)
    assert b"Warning" not in told.stderr
    assert b"raw access" not in told.stderr
    (folder / "data" / "table.csv").unlink()
    assert not traces(folder)


def test_the_released_figures_do_not_depend_on_the_table_that_is_looked_at(scene):
    released, private = scene
    before = released_report(released).content
    fewer = private.real.take(np.arange(ROWS // 2))
    other = audit_private(released, fewer)
    assert released_report(other.released).content == before
    assert [one.figure for one in other.scorecard.publishable] == [
        one.figure for one in private.scorecard.publishable
    ]
    assert [one.figure for one in other.scorecard.private] != [
        one.figure for one in private.scorecard.private
    ]


def test_nothing_private_can_be_copied_pickled_or_taken_apart_by_mistake(scene):
    _, private = scene
    for thing in (private, private.real, private.real.take(np.arange(3))):
        for away in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                away(thing)
    with pytest.raises(TypeError):
        asdict(private)


def test_representations_hold_no_private_number(scene):
    _, private = scene
    for thing in (private, private.real, private.scorecard.private, private.figures):
        words = repr(thing)
        assert not needles_in(words.encode())
        assert str(private.real.rows) not in words
        for figure in private.figures:
            if figure.value is not None and 0 < figure.value < 1:
                assert repr(figure.value) not in words


def test_no_log_record_holds_a_figure(scene, caplog):
    released, private = scene
    caplog.set_level(logging.DEBUG)
    again = audit_private(released, private.real)
    assert not needles_in(caplog.text.encode())
    for figure in again.figures:
        if figure.value is not None and 0 < figure.value < 1:
            assert f"{figure.value:.6f}"[:8] not in caplog.text


def test_looking_is_written_down_before_it_happens(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
    ledger = Ledger("sqlite://")
    vault = attach(plan(), raw, ledger).vault
    for empty in ("", " \n\t"):
        with pytest.raises(ReadingError, match="reason"):
            look(vault, ledger, "anna", empty)
    assert ReleaseLog(ledger).entries() == []
    handle = look(vault, ledger, "anna", "fit for\nteaching?")
    (entry,) = ReleaseLog(ledger).entries()
    assert (entry.actor, entry.act, entry.population) == ("anna", Act.LOOKED, "people")
    assert entry.detail == "fit for teaching?"
    vault.close()
    with pytest.raises(JustitiaError):
        handle.codes()  # forgotten with the table
