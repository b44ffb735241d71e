"""All parts of a comparison together."""

from __future__ import annotations

import numpy as np
import pytest

from core.audit.fidelity import (
    Fidelity,
    correlation_difference,
    joint_distance,
    marginal_distances,
    quantile_differences,
)
from core.audit.worlds import World
from core.errors import EstimationError
from tests.core.audit.made import chained_world, numeric_world, random_world, shuffled, world_of


def compare(first, second):
    """All parts, as an audit puts them together."""
    return Fidelity(
        tuple(marginal_distances(first, second, ways) for ways in (1, 2, 3)),
        joint_distance(first, second),
        correlation_difference(first, second),
        quantile_differences(first, second, draws=50),
        0.95,
    )


def test_a_world_against_itself_is_perfect():
    world = chained_world()
    found = compare(world, world.take(np.arange(world.rows)[::-1]))
    for part in found.marginals:
        assert part.tv.max() == 0.0
        assert np.abs(part.kl).max() < 1e-9
    assert (found.joint.tv, found.joint.kl) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert found.correlations.cramers_v.difference.max() == pytest.approx(0.0, abs=1e-12)
    assert all(
        figure.value == pytest.approx(0, abs=1e-9)
        for figure in found.figures()
        if figure.value is not None
    )


def test_a_world_against_its_shuffled_columns_is_terrible():
    world = chained_world()
    found = compare(world, shuffled(world))
    one, two, three = found.marginals
    assert one.tv.max() == 0.0
    neighbours = [place for place, names in enumerate(two.names) if names == ("c0", "c1")]
    assert two.tv[neighbours[0]] > 0.7
    assert two.tv.mean() > 10 * two.chance.mean()
    assert three.tv.min() > 0.7
    assert found.joint.tv > 0.8
    assert found.joint.kl > 1.0
    assert found.correlations.cramers_v.difference.min() > 0.7
    assert two.worst(2)[0] in {0, 3, 5}  # (c0, c1), (c1, c2), (c2, c3)


@pytest.mark.parametrize("private", [False, True])
def test_figures_have_one_key_each_and_carry_the_mark(private):
    first = numeric_world(1)
    second = World("real table", first.schema, first.codes, first.rows, private)
    figures = compare(first, second).figures()
    assert len({figure.key for figure in figures}) == len(figures)
    assert {figure.private for figure in figures} == {private}
    assert all(
        figure.low <= figure.value <= figure.high for figure in figures if figure.low is not None
    )


def test_empty_worlds_are_refused_by_name():
    world = random_world(np.random.default_rng(0), 5, [2, 2])
    empty = World("real table", world.schema, {n: c[:0] for n, c in world.codes.items()}, 0, True)
    for look in (joint_distance, correlation_difference, lambda *w: marginal_distances(*w, 2)):
        for pair in ((world, empty), (empty, world)):
            with pytest.raises(EstimationError, match="no rows in the real table"):
                look(*pair)
    assert quantile_differences(world, empty).figures()[0].value is None


def test_declared_cells_that_never_occur_and_columns_of_one_cell():
    first = world_of({"x": [0, 0, 4], "one": [0, 0, 0]}, [9, 1])
    second = world_of({"x": [4, 4, 0], "one": [0, 0, 0]}, [9, 1])
    found = compare(first, second)
    assert found.marginals[0].tv.tolist() == [pytest.approx(1 / 3), 0.0]
    assert found.marginals[0].chance[1] == 0.0
    three = found.marginals[2].figures()
    assert (three[0].value, three[0].reason) == (None, "fewer than 3 columns")
