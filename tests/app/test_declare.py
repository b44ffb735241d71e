"""What a steward types about a column means exactly that column."""

import pytest

from core import demo
from core.errors import SchemaError
from core.schema import Column, Kind, Missing
from pages.shared.declare import blank, column_of, keep_rows, problem, row_of, split_labels


@pytest.mark.parametrize("name", demo.names())
def test_every_demo_column_survives_the_editor(name: str) -> None:
    for column in demo.schema(name).columns:
        assert column_of(row_of(column)) == column


@pytest.mark.parametrize(
    "column",
    [
        Column("a|b", Kind.CATEGORICAL, categories=("x|y", "back\\slash", "=1+1", "-5")),
        Column("age", Kind.INTEGER, lower=0, upper=120, bins=6),
        Column("age", Kind.INTEGER, edges=(0, 18, 65, 120)),
        Column("x", Kind.REAL, lower=-1.5, upper=2.25, bins=4, decimals=2),
        Column("day", Kind.DATE, lower="2020-01-01", upper="2024-12-31", unit="quarter"),
        Column("flag", Kind.BOOLEAN, categories=("no", "yes")),
        Column("k", Kind.CATEGORICAL, categories=("a",), missing_markers=("?", "n/a")),
        Column(
            "m",
            Kind.INTEGER,
            lower=0,
            upper=9,
            missing=Missing.CONSTANT,
            missing_constant=3,
        ),
        Column("id", Kind.IDENTIFIER, reason="names one person"),
    ],
    ids=lambda column: f"{column.name}-{column.kind}",
)
def test_a_declaration_survives_the_editor(column: Column) -> None:
    assert column_of(row_of(column)) == column


def typed(kind: Kind, **fields: str) -> dict[str, object]:
    return {**blank("age"), "kind": kind.value, **fields}


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (typed(Kind.INTEGER, lower="12o", upper="20"), "lower"),
        (typed(Kind.INTEGER, lower="0", upper="x"), "upper"),
        (typed(Kind.INTEGER, lower="0"), "upper"),
        (typed(Kind.INTEGER, lower="30", upper="20"), "lower"),
        (typed(Kind.INTEGER, lower="0", upper="9", bins="many"), "bins"),
        (typed(Kind.CATEGORICAL, categories="a | b | a"), "twice"),
        (typed(Kind.CATEGORICAL), "categories"),
        (typed(Kind.DATE, lower="yesterday", upper="2024-01-01"), "date"),
        (typed(Kind.DATE, lower="2023-01-01", upper="2024-01-01", bins="hour"), "bins"),
        (typed(Kind.INTEGER, lower="0", upper="9", missing="x"), "missing"),
        (blank("age"), "choose"),
    ],
)
def test_what_cannot_be_accepted_is_named_by_column_and_field(row, word: str) -> None:
    words = problem(row)
    assert words is not None
    assert "'age'" in words
    assert word in words


def test_a_flag_is_kept_and_only_for_that_column() -> None:
    row = typed(Kind.CATEGORICAL, categories="a | b")
    assert column_of({**row, "flagged": True}).data_dependent
    assert not column_of(row).data_dependent


def test_a_changed_kind_leaves_foreign_settings_behind() -> None:
    row = row_of(Column("x", Kind.REAL, lower=0, upper=1, decimals=3))
    assert column_of({**row, "kind": "categorical", "categories": "a | b"}).decimals is None


def test_bars_inside_labels() -> None:
    assert split_labels(r"a \| b | c") == ["a | b", "c"]
    assert split_labels("") == []
    assert split_labels("a||b") == ["a", "", "b"]


def test_another_table_keeps_what_was_typed_for_known_names() -> None:
    rows = keep_rows([{**blank("sex"), "kind": "boolean"}, blank("grade")], ["sex", "team"])
    assert [row["name"] for row in rows] == ["sex", "team"]
    assert rows[0]["kind"] == "boolean"
    assert not rows[1]["kind"]


def test_an_undecided_column_is_no_column() -> None:
    with pytest.raises(SchemaError, match="choose"):
        column_of(blank("x"))
