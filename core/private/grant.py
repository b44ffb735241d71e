"""A grant: what a charge buys.  Noisy primitives only, each with its sensitivity and its debit.

Every primitive checks its arguments, reserves the requested ρ, and only then lets the source
compute; after the draw the debit is what the noise says the draw cost, never more than was
reserved.  If anything fails between reservation and draw, the reservation stays spent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from core.errors import BudgetError, BudgetExceeded, SchemaError
from core.moments import (
    SUMMAND_BITS,
    EntryReference,
    IntArray,
    MomentFrame,
    MomentRequest,
    NoisyMoments,
)
from core.private import sensitivity
from core.private.checks import check_cliques, check_entries, check_numeric, check_pairs
from core.private.feature_sensitivity import moments_sensitivity
from core.private.moments import norm_grid
from core.private.noise import GaussianDraw, Noise
from core.private.scales import gaussian_sigma, selection_scale
from core.private.source import Source
from core.private.terms import Confined, GrantTerms, SourceSlot
from core.releases import (
    SCORE_GRID,
    NoisyMarginal,
    NoisyScores,
    PairReference,
    Provenance,
    Recoding,
    Relation,
    Unit,
)

Pair = tuple[str, str]


class Grant(Confined):
    """Noisy answers about one table, for at most the ρ that was charged.

    Made by :class:`core.private.vault.Vault` alone.  All answers are noisy; nothing exact can be
    read from a grant, which can be neither copied nor pickled.  Safe to use from several threads.
    """

    def __init__(self, slot: SourceSlot, noise: Noise, terms: GrantTerms) -> None:
        self.__slot: SourceSlot | None = slot
        self.__noise = noise
        self.__terms = terms
        self.__digest = slot.get().schema.digest
        self.__debited = Fraction(0)
        self.__lock = threading.Lock()
        self.__process = os.getpid()
        # Exact scores by reference; the reference is kept, so that its id stays its own.
        self.__scores: dict[int, tuple[PairReference, dict[Pair, int]]] = {}
        # Exact second moments by frame, likewise.
        self.__grams: dict[int, tuple[MomentFrame, IntArray]] = {}

    def __repr__(self) -> str:
        """Only public facts."""
        return f"Grant({self.__terms.what!r}, rho={self.rho}, remaining={self.remaining})"

    # -- public facts ----------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        """The charge that this grant belongs to."""
        return self.__terms.request_id

    @property
    def rho(self) -> Fraction:
        """What was charged."""
        return self.__terms.rho

    @property
    def debited(self) -> Fraction:
        """What the draws cost so far, by the noise library's own maps."""
        return self.__debited

    @property
    def remaining(self) -> Fraction:
        """What has not been debited yet."""
        return self.rho - self.__debited

    @property
    def relation(self) -> Relation:
        """What neighbouring tables are."""
        return self.__terms.relation

    @property
    def unit(self) -> Unit:
        """The unit of protection."""
        return self.__terms.unit

    @property
    def closed(self) -> bool:
        """True when no more draws are possible."""
        return self.__slot is None

    def provenance(self, *, flags: Sequence[str] = ()) -> Provenance:
        """Where the answers came from, what they cost so far, and every flag that applies."""
        terms = self.__terms
        return Provenance(
            what=terms.what,
            request_id=terms.request_id,
            population=terms.population,
            rho=terms.rho,
            debited=self.debited,
            relation=terms.relation,
            unit=terms.unit,
            delta=terms.delta,
            schema_digest=self.__digest,
            noise=self.__noise.name,
            simulated=terms.simulated,
            flags=tuple(dict.fromkeys((*terms.flags, *flags))),
        )

    def close(self) -> None:
        """End the grant: no more draws.  What was not debited is forfeited, never refunded."""
        with self.__lock:
            self.__slot = None
            self.__scores.clear()
            self.__grams.clear()

    # -- counts ----------------------------------------------------------------------------

    def counts(
        self,
        cliques: Sequence[tuple[str, ...]],
        rho: Fraction,
        *,
        recoding: Recoding | None = None,
    ) -> tuple[NoisyMarginal, ...]:
        """Noisy contingency tables of all cliques: one σ, one debit.

        Sensitivity √T (√(2T) under ``replace_one``) for T tables together.

        Parameters
        ----------
        cliques
            Distinct modelled columns each, of any order.
        rho
            Budget of all tables together.
        recoding
            Compression to apply first; it must come from released values.

        Raises
        ------
        SchemaError
            For unknown or repeated columns, or a table of more than ten million cells.
        BudgetExceeded
            When less than ``rho`` remains, or the grant is closed.  The data were not touched.
        """
        source = self._open()
        cliques = tuple(tuple(clique) for clique in cliques)
        check_cliques(source, cliques, recoding)
        squared = sensitivity.histograms(len(cliques), self.relation, self.unit.rows)
        reserved = self._reserve(rho, gaussian=squared)
        tables = source.counts(cliques, recoding)
        draw = self._gaussian(
            np.concatenate([table.ravel() for table in tables]), squared, reserved
        )
        ends = np.cumsum([table.size for table in tables])[:-1]
        parts = np.split(draw.values, ends)
        return tuple(
            NoisyMarginal(clique, part.reshape(table.shape), draw.sigma, draw.rho / len(tables))
            for clique, part, table in zip(cliques, parts, tables, strict=True)
        )

    def row_count(self, rho: Fraction) -> NoisyMarginal:
        """The number of rows, as the table of the empty clique (a 0-dimensional array).

        Sensitivity 1.  Under ``replace_one`` the count is public: the exact number is returned,
        σ is 0 and nothing is debited.
        """
        source = self._open()
        squared = sensitivity.row_count(self.relation, self.unit.rows)
        if squared == 0:
            return NoisyMarginal((), np.array(source.row_count()), 0.0, Fraction(0))
        reserved = self._reserve(rho, gaussian=squared)
        exact = np.array([source.row_count()], dtype=np.int64)
        draw = self._gaussian(exact, squared, reserved)
        return NoisyMarginal((), draw.values.reshape(()), draw.sigma, draw.rho)

    # -- pair scores -----------------------------------------------------------------------

    def select_pair(
        self, candidates: Sequence[Pair], reference: PairReference, rho: Fraction
    ) -> Pair:
        """One pair by the exponential mechanism on its L1 distance to a frozen reference.

        Sensitivity 1 (2 under ``replace_one``) row, 1024 (2048) on the score grid.  Exact scores
        of all pairs of a reference are computed once and never leave the grant.

        Parameters
        ----------
        candidates
            Pairs of the reference's columns; from public roles and earlier answers only.
        reference
            Independence model, from released values only.
        rho
            Budget of this round, ε²/8.

        Raises
        ------
        SchemaError
            Without candidates, or for pairs that the reference does not know.
        BudgetExceeded
            When less than ``rho`` remains, or the grant is closed.  The data were not touched.
        """
        source = self._open()
        pairs = check_pairs(source, candidates, reference)
        bound = SCORE_GRID * sensitivity.pair_score(self.relation, self.unit.rows)
        reserved = self._reserve(rho, selection=bound)
        known = self._scores_of(source, reference)
        scores = np.array([known[pair] for pair in pairs], dtype=np.int64)
        return pairs[self._select(scores, bound, reserved)]

    def score_pairs(
        self, pairs: Sequence[Pair], reference: PairReference, rho: Fraction
    ) -> NoisyScores:
        """Noisy scores of all given pairs as one vector: sensitivity √m (2√m), one debit.

        Parameters, errors and the reference are those of :meth:`select_pair`.
        """
        source = self._open()
        wanted = check_pairs(source, pairs, reference)
        squared = SCORE_GRID**2 * sensitivity.pair_score_vector(
            len(wanted), self.relation, self.unit.rows
        )
        reserved = self._reserve(rho, gaussian=squared)
        known = self._scores_of(source, reference)
        exact = np.array([known[pair] for pair in wanted], dtype=np.int64)
        draw = self._gaussian(exact, squared, reserved)
        return NoisyScores(wanted, draw.values / SCORE_GRID, draw.sigma / SCORE_GRID, draw.rho)

    def _scores_of(self, source: Source, reference: PairReference) -> dict[Pair, int]:
        """Exact scores of all pairs of a reference, in grid units."""
        with self.__lock:
            kept = self.__scores.get(id(reference))
            if kept is None:
                names = sorted(reference.shares)
                pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
                scores = {}
                for index, table in source.each_count(pairs, reference.recoding):
                    difference = SCORE_GRID * table - reference.grid_table(pairs[index])
                    scores[pairs[index]] = int(np.abs(difference).sum())
                kept = self.__scores[id(reference)] = (reference, scores)
            return kept[1]

    # -- moments ---------------------------------------------------------------------------

    def moments(self, request: MomentRequest, rho: Fraction) -> NoisyMoments:
        """Noisy sums of clipped, scaled products of columns: one σ, one debit.

        Values are centred at public constants or released means, clipped to the unit box (and to
        the frame's row norm), cut to a grid towards zero and summed exactly.  A missing value
        counts as the declared constant, or as the centre when there is none; in a frame of
        complete cases its row contributes nothing.  The number of complete cases is exact and
        free where it is public: under ``replace_one``, if the declarations let no row be missing.

        Raises
        ------
        SchemaError
            For columns without numbers, and cells that no column has.
        BudgetExceeded
            When less than ``rho`` remains, or the grant is closed.  The data were not touched.
        """
        source = self._open()
        check_numeric(source, request.frame, plain=False)
        scale = request.whole * request.diagonal_weight.denominator
        squared = scale**2 * moments_sensitivity(
            request, source.schema, self.relation, self.unit.rows
        )
        if squared == 0:  # by the relation and the declarations; then the row count is public
            return NoisyMoments(request, np.array([source.row_count()]), 0.0, Fraction(0))
        reserved = self._reserve(rho, gaussian=squared)
        exact = self._moments_of(source, request) * request.multipliers
        draw = self._gaussian(exact, squared, reserved)
        return NoisyMoments(request, draw.values, draw.sigma, draw.rho)

    def select_entry(
        self, candidates: Sequence[Pair] | None, reference: EntryReference, rho: Fraction
    ) -> Pair:
        """One second moment by the exponential mechanism on its distance to a frozen reference.

        Sensitivity 1 (2 under ``replace_one``) on sums; a diagonal entry is ``(name, name)``.

        Parameters
        ----------
        candidates
            Entries to choose from; None stands for the whole triangle.
        reference
            Frozen sums, from released values only.
        rho
            Budget of this round, ε²/8.

        Raises
        ------
        SchemaError
            Without candidates, or for columns that the reference's frame does not hold.
        BudgetExceeded
            When less than ``rho`` remains, or the grant is closed.  The data were not touched.
        """
        source = self._open()
        check_numeric(source, reference.frame)
        rows, columns = check_entries(candidates, reference.frame)
        bound = (1 << SUMMAND_BITS) * sensitivity.entry_score(self.relation, self.unit.rows)
        reserved = self._reserve(rho, selection=bound)
        exact = self._gram_of(source, reference.frame)[rows, columns]
        scores = np.abs(exact - reference.grid_units()[rows, columns])
        index = self._select(scores, bound, reserved)
        names = reference.frame.columns
        return names[rows[index]], names[columns[index]]

    def _moments_of(self, source: Source, request: MomentRequest) -> IntArray:
        """Exact sums; second moments come from the frame's Gram matrix, which has their grid."""
        if request.degree != 2 or not request.frame.plain:
            return source.moments(request)
        place = request.frame.places
        picks = np.array([[place[a], place[b]] for a, b in request.monomials])
        sums: IntArray = self._gram_of(source, request.frame)[picks[:, 0], picks[:, 1]]
        return sums

    def _gram_of(self, source: Source, frame: MomentFrame) -> IntArray:
        """Exact second moments of a frame, computed once."""
        with self.__lock:
            kept = self.__grams.get(id(frame))
            if kept is None:
                kept = self.__grams[id(frame)] = (frame, source.gram(frame))
            return kept[1]

    def clip_norm(
        self,
        frame: MomentFrame,
        candidates: Sequence[Fraction],
        penalties: Sequence[float],
        rho: Fraction,
    ) -> Fraction:
        """A squared row clip C² by the exponential mechanism, score -(Σ(‖x‖² - C²)₊ + penalty)/d.

        Sensitivity 1 under both relations.

        Parameters
        ----------
        frame
            Box of the scaled rows, without a clip of its own.
        candidates
            Squared clips, 1 or more each.
        penalties
            Public cost of the noise that each candidate entails, in units of summed squared norm.

        Raises
        ------
        SchemaError
            For a frame that clips already, a clip below 1, or penalties that do not fit.
        BudgetExceeded
            When less than ``rho`` remains, or the grant is closed.  The data were not touched.
        """
        source = self._open()
        check_numeric(source, frame)
        clips = tuple(Fraction(clip) for clip in candidates)
        unit = norm_grid(len(frame.columns)) ** 2
        costs = np.asarray(penalties, dtype=np.float64) * unit
        if frame.clip_squared is not None or not clips or min(clips) < 1:
            raise SchemaError("choosing a clip needs a frame without one and candidates from 1 up")
        if costs.shape != (len(clips),) or not np.all(np.abs(costs) < 2.0**52):
            raise SchemaError("choosing a clip needs one finite penalty a candidate")
        columns = len(frame.columns)
        bound = columns * unit * sensitivity.clip_norm(self.relation, self.unit.rows)
        reserved = self._reserve(rho, selection=bound)
        excess = source.norm_profile(frame, [int(clip * unit) for clip in clips])
        scores = -(excess + np.rint(costs).astype(np.int64))
        return clips[self._select(scores, bound, reserved)]

    # -- the purse -------------------------------------------------------------------------

    def _open(self) -> Source:
        slot = self.__slot
        if os.getpid() != self.__process:  # a fork's copy would spend the same charge twice
            raise BudgetExceeded("a grant stays in the process that was charged for it")
        if slot is None:
            raise BudgetExceeded("this grant is closed; make a new charge to measure more")
        return slot.get()

    def _reserve(
        self, rho: Fraction, *, gaussian: Fraction | None = None, selection: int | None = None
    ) -> Fraction:
        """Debit the whole request before access; refuse exactly, without tolerance."""
        if not isinstance(rho, Fraction) or rho <= 0:
            raise BudgetError("the rho of a draw must be a fraction above 0")
        # A budget that asks for impossible noise is refused here, before it costs anything.
        if gaussian is not None:
            gaussian_sigma(gaussian, rho)
        if selection is not None:
            selection_scale(selection, rho)
        with self.__lock:
            if self.__slot is None:
                raise BudgetExceeded("this grant is closed; make a new charge to measure more")
            if rho > self.remaining:
                raise BudgetExceeded(
                    f"the draw asks for rho {rho}, but {self.remaining} of this grant remains"
                )
            self.__debited += rho
        return rho

    def _book(self, reserved: Fraction, spent: Fraction) -> None:
        """Replace a reservation by the exact debit of its draw."""
        if not 0 <= spent <= reserved:
            raise BudgetError("a draw cost more than was reserved for it; its answer is withheld")
        with self.__lock:
            self.__debited += spent - reserved

    def _gaussian(self, exact: IntArray, squared: Fraction, reserved: Fraction) -> GaussianDraw:
        draw = self.__noise.gaussian(exact, sensitivity_squared=squared, rho=reserved)
        self._book(reserved, draw.rho)
        return draw

    def _select(self, scores: IntArray, bound: int, reserved: Fraction) -> int:
        draw = self.__noise.select(scores, sensitivity=bound, rho=reserved)
        self._book(reserved, draw.rho)
        return draw.index
