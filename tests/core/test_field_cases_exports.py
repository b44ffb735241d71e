"""Field cases about what comes out: missing groups, accents and formulas.

Each case is a failure that users of neighbouring tools reported; its number is in the test's name.
"""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pyarrow.parquet as pq
import pytest

from core.bundle import verify
from core.private.reading import read_table
from core.private.suggestions import suggest_schema
from core.schema import Column, Kind
from core.spreadsheet import guarded_label
from tests.core.field_cases import (
    csv_text,
    files_in,
    plan,
    release,
    save,
    write,
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Each test has a ledger and a secret of its own."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))


# -- F-11: a missing group --------------------------------------------------------------------

GROUPS = ["r", "r", "r", "r", "s", "s", None]
LABELS = [1, 0, 1, 0, 1, 0, 1]
DECISIONS = [1, 0, 0, 1, 1, 0, 0]


def group_columns(*more: str) -> list[Column]:
    return [
        Column("group", Kind.CATEGORICAL, categories=("r", "s", *more), missing_label="unknown"),
        Column("label", Kind.INTEGER, lower=0, upper=1),
        Column("decision", Kind.INTEGER, lower=0, upper=1),
    ]


def write_groups(folder, groups):
    frame = pd.DataFrame({"group": groups, "label": LABELS, "decision": DECISIONS})
    paths = [folder / f"groups.{ending}" for ending in ("csv", "xlsx", "parquet")]
    frame.to_csv(paths[0], index=False)
    frame.to_excel(paths[1], index=False)
    frame.to_parquet(paths[2])
    return paths


def test_f11_missing_is_a_group_of_its_own_in_every_format(tmp_path):
    path = save(plan(group_columns(), "1000000"), tmp_path / "plan.toml")
    tables = []
    for data in write_groups(tmp_path, GROUPS):
        out = release(path, data, tmp_path / data.suffix[1:], seed=1)
        # At this rho the noise is zero, so the counts are those of the file.
        assert out.one_way["group"] == {"r": 4, "s": 2, "(other)": 0, "unknown": 1}
        assert sum(out.one_way["group"].values()) == sum(out.one_way["decision"].values()) == 7
        assert len(out.synthetic) == 7
        assert Counter(out.synthetic["group"]) == {"r": 4, "s": 2, "": 1}
        tables.append(files_in(out.folder))
    assert tables[0] == tables[1] == tables[2]


def test_f11_a_group_called_nan_stays_apart_from_missing(tmp_path):
    path = save(plan(group_columns("nan"), "1000000"), tmp_path / "plan.toml")
    groups = ["r", "r", "nan", "nan", "s", "s", None]
    for data in write_groups(tmp_path, groups):
        out = release(path, data, tmp_path / data.suffix[1:], seed=1)
        assert out.one_way["group"] == {"r": 2, "s": 2, "nan": 2, "(other)": 0, "unknown": 1}
        assert Counter(out.synthetic["group"]) == {"r": 2, "s": 2, "nan": 2, "": 1}


# -- F-18: accents and formulas ---------------------------------------------------------------

SIZES = ("klein", "mittel", "groß")
CITIES = ("Łódź", "Zoë", "東京")
REMARKS = ("a, b", 'say "x"', "one\ntwo", "-5", "=1+1")


def remarks_rows() -> list[list[object]]:
    rows = [[SIZES[i % 3], CITIES[i // 3 % 3], REMARKS[i % 5], -5 + i % 3] for i in range(100)]
    return [["größe", "stadt", "kommentar", "wert"], *rows]


def remarks_columns() -> list[Column]:
    return [
        Column("größe", Kind.ORDINAL, categories=SIZES),
        Column("stadt", Kind.CATEGORICAL, categories=CITIES),
        Column("kommentar", Kind.CATEGORICAL, categories=REMARKS),
        Column("wert", Kind.INTEGER, lower=-5, upper=-3),
    ]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_f18_plain_and_spreadsheet_files_come_back_alike(tmp_path, mark):
    data = write(tmp_path / "orte.csv", mark + csv_text(remarks_rows()))
    forms = ("csv", "spreadsheet", "parquet")
    path = save(plan(remarks_columns(), files=forms), tmp_path / "plan.toml")
    out = release(path, data, tmp_path / "out")
    plain, excel = out.path("synthetic.csv"), out.path("synthetic-for-excel.csv")
    assert not plain.read_bytes().startswith(b"\xef\xbb\xbf")
    assert excel.read_bytes().startswith(b"\xef\xbb\xbf")
    # The guard is on text cells of the spreadsheet file only; the number -5 is a number in both.
    header, *rows = out.rows("synthetic.csv")
    assert header == ["größe", "stadt", "kommentar", "wert"]
    guarded = [
        [*row[:2], f"'{row[2]}" if row[2] in ("-5", "=1+1") else row[2], row[3]] for row in rows
    ]
    assert out.rows("synthetic-for-excel.csv") == [header, *guarded]
    assert {row[2] for row in rows} >= set(REMARKS)
    assert "-5" in {row[3] for row in rows}
    # Both upload again to the same columns, categories and kinds.
    one, two = read_table(plain), read_table(excel)
    assert one.names == two.names == tuple(header)
    pd.testing.assert_frame_equal(one.frame, two.frame)
    assert suggest_schema(one).schema == suggest_schema(two).schema
    assert "UTF-8" in " ".join(one.report.notes)
    assert "byte-order mark" in " ".join(two.report.notes)
    # The same labels everywhere else.
    table = pq.read_table(out.path("synthetic.parquet")).to_pandas()
    assert table.columns.to_list() == header
    assert table["kommentar"].dropna().to_list() == [row[2] for row in rows if row[2]]
    cells = {(row[0], row[1]) for row in out.rows("marginals/one_way.csv")[1:]}
    assert {("größe", label) for label in SIZES} <= cells
    assert {("stadt", label) for label in CITIES} <= cells
    # Tables of figures are for people, and guarded; programs have the JSON and NPZ files.
    assert {("kommentar", guarded_label(label)) for label in REMARKS} <= cells
    assert [column["name"] for column in out.tree["columns"]] == header
    assert verify(out.path("bundle.zip")).checks
