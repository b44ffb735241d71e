"""How much of the protected columns the outcome carries within strata, and what chance explains.

The plug-in estimate of conditional mutual information is biased upwards, the more so the more
strata there are.  The permutation floor shows by how much: the same figure with the protected
codes shuffled within strata, where nothing but chance is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.audit.resampling import NO_INTERVAL, Interval, bootstrap_table
from core.audit.worlds import Codes, World
from core.errors import EstimationError
from core.roles import Constraint

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Differences below this many bits are rounding of floating-point sums.
ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class InformationTest:
    """Conditional mutual information of a sample, and its law when only chance is at work.

    Attributes
    ----------
    bits
        Plug-in I(outcome; protected | stratum).
    floor
        Mean of the same figure over shuffles of the protected codes within strata.
    floor_deviation
        Standard deviation over the shuffles.
    p_value
        Share of tables, this one and the shuffled ones together, with at least as many bits.
    permutations
        How many shuffles.
    rows
        Rows in all.
    informative_rows
        Rows in strata that hold at least two groups and two outcomes; only these can tell.
    strata
        Strata that occur.
    """

    bits: float
    floor: float
    floor_deviation: float
    p_value: float
    permutations: int
    rows: int
    informative_rows: int
    strata: int

    @property
    def excess(self) -> float:
        """Bits above the floor: zero on average under independence, so it may be negative."""
        return self.bits - self.floor

    @property
    def reason(self) -> str:
        """Why nothing could be seen, or an empty text."""
        if self.rows == 0:
            return "there are no rows"
        if self.informative_rows == 0:
            return "no stratum holds two groups and two outcomes, so nothing can be compared"
        return ""


def conditional_information(outcome: Codes, protected: Codes, stratum: Codes) -> float:
    """Plug-in I(outcome; protected | stratum) in bits, never below 0.

    Parameters
    ----------
    outcome, protected, stratum
        (rows,) integer codes; they need not be dense.  Constant strata give plain mutual
        information.

    Raises
    ------
    EstimationError
        When the arrays differ in length.

    Notes
    -----
    Costs nothing.  Only combinations that occur are counted, so that any number of strata will do.

    Examples
    --------
    >>> conditional_information(np.array([0, 0, 1, 1]), np.array([5, 5, 9, 9]), np.zeros(4))
    1.0
    """
    return _Cells.of(outcome, protected, stratum).bits()


def permutation_test(
    outcome: Codes, protected: Codes, stratum: Codes, *, permutations: int = 200, seed: int = 0
) -> InformationTest:
    """Compare conditional information with its law under independence within strata.

    Parameters
    ----------
    outcome, protected, stratum
        (rows,) integer codes.
    permutations
        Shuffles of the protected codes within strata, at least 2.
    seed
        Of the shuffles.

    Raises
    ------
    EstimationError
        For fewer than two permutations, or arrays that differ in length.

    Notes
    -----
    Costs nothing.  Shuffling within strata keeps both conditional tables (outcome and protected
    given the stratum), so the test is exact for independence (Good 2005, "Permutation, parametric
    and bootstrap tests", chapter 3); only the three-way counts move.
    """
    if permutations < 2:
        raise EstimationError("a permutation test needs at least two permutations")
    cells = _Cells.of(outcome, protected, stratum)
    bits, rows, strata = cells.bits(), cells.rows, len(cells.stratum_sizes)
    telling = cells.telling()
    count = int(np.count_nonzero(telling))
    if count == 0:
        return InformationTest(bits, bits, 0.0, 1.0, permutations, rows, 0, strata)
    one, other, given = (
        _dense(codes[telling])[0] for codes in (cells.outcome, cells.protected, cells.stratum)
    )
    start = float(_n_log_n(np.bincount(cells.triple[telling])).sum())
    sums = shuffled_sums(one, other, given, permutations, np.random.default_rng(seed))
    shuffled = np.maximum(bits + (sums - start) / rows, 0.0)
    above = int(np.count_nonzero(shuffled >= bits - ROUNDING))
    return InformationTest(
        bits=bits,
        floor=float(shuffled.mean()),
        floor_deviation=float(shuffled.std(ddof=1)),
        p_value=(1 + above) / (1 + permutations),
        permutations=permutations,
        rows=rows,
        informative_rows=count,
        strata=strata,
    )


def information_interval(
    outcome: Codes,
    protected: Codes,
    stratum: Codes,
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval of :func:`conditional_information` in bits, not below 0.

    The redrawn tables are shifted to the figure: redrawing adds the upward bias a second time.
    """
    cells = _Cells.of(outcome, protected, stratum)
    triples, first, counts = np.unique(cells.triple, return_index=True, return_counts=True)
    at = (cells.outcome[first], cells.protected[first], cells.stratum[first])
    kept = _Cells.of(*at)
    ends = bootstrap_table(
        counts.astype(np.int64),
        kept.bits,
        draws=draws,
        level=level,
        seed=seed,
        centre=cells.bits() if len(triples) else 0.0,
    )
    return NO_INTERVAL if ends[0] is None else (max(0.0, ends[0]), max(0.0, ends[1]))


def rule_codes(world: World, rule: Constraint) -> tuple[IntArray, IntArray, IntArray]:
    """Outcome, protected and stratum codes of every row; several columns count as one."""
    return (
        world.joint(sorted(rule.outcome)),
        world.joint(sorted(rule.protected)),
        world.joint(sorted(rule.admissible)),
    )


def rule_information(
    world: World, rule: Constraint, *, permutations: int = 200, seed: int = 0
) -> InformationTest:
    """:func:`permutation_test` of a declared rule in one world."""
    return permutation_test(*rule_codes(world, rule), permutations=permutations, seed=seed)


def _dense(codes: Codes) -> tuple[IntArray, int]:
    """Codes renumbered from 0 over those that occur, and how many there are."""
    values, renumbered = np.unique(np.asarray(codes), return_inverse=True)
    return renumbered.astype(np.int64), len(values)


def _n_log_n(counts: NDArray[np.float64] | IntArray) -> FloatArray:
    """N log2 n, with 0 log 0 = 0."""
    return np.asarray(counts * np.log2(np.maximum(counts, 1)), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class _Cells:
    """Rows with renumbered codes, and the combinations that each row belongs to."""

    outcome: IntArray
    protected: IntArray
    stratum: IntArray
    outcome_pair: IntArray
    protected_pair: IntArray
    triple: IntArray
    stratum_sizes: IntArray

    @classmethod
    def of(cls, outcome: Codes, protected: Codes, stratum: Codes) -> _Cells:
        """Renumber and combine."""
        if not len(outcome) == len(protected) == len(stratum):
            raise EstimationError("outcome, protected and stratum codes need one value a row each")
        (one, ones), (other, others), (given, strata) = map(_dense, (outcome, protected, stratum))
        outcome_pair, _ = _dense(given * ones + one)
        protected_pair, _ = _dense(given * others + other)
        triple, _ = _dense(outcome_pair * others + other)
        sizes = np.bincount(given, minlength=strata)
        return cls(one, other, given, outcome_pair, protected_pair, triple, sizes)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.outcome)

    def bits(self, weights: IntArray | None = None) -> float:
        """Plug-in conditional information; every row counts as often as its weight says."""
        rows = self.rows if weights is None else int(weights.sum())
        if rows == 0:
            return 0.0
        triple, outcome, protected, stratum = (
            float(_n_log_n(np.bincount(codes, weights=weights)).sum())
            for codes in (self.triple, self.outcome_pair, self.protected_pair, self.stratum)
        )
        return max(0.0, (triple - outcome - protected + stratum) / rows)

    def telling(self) -> NDArray[np.bool_]:
        """Rows in strata with at least two groups and two outcomes."""
        strata = len(self.stratum_sizes)
        several = np.ones(strata, dtype=np.bool_)
        for pair in (self.outcome_pair, self.protected_pair):
            _, first = np.unique(pair, return_index=True)
            several &= np.bincount(self.stratum[first], minlength=strata) > 1
        return np.asarray(several[self.stratum], dtype=np.bool_)


def shuffled_sums(
    outcome: IntArray,
    protected: IntArray,
    stratum: IntArray,
    permutations: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Sums of n log2 n over the cells of tables whose groups were shuffled within strata.

    Only these change: the outcome's and the group's own tables with the strata stay as they are.

    Parameters
    ----------
    outcome, protected, stratum
        (rows,) codes from 0, at least one row.

    Returns
    -------
    ndarray
        (permutations,)

    Notes
    -----
    Where strata are large a table with given margins is drawn cell by cell (hypergeometric laws),
    else rows are shuffled; the law is the same and the cheaper way is taken.
    """
    sizes = [int(codes.max()) + 1 for codes in (stratum, protected, outcome)]
    draws_a_table = sizes[0] * (sizes[1] - 1) * (sizes[2] - 1)
    by = _sums_by_tables if 2 * draws_a_table <= len(outcome) else _sums_by_rows
    return by(outcome, protected, stratum, permutations, generator)


def shuffled_within(codes: IntArray, stratum: IntArray, generator: np.random.Generator) -> IntArray:
    """Codes shuffled among the rows of equal stratum; strata ascend, as after a sort."""
    # sorting stratum plus a uniform number permutes within sorted strata
    return codes[np.argsort(stratum + generator.random(len(stratum)))]


def _sums_by_rows(
    outcome: IntArray,
    protected: IntArray,
    stratum: IntArray,
    permutations: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Shuffle rows."""
    rows = len(outcome)
    order = np.argsort(stratum, kind="stable")
    outcome, protected, stratum = outcome[order], protected[order], stratum[order]
    groups, outcomes = int(protected.max()) + 1, int(outcome.max()) + 1
    pair, pairs = _dense(stratum * outcomes + outcome)
    terms = _n_log_n(np.arange(rows + 1))
    sums = np.empty(permutations)
    for draw in range(permutations):
        cells = pair * groups + shuffled_within(protected, stratum, generator)
        if pairs * groups <= 8 * rows:
            counts = np.bincount(cells)
        else:
            counts = np.unique(cells, return_counts=True)[1]
        sums[draw] = terms[counts].sum()
    return sums


def _sums_by_tables(
    outcome: IntArray,
    protected: IntArray,
    stratum: IntArray,
    permutations: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Draw tables with the given margins, cell after cell."""
    strata = int(stratum.max()) + 1
    margins = []
    for codes in (outcome, protected):
        size = int(codes.max()) + 1
        counts = np.bincount(stratum * size + codes, minlength=strata * size)
        margins.append(counts.reshape(strata, size))
    outcomes, groups = margins
    terms = _n_log_n(np.arange(len(outcome) + 1))
    step = max(1, 1_000_000 // (outcomes.size * groups.shape[1]))
    sums = np.empty(permutations)
    for start in range(0, permutations, step):
        draws = min(step, permutations - start)
        tables = _tables(outcomes, groups, draws, generator)
        sums[start : start + draws] = terms[tables].sum(axis=(1, 2, 3))
    return sums


def _tables(
    outcomes: IntArray, groups: IntArray, draws: int, generator: np.random.Generator
) -> IntArray:
    """(draws, strata, groups, outcomes) random tables with these margins in every stratum."""
    drawn = np.empty((draws, *groups.shape, outcomes.shape[1]), dtype=np.int64)
    left = np.broadcast_to(outcomes, (draws, *outcomes.shape)).copy()
    for group in range(groups.shape[1] - 1):
        needed = np.broadcast_to(groups[:, group], (draws, len(groups))).copy()
        for cell in range(outcomes.shape[1] - 1):
            beyond = left[..., cell + 1 :].sum(axis=-1)
            taken = generator.hypergeometric(left[..., cell], beyond, needed)
            drawn[:, :, group, cell] = taken
            left[..., cell] -= taken
            needed -= taken
        drawn[:, :, group, -1] = needed
        left[..., -1] -= needed
    drawn[:, :, -1] = left
    return drawn
