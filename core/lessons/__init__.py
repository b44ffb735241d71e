"""Lessons on made-up people: what the rule does, and what the noise does.  NOT PRIVATE.

Three worlds of an embedded demo side by side: the *true* one, in which decisions rest on
admissible columns alone; the *biased* one, with the same people and the same luck and a direct
effect of the protected column; and the *released* one, a simulated release of the biased world.
Everything is seeded, charged to throw-away ledgers, and public, because nobody is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from core.lessons.gaps import Gap, Gaps
from core.lessons.people import Stage
from core.lessons.trees import (
    RHOS,
    EdgeShare,
    Settling,
    curve,
    forbidden_pairs,
    ideal,
    judged,
    open_ways,
    outline,
    settling,
    strongest,
    way_around,
)
from core.lessons.worlds import Lesson, Shown, Way, lesson
from core.private.zcdp import as_rho

__all__ = [
    "RHOS",
    "EdgeShare",
    "Gap",
    "Gaps",
    "Lesson",
    "Settling",
    "Shown",
    "Stage",
    "Way",
    "curve",
    "forbidden_pairs",
    "ideal",
    "judged",
    "lesson",
    "open_ways",
    "outline",
    "settling",
    "strongest",
    "way_around",
    "worlds",
]


def worlds(
    name: str,
    rho: str | int | Fraction = "0.1",
    structure: str = "privci",
    seed: int = 0,
    proxies: Sequence[str] | None = None,
    *,
    hidden: bool = False,
) -> Lesson:
    """The true, the biased and the released world of a demo.

    Parameters
    ----------
    name
        One of :func:`core.demo.names`.
    rho
        Of the simulated release.
    structure
        ``privci`` keeps the rule, ``mst`` does not.
    seed
        Of the noise: the next seed is the next draw.
    proxies
        Columns to treat as protected; the demo's own if left out.
    hidden
        Leave the protected column out of the release ("blind" to it).

    Raises
    ------
    PlanError
        An unknown demo or structure, or a number out of range.
    RolesError
        A proxy that is no inadmissible column of the demo.

    Examples
    --------
    >>> found = worlds("hiring", "1")
    >>> [world.proof.holds for world in found.shown]
    [True, False, True]
    >>> found.released.model_bits < 1e-12
    True
    """
    return lesson(Stage.of(name, proxies, hidden), rho=as_rho(rho), structure=structure, seed=seed)
