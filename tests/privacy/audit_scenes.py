"""A release on a pair of neighbouring tables, played thousands of times, and what it shows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch

import numpy as np

from core.moments import NoisyMoments
from core.pace.release import CovarianceRelease, Means, RowCount
from core.private.grant import Grant
from core.private.noise import Noise, OpenDPNoise
from core.private.table import CodedTable
from core.pumba.release import StatisticsRelease
from core.releases import NoisyMarginal, NoisyScores, Relation, TreeRelease, Unit
from core.simulation import SeededNoise
from tests.privacy.auditing import Outcomes, Sides, Verdict, judge, lattice_excess
from tests.privacy.replay import Draw, Recorder, Replayer, make_grant

#: Budget of an audited release: its Gaussian bound, mu = 2, is met by the fewest runs.
RHO = Fraction(2)

# -- what a release shows ------------------------------------------------------------------

#: Numbers of a release in a fixed order, and words for everything else in it.
Sight = tuple[list[np.ndarray], list[str]]


@singledispatch
def seen(released: object) -> Sight:
    """What an attacker reads in a release."""
    raise TypeError(f"nobody said what a {type(released).__name__} shows")


@seen.register(str)
@seen.register(Fraction)
def _(released) -> Sight:
    return [], [str(released)]


@seen.register
def _(released: int) -> Sight:
    return [np.array([released])], []


@seen.register
def _(released: NoisyMarginal) -> Sight:
    return [released.values.ravel()], []


@seen.register
def _(released: NoisyScores) -> Sight:
    return [released.values], []


@seen.register
def _(released: NoisyMoments) -> Sight:
    return [released.units], []


@seen.register
def _(released: tuple) -> Sight:
    parts = [seen(part) for part in released]
    return [array for part in parts for array in part[0]], [w for part in parts for w in part[1]]


@seen.register
def _(released: TreeRelease) -> Sight:
    numbers, _ = seen(released.one_way)
    if released.scores is not None:
        numbers.append(released.scores.values)
    return [*numbers, np.array([released.total])], [str(released.edges)]


@seen.register
def _(released: StatisticsRelease) -> Sight:
    numbers, words = seen((released.tables, tuple(sums for _, sums in released.sums)))
    return [*numbers, np.array([released.public_rows or 0])], words


@seen.register
def _(released: RowCount) -> Sight:
    return [np.array([released.value])], []


@seen.register
def _(released: Means) -> Sight:
    return [released.sums], []


@seen.register
def _(released: CovarianceRelease) -> Sight:
    first = slice(0, released.draws[0].stop)  # later draws depend on what it showed
    clip = None if released.clip is None else released.clip.squared
    chosen = tuple(step.chosen for step in released.rounds[:2])
    numbers, _ = seen((released.rows, released.means))
    return [*numbers, released.sums[first]], [f"{clip} {released.route} {chosen}"]


# -- a release from a grant ----------------------------------------------------------------


@dataclass(eq=False)
class Scene:
    """A release, a pair of neighbouring tables, and its terms.

    Attributes
    ----------
    title, group
        For the report.
    run
        Asks a grant and returns what is released.
    tables
        Without the canary and with it (or with one row and with another in its place).
    gaussian
        Whether nothing is drawn but Gaussian noise.
    fixed
        Whether every run asks the same questions, whatever the answers.
    effort
        How many times the usual number of runs it takes.
    kind, noise
        A planted fault's grant, and its noise made from a seed.
    """

    title: str
    group: str
    run: Callable[[Grant], object]
    tables: tuple[CodedTable, CodedTable]
    relation: Relation
    unit: Unit = field(default_factory=Unit)
    rho: Fraction = RHO
    gaussian: bool = True
    fixed: bool = False
    effort: int = 1
    kind: type = Grant
    noise: Callable[[int], Noise] | None = None
    _known: dict[int, Sequence[Draw]] = field(default_factory=dict, init=False)

    #: The canary takes part in everything that is paid for.
    whole = True

    def play(self, side: int, runs: int, seed: int, *, real: bool) -> Outcomes:
        """Release again and again from one of the two tables.

        Parameters
        ----------
        real
            OpenDP's noise; else seeded noise of the same law.
        """
        made = noises(self, side, runs, seed, real=real)
        found = [self._once(side, noise) for noise in made]
        return Outcomes(
            np.array([likelihood for likelihood, *_ in found]),
            np.array([numbers for _, numbers, *_ in found]),
            np.array([event for _, _, event, *_ in found]),
            max(claimed for *_, claimed, _ in found),
            max(lattice for *_, lattice in found),
        )

    def _once(self, side: int, noise: Noise):
        recorder = Recorder(noise)
        grant = self._grant(side, recorder)
        released = self.run(grant)
        pair = (recorder.draws, self._elsewhere(side, recorder.draws))
        draws = list(zip(pair[side], pair[1 - side], strict=True))
        answers = [draw.answer for draw in recorder.draws]
        numbers, words = seen(released)
        return (
            sum(log_ratio(*both, answer) for both, answer in zip(draws, answers, strict=True)),
            np.concatenate([np.empty(0), *numbers]),
            " ".join(words),
            min(grant.debited, grant.rho),
            max(lattice_of(*both) for both in draws) if self.gaussian else 1.0,
        )

    def _elsewhere(self, side: int, recorded: Sequence[Draw]) -> Sequence[Draw]:
        """What would be drawn on the other table, had it given the same answers so far."""
        if self.fixed and side in self._known:
            return self._known[side]
        replayer = Replayer(recorded)
        self.run(self._grant(1 - side, replayer))
        self._known[side] = replayer.draws
        return replayer.draws

    def _grant(self, side: int, noise) -> Grant:
        return make_grant(
            self.tables[side],
            noise,
            relation=self.relation,
            unit=self.unit,
            rho=self.rho,
            kind=self.kind,
        )


def noises(scene, side: int, runs: int, seed: int, *, real: bool) -> Iterator[Noise]:
    """Noise of each run: a planted fault's, OpenDP's, or seeded, all runs different."""
    make = scene.noise or (lambda number: OpenDPNoise() if real else SeededNoise(number))
    name = zlib.crc32(f"{scene.title} {scene.relation}".encode())
    generator = np.random.default_rng([name, side, seed])
    yield from (make(int(number)) for number in generator.integers(2**62, size=runs))


def log_ratio(first: Draw, second: Draw, answer) -> float:
    """Log-likelihood ratio of an answer, of the second question to the first, at claimed noise."""
    if first.kind == "gaussian":
        low, high = first.argument.astype(float), second.argument.astype(float)
        return float(((high - low) * (2 * answer.values - low - high)).sum() / answer.sigma**2 / 2)
    odds = [draw.argument / answer.scale for draw in (first, second)]
    odds = [score - score.max() - np.log(np.exp(score - score.max()).sum()) for score in odds]
    return float(odds[1][answer.index] - odds[0][answer.index])


def lattice_of(first: Draw, second: Draw) -> float:
    """What whole-numbered noise adds to this draw's Gaussian bound, at its claimed cost."""
    change = np.abs(second.argument - first.argument)
    cells, step = int(np.count_nonzero(change)), int(change.max(initial=0))
    if step == 0:
        return 1.0
    sigma = float((first.sensitivity / (2 * first.rho)) ** 0.5)
    return lattice_excess(round(sigma, 6), min(cells, 8), step)


def audit(scene, *, learn: int, runs: int, seed: int = 0, real: bool = False) -> Verdict:
    """Play a scene on both tables, twice, and judge its claim."""
    sides: list[Sides] = []
    for part, count in enumerate((learn, runs)):
        sides.append(tuple(scene.play(side, count, 2 * seed + part, real=real) for side in (0, 1)))
    return judge(*sides, gaussian=scene.gaussian)
