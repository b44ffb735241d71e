"""Record and replay: run on a table, freeze every noisy answer, run again on a neighbour.

With the answers frozen, everything that a release may depend on is the same on both tables.  So
both runs must ask for the same draws, each draw's exact arguments may differ by no more than the
declared sensitivity, each debit must cover its scale, and the releases must be equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction

import numpy as np

from core.private.grant import Grant
from core.private.noise import GaussianDraw, SelectionDraw
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.private.terms import GrantTerms, SourceSlot
from core.releases import Relation, Unit
from core.simulation import SeededNoise


class Violation(AssertionError):
    """A privacy claim that a pair of neighbouring tables refutes."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One call of a noise primitive: what went in, what was declared, what came out.

    ``sensitivity`` is squared for ``gaussian`` and plain for ``select``.
    """

    kind: str
    argument: np.ndarray
    sensitivity: Fraction
    rho: Fraction
    answer: GaussianDraw | SelectionDraw


class Recorder:
    """Noise that remembers every call."""

    name, simulated = "recorded", True

    def __init__(self, inner=None, seed=0):
        self.inner = SeededNoise(seed) if inner is None else inner
        self.draws: list[Draw] = []

    def gaussian(self, values, *, sensitivity_squared, rho):
        answer = self.inner.gaussian(values, sensitivity_squared=sensitivity_squared, rho=rho)
        self.draws.append(Draw("gaussian", values.copy(), sensitivity_squared, rho, answer))
        return answer

    def select(self, scores, *, sensitivity, rho):
        answer = self.inner.select(scores, sensitivity=sensitivity, rho=rho)
        self.draws.append(Draw("select", scores.copy(), Fraction(sensitivity), rho, answer))
        return answer


class Replayer:
    """Noise that returns recorded answers, and remembers what it was asked."""

    name, simulated = "recorded", True

    def __init__(self, recorded: Sequence[Draw]):
        self.recorded = list(recorded)
        self.draws: list[Draw] = []

    def gaussian(self, values, *, sensitivity_squared, rho):
        return self._answer("gaussian", values, sensitivity_squared, rho)

    def select(self, scores, *, sensitivity, rho):
        return self._answer("select", scores, Fraction(sensitivity), rho)

    def _answer(self, kind, argument, sensitivity, rho):
        place = len(self.draws)
        if place >= len(self.recorded):
            raise Violation(f"control flow: the neighbour asks for draw {place}, the table did not")
        before = self.recorded[place]
        same = (kind, argument.shape, sensitivity, rho) == (
            before.kind,
            before.argument.shape,
            before.sensitivity,
            before.rho,
        )
        if not same:
            raise Violation(f"control flow: draw {place} is another one on the neighbour")
        self.draws.append(Draw(kind, argument.copy(), sensitivity, rho, before.answer))
        return before.answer


def make_grant(
    table: CodedTable,
    noise,
    *,
    relation=Relation.ADD_REMOVE,
    unit=None,
    rho=Fraction(1),
    kind=Grant,
) -> Grant:
    """A grant without a ledger, for as many runs as one likes."""
    terms = GrantTerms("test", "id", "people", rho, relation, unit or Unit(), 1e-9, True)
    return kind(SourceSlot(InMemorySource(table)), noise, terms)


def check_costs(draws: Sequence[Draw], charged: Fraction) -> None:
    """Every debit covers its scale by the textbook formula; together they fit the charge."""
    for place, draw in enumerate(draws):
        if draw.kind == "gaussian":
            cost = draw.sensitivity / (2 * Fraction(draw.answer.sigma) ** 2)
        else:
            epsilon = 2 * draw.sensitivity / Fraction(draw.answer.scale)
            cost = epsilon**2 / 8
        if cost > draw.answer.rho * (1 + Fraction(1, 10**12)):
            raise Violation(f"debit: draw {place} costs more than it says")
        if draw.answer.rho > draw.rho:
            raise Violation(f"debit: draw {place} costs more than was asked")
    if sum(draw.answer.rho for draw in draws) > charged:
        raise Violation("debit: the draws together cost more than was charged")


def realised(first: Draw, second: Draw) -> Fraction:
    """How much an argument changed: squared L2, or the largest change of one score."""
    change = [
        int(a) - int(b)
        for a, b in zip(first.argument.ravel(), second.argument.ravel(), strict=True)
    ]
    if first.kind == "gaussian":
        return Fraction(sum(value * value for value in change))
    return Fraction(max((abs(value) for value in change), default=0))


def public(result: object) -> object:
    """Everything in a result as comparable plain values."""
    if hasattr(result, "to_bytes") and not isinstance(result, int):
        return result.to_bytes()
    if isinstance(result, np.ndarray):
        return (str(result.dtype), result.shape, result.tobytes())
    if is_dataclass(result):
        return [(item.name, public(getattr(result, item.name))) for item in fields(result)]
    if isinstance(result, Mapping):
        return [(key, public(value)) for key, value in sorted(result.items())]
    if isinstance(result, (list, tuple)):
        return [public(item) for item in result]
    return result


def check_neighbours(
    run: Callable[[Grant], object],
    table: CodedTable,
    neighbour: CodedTable,
    *,
    seed: int = 0,
    noise=None,
    **settings,
) -> list[Fraction]:
    """Refute the claim on this pair, or return realised/declared of every draw.

    Parameters
    ----------
    run
        Asks a grant and returns the release.
    settings
        ``relation``, ``unit``, ``rho`` and ``kind`` of :func:`make_grant`.
    """
    recorder = Recorder(noise, seed)
    grant = make_grant(table, recorder, **settings)
    released = run(grant)
    check_costs(recorder.draws, grant.rho)
    if grant.debited != sum(draw.answer.rho for draw in recorder.draws):
        raise Violation("debit: the grant says another sum than its draws")
    replayer = Replayer(recorder.draws)
    again = run(make_grant(neighbour, replayer, **settings))
    if len(replayer.draws) != len(recorder.draws):
        raise Violation("control flow: the neighbour asks for fewer draws")
    ratios = []
    for place, pair in enumerate(zip(recorder.draws, replayer.draws, strict=True)):
        change, declared = realised(*pair), pair[0].sensitivity
        if change > declared:
            raise Violation(f"sensitivity: draw {place} changed by {change}, declared {declared}")
        ratios.append(change / declared)
    if public(released) != public(again):
        raise Violation("release: it depends on the rows beyond its noisy answers")
    return ratios


# -- neighbouring lists of rows ------------------------------------------------------------


def neighbouring_rows(generator, draw_row, *, rows, kind, unit_rows=1):
    """Two lists of rows that differ by one unit: ``add``, ``remove`` or ``replace``."""
    base = [draw_row(generator) for _ in range(rows)]
    extra = [draw_row(generator) for _ in range(generator.integers(1, unit_rows + 1))]
    if generator.random() < 0.3:
        extra = [extra[0]] * unit_rows  # equal rows: the worst case for counts
    if kind == "replace":
        if not base:
            return base, base
        place = int(generator.integers(len(base)))
        return base, [*base[:place], extra[0], *base[place + 1 :]]
    place = int(generator.integers(len(base) + 1))
    larger = [*base[:place], *extra, *base[place:]]
    return (base, larger) if kind == "add" else (larger, base)


#: Table sizes of the neighbour pairs: the empty table and single rows come up often.
SIZES = (0, 1, 1, 2, 3, 5, 8, 20)


def neighbour_plan(pairs: int, relation: Relation):
    """(index, rows, kind) of each pair, cycling through sizes and kinds."""
    kinds = ("add", "remove") if relation is Relation.ADD_REMOVE else ("replace",)
    cycle = itertools.cycle(itertools.product(SIZES, kinds))
    for index, (rows, kind) in zip(range(pairs), cycle, strict=False):
        yield index, max(rows, 1) if kind == "replace" else rows, kind
