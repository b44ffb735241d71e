"""Posteriors from a covariance release, for columns of which every entry was measured; free.

With the released noisy means m as centres and u = (x - m) / w, w the half-width, the release holds
noisy sums of u u'.  The sums of u are known as well.  For a column with bounds c ± h the mean came
from S, the sum of (x - c) / h plus noise, and

    sum of (u + a) = (h / w) · sum of (x - c) / h,   a = (m - c) / w,

so that (h / w) S is a release of the sum of u + a, with noise that is independent of all other
noise.  Neither the noisy row count nor anything that was done to m enters: a is a released number.
This is the ``offset`` of a :class:`core.pumba.gram.GramVariable`.

What is approximate: values further than w from m are cut there in the products only, which adds
to the sums what nobody measured; a slope or correlation feels the product of two such shifts.  A
caveat says so where it can matter.

Entries that were measured on rows shrunk to a norm are used only where a block has not been
measured without.  That is said, not refused: the clip's score sets the norm that is cut off
against the noise that is saved, which keeps the shift near the noise, and in simulations of heavy
tails 95 % intervals then covered 91 to 94 % (``docs/covariance.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.errors import EstimationError
from core.moments import FloatArray, MomentFrame, grid_bits
from core.pace.release import CovarianceRelease, Draw
from core.pumba.analyses import CorrelationAnalysis, Facts, RegressionAnalysis
from core.pumba.gram import NoisyGram
from core.pumba.gram_variable import GramVariable
from core.statistics import Family, NoiseLaw, NoisyStatistic

_Releases = dict[tuple[int, int], list[NoisyStatistic]]

#: Columns of one question.  Their sums are drawn together, and those are about half the square.
MOST_COLUMNS = 12
#: Bound on what cutting may do to a variance, as a share of it, from which it is said.
CUT_MATTERS = 0.05
#: Names in a sentence.
LISTED = 3

PUBLIC_MEANS = (
    "The means of this release were public, so the columns' sums were never measured: how far the "
    "rows lie from those means on average is unknown, and every slope and correlation depends on "
    "it. A posterior needs a release with private means. The regression and the correlations of "
    "the matrix itself take the public means as true."
)
SHRUNK = (
    "Long rows were shrunk to a squared norm of {clip} (of {size}) before these entries were "
    "measured: the sums are over shrunk rows. The norm was chosen so that shrinking costs less "
    "than the noise it saves, but the intervals do not know of it. The methods “ssp”, “ssp_tight” "
    "and “pace” measure rows as they are."
)


@dataclass(frozen=True, eq=False)
class MeasuredAnswer:
    """A question that measured entries answer, and the sentences that belong to the answer."""

    analysis: RegressionAnalysis | CorrelationAnalysis
    caveats: tuple[str, ...]


class MeasuredEntries:
    """Which entries of a release were measured, and which questions they answer.

    Parameters
    ----------
    release
        Any covariance release, a partial one included.
    """

    def __init__(self, release: CovarianceRelease) -> None:
        self.release = release
        self._place = {name: index for index, name in enumerate(release.columns)}
        self._whole: _Releases = {}
        self._all: _Releases = {}
        for draw in release.draws:
            for row in range(draw.start, draw.stop):
                a, b = release.pairs[row].tolist()
                step = draw.step / float(draw.diagonal_weight) if a == b else draw.step
                law = NoiseLaw(Family.DISCRETE_GAUSSIAN, float(release.sigmas[row]), step)
                found = NoisyStatistic(float(release.sums[row]), law)
                self._all.setdefault((a, b), []).append(found)
                if not _shrinks(draw, release.size):
                    self._whole.setdefault((a, b), []).append(found)

    @cached_property
    def refusal(self) -> str | None:
        """Why the block of all columns has no posterior, or None."""
        return self.refusal_of(self.release.columns)

    def refusal_of(self, columns: Sequence[str]) -> str | None:
        """Why the block of these columns has no posterior, in words, or None.

        Raises
        ------
        EstimationError
            For a column that is not in the release.
        """
        places = self._places(columns)
        if self.release.means.public:
            return PUBLIC_MEANS
        if len(places) < 2:
            return "A regression or a correlation needs two columns."
        constant = [name for name in columns if _constant(self.release, name)]
        if constant:
            return f"{_listing(constant)}: only one value is declared, so there is no variation."
        if len(places) > MOST_COLUMNS:
            return (
                f"{len(places)} columns are too many for one question; choose up to {MOST_COLUMNS}."
            )
        return self._lacking(places)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns with at least one partner, in file order."""
        return tuple(name for name in self.release.schema.names if self.partners(name))

    def partners(self, column: str) -> tuple[str, ...]:
        """Columns of which the block with ``column`` has a posterior, in file order."""
        return tuple(
            name
            for name in self.release.schema.names
            if name != column and self.refusal_of((column, name)) is None
        )

    def regression(self, outcome: str, predictors: Sequence[str]) -> MeasuredAnswer:
        """Linear regression from measured entries alone.

        Raises
        ------
        EstimationError
            The block does not qualify (the message is the refusal), or a column is used twice.
        """
        columns = (*predictors, outcome)
        gram = self._gram(columns)
        title = f"{outcome} on {', '.join(predictors)}"
        analysis = RegressionAnalysis(title, gram, outcome, tuple(predictors), self._facts(columns))
        return MeasuredAnswer(analysis, self._caveats(columns))

    def correlations(self, columns: Sequence[str]) -> MeasuredAnswer:
        """Correlations of all pairs of these columns from measured entries alone.

        Raises
        ------
        EstimationError
            The block does not qualify (the message is the refusal).
        """
        gram = self._gram(columns)
        title = " and ".join(columns) if len(columns) == 2 else "correlations"
        analysis = CorrelationAnalysis(title, gram, facts=self._facts(columns))
        return MeasuredAnswer(analysis, self._caveats(columns))

    # -- the sums --------------------------------------------------------------------------

    def _gram(self, columns: Sequence[str]) -> NoisyGram:
        reason = self.refusal_of(columns)
        if reason is not None:
            raise EstimationError(reason)
        release, places = self.release, self._places(columns)
        variables, sums = [], {}
        for name, place in zip(columns, places, strict=True):
            scale = release.scales[place][1]
            variables.append(
                GramVariable(
                    name,
                    -1.0,
                    1.0,
                    origin=scale.centre,
                    unit=scale.half_width,
                    offset=float(self._offsets[place]),
                )
            )
            sums[name] = self._sum(place)
        measured = self._measured(places)
        products = {
            (columns[i], columns[j]): tuple(measured[entry]) for i, j, entry in _entries(places)
        }
        return NoisyGram(tuple(variables), _count(release), sums, products)

    def _sum(self, place: int) -> NoisyStatistic:
        """Release of the sum of u + a from the noisy sum behind the mean."""
        release = self.release
        ratio, half = float(self._ratios[place]), self._bounds.scales[place][1].half_width
        sigma = float(release.means.sigmas[place]) * release.rows.value / half
        law = NoiseLaw(Family.DISCRETE_GAUSSIAN, ratio * sigma, ratio / (1 << grid_bits(1)))
        return NoisyStatistic(ratio * float(release.means.sums[place]), law)

    @cached_property
    def _bounds(self) -> MomentFrame:
        """Middle and half-width of the declared bounds, about which the means were measured."""
        return MomentFrame.from_bounds(self.release.schema, self.release.columns)

    @cached_property
    def _ratios(self) -> FloatArray:
        """Ratio h / w of each column."""
        halves = np.array([scale.half_width for _, scale in self._bounds.scales])
        return np.asarray(halves / self.release.half_widths)

    @cached_property
    def _offsets(self) -> FloatArray:
        """Offset a = (m - c) / w of each column."""
        middles = np.array([scale.centre for _, scale in self._bounds.scales])
        centres = np.array([scale.centre for _, scale in self.release.scales])
        return np.asarray((centres - middles) / self.release.half_widths)

    # -- words -----------------------------------------------------------------------------

    def _places(self, columns: Sequence[str]) -> list[int]:
        for name in columns:
            if name not in self._place:
                raise EstimationError(f"column {name!r} is not in this covariance; choose another")
        if len(set(columns)) != len(columns):
            raise EstimationError("a column is named twice in one question; name it once")
        return [self._place[name] for name in columns]

    def _measured(self, places: Sequence[int]) -> _Releases:
        """Releases of whole rows where they have every entry of the block, else all releases."""
        whole = all(entry in self._whole for _, _, entry in _entries(places))
        return self._whole if whole else self._all

    def _lacking(self, places: Sequence[int]) -> str | None:
        absent = [entry for _, _, entry in _entries(places) if entry not in self._all]
        if not absent:
            return None
        early = " The release was cancelled early." if self.release.partial else ""
        return (
            f"{self._entry_words(absent)} {'was' if len(absent) == 1 else 'were'} never measured; "
            f"the matrix fills such entries in, which is no measurement.{early}"
        )

    def _entry_words(self, entries: Sequence[tuple[int, int]]) -> str:
        names = self.release.columns
        return _listing(
            [
                f"the square of {names[a]}" if a == b else f"{names[a]} × {names[b]}"
                for a, b in entries
            ]
        )

    def _facts(self, columns: Sequence[str]) -> Facts:
        """Bounds in raw units, and products that the rounds chose."""
        scales = dict(self.release.scales)
        frames = ((name, scales[name].centre, scales[name].half_width) for name in columns)
        return Facts(
            clipped=tuple((name, centre - half, centre + half) for name, centre, half in frames),
            selected=self._selected(columns),
            stated=False,
        )

    def _selected(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Products that a round measured because the rows looked unlike the matrix there."""
        chosen = {step.chosen for step in self.release.rounds}
        return tuple(f"{a} × {b}" for a, b in sorted(chosen) if a != b and {a, b} <= set(columns))

    def _caveats(self, columns: Sequence[str]) -> tuple[str, ...]:
        found = []
        release = self.release
        measured = self._measured(self._places(columns))
        if measured is self._all and release.clip is not None:
            clip = f"{float(release.clip.squared):.4g}"
            found.append(SHRUNK.format(clip=clip, size=release.size))
        shares = {name: self._cut_share(self._place[name], measured) for name in columns}
        cut = [name for name, share in shares.items() if share >= CUT_MATTERS]
        if cut:
            worst = max(shares.values())
            found.append(
                f"Values of {_listing(cut)} further than one half-width from the mean are cut "
                "there in the products, and only at the declared bounds in the sums. In the worst "
                f"case that moves a variance by {min(worst, 1.0):.0%}; if few values lie that far "
                "out, by nothing."
            )
        return tuple(found)

    def _cut_share(self, place: int, measured: _Releases) -> float:
        """Largest share of a column's variance that cutting in the products alone can make up.

        Of n rows at most the sum of squares of u can be cut, each by at most the distance from the
        half-width to the further bound; the squared mean of that enters the variance.
        """
        reach = max(float(self._ratios[place] + abs(self._offsets[place])) - 1.0, 0.0)
        squares = measured[place, place]
        weights = np.array([one.law.sd**-2.0 for one in squares])
        total = float(weights @ [one.value for one in squares] / weights.sum())
        return float(np.clip(total / self.release.rows.value, 0.0, 1.0)) * reach**2


def _shrinks(draw: Draw, columns: int) -> bool:
    """Whether a row clip was in force that can shrink a row of the box."""
    return draw.clip_squared is not None and draw.clip_squared < columns


def _entries(places: Sequence[int]) -> list[tuple[int, int, tuple[int, int]]]:
    """Positions within a block, and the entry of the release, of its squares and products."""
    return [
        (i, j, (min(places[i], places[j]), max(places[i], places[j])))
        for i in range(len(places))
        for j in range(i, len(places))
    ]


def _count(release: CovarianceRelease) -> int | NoisyStatistic:
    """The public number of rows, or the noisy one as it was drawn."""
    if release.rows.noisy is None:
        return int(release.rows.value)
    law = NoiseLaw(Family.DISCRETE_GAUSSIAN, release.rows.sigma)
    return NoisyStatistic(float(release.rows.noisy), law)


def _constant(release: CovarianceRelease, name: str) -> bool:
    low, high = release.schema[name].bounds
    return low == high


def _listing(names: Sequence[str]) -> str:
    """Up to three names, and how many more."""
    if len(names) > LISTED + 1:
        return f"{', '.join(names[:LISTED])} and {len(names) - LISTED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))
