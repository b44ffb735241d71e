"""What the replay tests run: every primitive of a grant in one go, on a small mixed table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from core.moments import EntryReference, MomentFrame, MomentRequest
from core.private.table import CodedTable
from core.releases import PairReference, Recoding
from core.schema import Column, Kind, Schema
from tests.core.private.tables import categorical

SCHEMA = Schema(
    (
        categorical("job", 5),
        Column("pay", Kind.REAL, lower=-50, upper=250, bins=4),
        Column("age", Kind.INTEGER, lower=0, upper=100, bins=3),
        categorical("sex", 2),
        Column("since", Kind.DATE, lower="2020-01-01", upper="2021-12-31", unit="quarter"),
    )
)
NUMERIC = ("age", "pay", "since")
ONE_WAY = [(name,) for name in sorted(SCHEMA.names)]
PAIRS = [(a, b) for i, a in enumerate(sorted(SCHEMA.names)) for b in sorted(SCHEMA.names)[i + 1 :]]

#: Names of the draws of :func:`every_primitive`, in order (row_count is free under replace_one).
DRAWS = (
    "one-way counts",
    "two-way and three-way counts",
    "row count",
    "select pair",
    "select pair again",
    "score pairs",
    "recoded counts",
    "means",
    "triangle",
    "weighted triangle",
    "clipped triangle",
    "edges",
    "degree three",
    "degree four",
    "select entry",
    "clip norm",
)


def draw_row(generator):
    """One coded row: outliers, missing and odd values come up often."""
    row = {}
    for column in SCHEMA.columns:
        code = int(generator.integers(column.size))
        number = None
        if column.name in NUMERIC:
            low, high = column.bounds
            ends = [low, high, (low + high) / 2, np.nan, 1e300, -1e300, np.inf, -np.inf, 3 * high]
            inside = float(generator.uniform(low, high))
            number = ends[generator.integers(len(ends))] if generator.random() < 0.6 else inside
        row[column.name] = (code, number)
    return row


def table_of(rows):
    """A coded table of such rows; the numbers go in unclipped, as if the coder had failed."""
    codes = {
        column.name: np.array([row[column.name][0] for row in rows], dtype=np.uint8)
        for column in SCHEMA.columns
    }
    numbers = {name: np.array([row[name][1] for row in rows], dtype=np.float64) for name in NUMERIC}
    return CodedTable(SCHEMA, codes, numbers, len(rows))


def independence(one_way, recoding=None):
    """A frozen reference from noisy one-way tables."""
    recoding = recoding or Recoding()
    total = max(float(np.mean([marginal.values.sum() for marginal in one_way])), 1.0)
    shares = {}
    for marginal in one_way:
        (name,) = marginal.clique
        cells = np.clip(marginal.values.astype(float), 0, None) + 0.1
        sums = np.zeros(recoding.size(name, cells.size))
        codes = recoding.maps.get(name, np.arange(cells.size))
        np.add.at(sums, codes, cells)
        shares[name] = sums / sums.sum()
    return PairReference(total, shares, recoding)


def every_primitive(grant):
    """Ask a grant everything it can answer; later questions depend on earlier answers."""
    rho = grant.rho / len(DRAWS)
    one_way = grant.counts(ONE_WAY, rho)
    cliques = [("sex", "job"), ("age", "pay"), ("since", "sex", "age")]
    answers = [one_way, grant.counts(cliques, rho), grant.row_count(rho)]
    reference = independence(one_way)
    first = grant.select_pair(PAIRS, reference, rho)
    second = grant.select_pair([pair for pair in PAIRS if pair != first], reference, rho)
    recoding = Recoding({"job": np.array([0, 1, 1, 2, 1])})
    pooled = independence(one_way, recoding)
    answers += [first, second, grant.score_pairs(PAIRS, pooled, rho)]
    answers.append(grant.counts([first, second], rho, recoding=recoding))
    return answers + moments(grant, rho)


def moments(grant, rho):
    """The numeric half of :func:`every_primitive`."""
    frame = MomentFrame.from_bounds(SCHEMA, NUMERIC)
    means = grant.moments(MomentRequest(frame, tuple((name,) for name in NUMERIC)), rho)
    middle = {
        name: scale.centre + scale.half_width * float(np.clip(value / 20, -1, 1))
        for (name, scale), value in zip(frame.scales, means.values, strict=True)
    }
    centred = MomentFrame.from_bounds(SCHEMA, NUMERIC, centres=middle)
    clipped = MomentFrame(centred.scales, Fraction(3, 2))
    requests = (
        MomentRequest.triangle(centred),
        MomentRequest.triangle(centred, Fraction(3, 2)),
        MomentRequest.triangle(clipped, Fraction(5, 4)),
        MomentRequest(frame, (("age", "pay"), ("pay", "since"))),
        MomentRequest(frame, (("age", "age", "pay"), ("pay", "pay", "pay"))),
        MomentRequest(frame, (("age", "age", "pay", "pay"), ("age", "pay", "pay", "pay"))),
    )
    answers = [means, *(grant.moments(request, rho) for request in requests)]
    sums = np.zeros((3, 3))
    sums[np.triu_indices(3)] = answers[1].values
    reference = EntryReference(centred, sums + np.triu(sums, 1).T)
    entries = [(a, b) for i, a in enumerate(NUMERIC) for b in NUMERIC[i:]]
    answers.append(grant.select_entry(entries, reference, rho))
    clips = [Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)]
    answers.append(grant.clip_norm(frame, clips, [1.0, 2.0, 3.0, 4.0], rho))
    return answers
