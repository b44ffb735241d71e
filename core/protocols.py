"""What algorithms see of the private room: noisy answers, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from core.moments import EntryReference, MomentFrame, MomentRequest, NoisyMoments
from core.releases import (
    NoisyMarginal,
    NoisyScores,
    PairReference,
    Provenance,
    Recoding,
)

Pair = tuple[str, str]


class MarginalGrant(Protocol):
    """The part of a grant that structure selection uses.

    Every call debits what OpenDP's own map says; none returns an exact value.
    """

    @property
    def rho(self) -> Fraction:
        """What was charged for this grant."""
        ...

    @property
    def remaining(self) -> Fraction:
        """What has not been debited yet."""
        ...

    def counts(
        self,
        cliques: Sequence[tuple[str, ...]],
        rho: Fraction,
        *,
        recoding: Recoding | None = None,
    ) -> tuple[NoisyMarginal, ...]:
        """Noisy contingency tables of all cliques, jointly for ``rho``."""
        ...

    def row_count(self, rho: Fraction) -> NoisyMarginal:
        """The number of rows as a 0-dimensional table; exact and free where it is public."""
        ...

    def select_pair(
        self, candidates: Sequence[Pair], reference: PairReference, rho: Fraction
    ) -> Pair:
        """One pair by the exponential mechanism on the L1 score against a frozen reference."""
        ...

    def score_pairs(
        self, pairs: Sequence[Pair], reference: PairReference, rho: Fraction
    ) -> NoisyScores:
        """Noisy L1 scores of all pairs, jointly for ``rho``."""
        ...

    def provenance(self, *, flags: Sequence[str] = ()) -> Provenance:
        """Where the answers came from and what they cost so far."""
        ...


class MomentGrant(Protocol):
    """The part of a grant that covariance estimation uses.

    Every call debits what OpenDP's own map says; none returns an exact value, but for a row count
    that the relation makes public.
    """

    @property
    def rho(self) -> Fraction:
        """What was charged for this grant."""
        ...

    @property
    def debited(self) -> Fraction:
        """What the draws cost so far."""
        ...

    @property
    def remaining(self) -> Fraction:
        """What has not been debited yet."""
        ...

    def row_count(self, rho: Fraction) -> NoisyMarginal:
        """The number of rows as a 0-dimensional table; exact and free where it is public."""
        ...

    def moments(self, request: MomentRequest, rho: Fraction) -> NoisyMoments:
        """Noisy sums of clipped, scaled products, jointly for ``rho``."""
        ...

    def select_entry(
        self, candidates: Sequence[Pair] | None, reference: EntryReference, rho: Fraction
    ) -> Pair:
        """One second moment by the exponential mechanism; None stands for all of them."""
        ...

    def clip_norm(
        self,
        frame: MomentFrame,
        candidates: Sequence[Fraction],
        penalties: Sequence[float],
        rho: Fraction,
    ) -> Fraction:
        """A squared row clip by the exponential mechanism."""
        ...

    def provenance(self, *, flags: Sequence[str] = ()) -> Provenance:
        """Where the answers came from and what they cost so far."""
        ...


class StatisticsGrant(Protocol):
    """The part of a grant that analyses use: counts and sums, no selection."""

    @property
    def rho(self) -> Fraction:
        """What was charged for this grant."""
        ...

    def counts(
        self,
        cliques: Sequence[tuple[str, ...]],
        rho: Fraction,
        *,
        recoding: Recoding | None = None,
    ) -> tuple[NoisyMarginal, ...]:
        """Noisy contingency tables of all cliques, jointly for ``rho``."""
        ...

    def row_count(self, rho: Fraction) -> NoisyMarginal:
        """The number of rows as a 0-dimensional table; exact and free where it is public."""
        ...

    def moments(self, request: MomentRequest, rho: Fraction) -> NoisyMoments:
        """Noisy sums of products of features, jointly for ``rho``."""
        ...

    def provenance(self, *, flags: Sequence[str] = ()) -> Provenance:
        """Where the answers came from and what they cost so far."""
        ...


#: Called after each step with (stage, done, total, detail); may raise ``Cancelled``.
Progress = Callable[[str, int, int, object], None]
