import io
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from core.errors import ReleaseError
from core.releases import (
    SCORE_GRID,
    ForbiddenPair,
    NoisyMarginal,
    NoisyScores,
    PairReference,
    Provenance,
    Recoding,
    Relation,
    SelectionStep,
    TreeRelease,
    Unit,
    pack_bytes,
    unpack_bytes,
)
from core.roles import Role, Roles
from core.schema import Column, Kind, Schema

SCHEMA = Schema(
    (
        Column("b", Kind.CATEGORICAL, categories=("x", "y")),
        Column("a", Kind.INTEGER, lower=0, upper=3),
    )
)


def tree_release(**changes):
    provenance = Provenance(
        "tree",
        "tree-1",
        "people <b>",
        Fraction(1, 10),
        Fraction(999, 10_000),
        Relation.ADD_REMOVE,
        Unit(2, "id"),
        1e-9,
        SCHEMA.digest,
        "test noise",
        False,
        ("data-dependent domain",),
    )
    one = tuple(
        NoisyMarginal((name,), np.array(values), sigma, Fraction(1, 60))
        for name, values, sigma in (("a", [3, 5, -1, 2, 0], 2.0), ("b", [4, 3, 1, 1], 2.0))
    )
    release = TreeRelease(
        provenance,
        "privci",
        SCHEMA,
        Roles({"a": Role.PROTECTED, "b": Role.OUTCOME}),
        (Fraction(1, 3),) * 3,
        (ForbiddenPair(("a", "b"), "fairness", "because"),),
        (SelectionStep(0, ("a", "b"), 1, (("a", "b"),), ()),),
        one,
        Recoding({"a": np.array([0, 1, 2, 2, 2])}),
        (NoisyMarginal(("a", "b"), np.arange(12).reshape(3, 4), 1.5, Fraction(1, 30)),),
        NoisyScores((("a", "b"),), np.array([1.25]), 3.0, Fraction(1, 30)),
    )
    return replace(release, **changes)


def test_a_release_survives_its_bytes():
    release = tree_release(public_rows=12)
    again = TreeRelease.from_bytes(release.to_bytes())
    assert again.to_bytes() == release.to_bytes()
    assert again.provenance == release.provenance
    assert again.schema == release.schema
    assert again.steps == release.steps
    assert again.forbidden == release.forbidden
    assert again.roles == release.roles
    assert (again.two_way[0].values == release.two_way[0].values).all()
    assert (again.recoding.maps["a"] == release.recoding.maps["a"]).all()
    assert again.scores.values[0] == 1.25
    assert again.public_rows == 12


def test_the_bytes_do_not_depend_on_the_clock():
    first = tree_release().to_bytes()
    time.sleep(2.1)  # zip time stamps have a resolution of two seconds
    assert tree_release().to_bytes() == first


def test_pickles_and_damage_are_refused():
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([{"type": "TreeRelease"}], dtype=object))
    for blob in (buffer.getvalue(), b"", b"PK", tree_release().to_bytes()[:-40]):
        with pytest.raises(ReleaseError, match="damaged"):
            TreeRelease.from_bytes(blob)
    with pytest.raises(ReleaseError, match="not a"):
        unpack_bytes(pack_bytes({"type": "Other"}, {}), "TreeRelease")


def test_the_total_weighs_the_one_way_tables_by_their_precision():
    release = tree_release()
    # sums 9 (5 cells) and 9 (4 cells), equal noise a cell: 9 whatever the weights
    assert release.total == pytest.approx(9)
    wide = NoisyMarginal(("c",), np.array([30]), 4.0, Fraction(1))
    mixed = replace(release, one_way=(*release.one_way, wide))
    weights = np.array([1 / (5 * 4), 1 / (4 * 4), 1 / 16])
    assert mixed.total == pytest.approx(np.average([9, 9, 30], weights=weights))
    assert replace(release, public_rows=7).total == 7


def test_members_and_the_merged_cell_of_a_recoding():
    recoding = tree_release().recoding
    assert recoding.size("a", 5) == 3
    assert recoding.members("a", 5) == ((0,), (1,), (2, 3, 4))
    assert recoding.merged_cell("a") == 2
    assert recoding.members("b", 2) == ((0,), (1,))
    assert recoding.merged_cell("b") is None


def test_the_reference_is_rounded_to_the_score_grid():
    reference = PairReference(10.0, {"a": np.array([0.3, 0.7]), "b": np.array([0.5, 0.5])})
    table = reference.grid_table(("a", "b"))
    assert table.dtype == np.int64
    assert np.abs(table / SCORE_GRID - 10 * np.outer([0.3, 0.7], [0.5, 0.5])).max() <= 0.5 / 1024
