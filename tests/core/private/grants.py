"""Grants over small tables, and one call of every primitive."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from core.moments import EntryReference, MomentFrame, MomentRequest, Scale
from core.private.grant import Grant
from core.private.noise import GaussianDraw, SelectionDraw
from core.private.source import InMemorySource
from core.private.terms import GrantTerms, SourceSlot
from core.releases import PairReference, Recoding, Relation, Unit
from tests.core.private.tables import numeric, random_coded

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
ONE = Fraction(1)
SIZES = {"a": 3, "b": 4, "c": 2}


class SilentNoise:
    """Stands in for noise: adds none, remembers what it was asked, and debits ``share`` of ρ."""

    name, simulated = "none", True

    def __init__(self, share=Fraction(1)):
        self.share, self.calls = share, []

    def gaussian(self, values, *, sensitivity_squared, rho):
        self.calls.append((values.copy(), sensitivity_squared, rho))
        return GaussianDraw(values.copy(), 8.0, rho * self.share)

    def select(self, scores, *, sensitivity, rho):
        self.calls.append((scores.copy(), sensitivity, rho))
        return SelectionDraw(int(scores.argmax()), 1.0, rho * self.share)


class CountingSource(InMemorySource):
    """Counts how often the rows are touched."""

    def __init__(self, table):
        super().__init__(table)
        self.accesses = 0

    def each_count(self, cliques, recoding=None):
        self.accesses += 1
        return super().each_count(cliques, recoding)

    def row_count(self):
        self.accesses += 1
        return super().row_count()

    def moments(self, request):
        self.accesses += 1
        return super().moments(request)

    def gram(self, frame):
        self.accesses += 1
        return super().gram(frame)

    def norm_profile(self, frame, radii):
        self.accesses += 1
        return super().norm_profile(frame, radii)


def make(table=None, noise=None, *, rho=ONE, relation=ADD, unit=None, flags=()):
    source = CountingSource(random_coded(SIZES, 60, 1) if table is None else table)
    terms = GrantTerms("test", "id-1", "people", rho, relation, unit or Unit(), 1e-9, True, flags)
    slot = SourceSlot(source)
    return Grant(slot, noise or SilentNoise(), terms), source, slot


def reference_of(sizes=SIZES, total=60.0, recoding=None):
    shares = {}
    for name, size in sizes.items():
        cells = size if recoding is None else recoding.size(name, size)
        shares[name] = np.arange(1, cells + 1) / sum(range(1, cells + 1))
    return PairReference(total, shares, recoding or Recoding())


def numeric_table():
    generator = np.random.default_rng(3)
    return numeric({name: generator.normal(scale=0.7, size=50) for name in "xyz"})


def frame_of(names="xyz", clip=None):
    return MomentFrame(tuple((name, Scale(0.0, 1.0)) for name in names), clip)


def primitives():
    """One call of every primitive that costs something: (name, table, call)."""
    pairs, frame = [("a", "b"), ("b", "c")], frame_of()
    entry = EntryReference(frame, np.eye(3))
    complete = MomentFrame(frame.scales, complete=True)
    return {
        "counts": (None, lambda g, rho: g.counts([("a",), ("a", "b")], rho)),
        "row_count": (None, lambda g, rho: g.row_count(rho)),
        "select_pair": (None, lambda g, rho: g.select_pair(pairs, reference_of(), rho)),
        "score_pairs": (None, lambda g, rho: g.score_pairs(pairs, reference_of(), rho)),
        "moments": (numeric_table, lambda g, rho: g.moments(MomentRequest.triangle(frame), rho)),
        "complete sums": (
            numeric_table,
            lambda g, rho: g.moments(MomentRequest(complete, ((), ("x",)), mixed=True), rho),
        ),
        "select_entry": (numeric_table, lambda g, rho: g.select_entry([("x", "y")], entry, rho)),
        "clip_norm": (
            numeric_table,
            lambda g, rho: g.clip_norm(frame, [ONE, Fraction(2)], [0.0, 5.0], rho),
        ),
    }


NAMES = sorted(primitives())


def prepared(name, **settings):
    table, call = primitives()[name]
    grant, source, slot = make(None if table is None else table(), **settings)
    return grant, source, slot, call
