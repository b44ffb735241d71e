"""What a person downloads is safe to open, whatever names and labels a stranger chose."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.artefacts import about
from core.bundle import bundle_bytes, verify
from core.decoding import csv_bytes
from core.documents import csv_table
from core.private.reading import read_table
from core.spreadsheet import guarded, guarded_label, unguarded
from tests.hostile import corpus, payloads

#: What a spreadsheet takes for the start of a formula.
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NUMBER = re.compile(r"[+-]?(\d[\d.,]*|\d*\.\d+)([eE][+-]?\d+)?( to [+-]?\d[\d.,]*)?")
TEXTS = st.text(
    st.sampled_from([*"=+-@;'\",|5a. \t\r\n＝＋", "é", "\u202e"]) | st.characters(codec="utf-8"),
    max_size=12,
)


def runs(cell: str) -> bool:
    """Whether a spreadsheet could run a cell, also one that splits it at semicolons and tabs."""
    parts = [cell, *re.split(r"[;\t\r\n]", cell)]
    return any(part.startswith(STARTS) and not NUMBER.fullmatch(part) for part in parts)


def cells_of(blob: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(blob.decode("utf-8-sig"), newline=""), strict=True))


# -- the guard itself --------------------------------------------------------------------------


@given(TEXTS)
def test_a_guarded_text_never_runs_and_comes_back_letter_for_letter(text):
    assert unguarded(guarded(text)) == text
    shown = guarded(text)
    assert not any(part.startswith(STARTS) for part in re.split(r"(?<=[;\t\r\n])", shown))
    assert not runs(guarded_label(text))


@given(st.lists(TEXTS, min_size=2, max_size=2, unique=True))
def test_two_texts_stay_two(pair):
    assert guarded(pair[0]) != guarded(pair[1])


@pytest.mark.parametrize("payload", corpus.PAYLOADS)
def test_payloads_do_not_run_and_ordinary_texts_stay(payload):
    assert not runs(guarded(payload))
    assert not runs(guarded_label(payload))
    for text in ("a", "it's", "'quoted'", "5", "1 - 2", "a@b.c", "[-5, 5)", "(missing)"):
        assert guarded(text) == guarded_label(text) == text
    for figure in ("-5", "+1.5", "-1e-05", "-50 to -26", "-5 to 10"):
        assert guarded_label(figure) == figure


@pytest.mark.parametrize("names", [("=1+1", "'=1+1"), ("a;=1", "@b"), ("\t=1", "-x")])
def test_a_table_for_spreadsheets_is_guarded_in_texts_only_and_uploads_back(names):
    texts = [*STARTS, "=1+1", "''=1", "a;=1", "a\t@x", "it's", "-5", "\r\n=x"]
    frame = pd.DataFrame(
        {names[0]: pd.Series(texts, dtype="str"), names[1]: np.arange(len(texts)) - 3.5}
    )
    plain, guarded_file = csv_bytes(frame), csv_bytes(frame, spreadsheet=True)
    rows = cells_of(guarded_file)
    assert not any(runs(cell) for row in rows for cell in row)
    assert [row[1] for row in rows[1:]] == [str(number) for number in frame[names[1]]]
    assert any(cell.startswith("=") for row in cells_of(plain) for cell in row)
    for blob in (plain, guarded_file):
        raw = read_table(blob, name="t.csv", delimiter=",")
        assert raw.names == names
        assert raw.frame[names[0]].tolist() == texts


def test_figures_stay_figures_and_names_are_guarded_in_tables_of_results():
    blob = csv_table(("=a", "b"), [("-x", -5), ("-5 to 10", -0.125), (None, True)])
    assert blob == b"'=a,b\r\n'-x,-5\r\n-5 to 10,-0.125\r\n,True\r\n"


# -- every file of a bundle --------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    """A simulated run of the plan whose every name is a payload."""
    from core.attachment import attach_simulated, read_for
    from core.deriving import derive
    from core.measuring import identities_for, measure, releases_of
    from core.runner import ledger_document

    plan = payloads.plan()
    attached = attach_simulated(plan, read_for(plan, payloads.table()), 5, allow_real=True)
    identities = identities_for(plan, attached)
    releases = releases_of(measure(attached, plan, identities))
    account = ledger_document(attached.ledger, plan.population.name, identities)
    return derive(plan, releases, account)


def test_the_bundle_of_such_names_verifies(made):
    assert verify(bundle_bytes(made.files, True)).simulated


def test_every_table_is_safe_in_a_spreadsheet_but_the_one_for_programs(made):
    tables = {name: blob for name, blob in made.files.items() if name.endswith(".csv")}
    assert len(tables) >= 10
    for name, blob in tables.items():
        cells = [cell for row in cells_of(blob) for cell in row]
        if name == "synthetic.csv":
            assert payloads.OUTCOME in cells
            assert "for programs" in about(name).lower()
        else:
            assert [cell for cell in cells if runs(cell)] == [], name
            assert len(cells) > 5


def test_what_programs_read_has_every_name_letter_for_letter(made):
    import json

    import pyarrow.parquet as pq

    assert tuple(cells_of(made.files["synthetic.csv"])[0]) == payloads.schema().names
    parquet = pq.read_table(io.BytesIO(made.files["synthetic.parquet"]))
    assert tuple(parquet.column_names) == payloads.schema().names
    tree = json.loads(made.files["tree.json"])
    assert [column["name"] for column in tree["columns"]] == list(payloads.schema().names)
    found = [one["analysis"] for one in json.loads(made.files["posterior.json"])["posteriors"]]
    assert all(any(name in title for title in found) for name in payloads.ANALYSES)


def test_the_statement_shows_names_and_runs_nothing(made):
    text = made.files["statement.md"].decode()
    for mark in ("<script", "<img", "![y]", "\u202e", "\x1b"):
        assert mark not in text
    assert not re.search(r"(?<!\\)\]\(", text)  # no link but an escaped one
    assert "&#60;script&#62;" in text


def test_no_file_is_a_pickle(made):
    for name, blob in made.files.items():
        assert not blob.startswith(b"\x80"), name
        if name.endswith(".npz"):
            with np.load(io.BytesIO(blob), allow_pickle=False) as archive:
                assert all(archive[member].dtype != object for member in archive.files)


def test_the_ledger_table_is_guarded():
    from datetime import UTC, datetime
    from fractions import Fraction
    from types import SimpleNamespace

    from pages.shared import books

    spend = SimpleNamespace(
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        what="=cmd|' /C calc'!A0",
        rho=Fraction(1, 2),
        debited=None,
        state=SimpleNamespace(value="done"),
        message="@x",
        request_id="-r",
    )
    (_, row) = cells_of(books.csv([spend]))
    assert not any(runs(cell) for cell in row)
    assert row[0] == "2026-01-02 00:00:00+00:00"
