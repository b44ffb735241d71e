"""Faults that an audit must catch, each planted into a scene that passes without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest

from core.private.accounts import Spend, SpendState
from core.private.ledger import Ledger
from core.private.noise import GaussianDraw
from core.private.scales import gaussian_rho, gaussian_sigma
from core.private.vault import Vault
from core.roles import Role, Roles
from core.simulation import SeededNoise
from tests.privacy import test_faults as replayed
from tests.privacy.audit_ledger import LedgerScene
from tests.privacy.audit_scenes import Scene
from tests.privacy.audited import CLUMPS, HIGH, LOW, SCENES, TORN, labelled

Plant = Callable[[Scene | LedgerScene, pytest.MonkeyPatch], None]

# -- noise that is not what it says --------------------------------------------------------


class Understated(SeededNoise):
    """Gaussian noise that costs ``factor`` times what it says."""

    def __init__(self, seed: int, factor: int) -> None:
        super().__init__(seed)
        self.factor = factor

    def gaussian(self, values, *, sensitivity_squared, rho):
        said = gaussian_sigma(sensitivity_squared, rho)
        drawn = super().gaussian(
            values, sensitivity_squared=sensitivity_squared, rho=rho * self.factor
        )
        return replace(drawn, sigma=said, rho=gaussian_rho(sensitivity_squared, said))


class DoubledEpsilon(SeededNoise):
    """Selection at twice the epsilon that it says."""

    def select(self, scores, *, sensitivity, rho):
        said = super().select(scores, sensitivity=sensitivity, rho=rho)
        drawn = super().select(scores, sensitivity=sensitivity, rho=4 * rho)
        return replace(said, index=drawn.index)


class FloatNoise(SeededNoise):
    """``x + normal(0, sigma)`` in floating point."""

    def gaussian(self, values, *, sensitivity_squared, rho):
        sigma = gaussian_sigma(sensitivity_squared, rho)
        noisy = values + self._generator.normal(0.0, sigma, values.shape)
        return GaussianDraw(noisy, sigma, gaussian_rho(sensitivity_squared, sigma))


class NoiseAroundZero(SeededNoise):
    """``x + measure(0)``: OpenDP's own floats, with the private value outside of it."""

    def gaussian(self, values, *, sensitivity_squared, rho):
        sigma = gaussian_sigma(sensitivity_squared, rho)
        noisy = values + np.array(_float_measure(sigma)(np.zeros(values.size)))
        return GaussianDraw(noisy, sigma, gaussian_rho(sensitivity_squared, sigma))


@cache
def _float_measure(sigma: float):
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    space = (
        opendp.vector_domain(opendp.atom_domain(T=float, nan=False)),
        opendp.l2_distance(T=float),
    )
    return opendp.m.make_gaussian(*space, scale=sigma)


class SameNoiseAgain(SeededNoise):
    """Starts from the same state at every draw; nobody knows from which."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed

    def gaussian(self, values, *, sensitivity_squared, rho):
        again = SeededNoise(self.seed)
        return again.gaussian(values, sensitivity_squared=sensitivity_squared, rho=rho)


def noise(make: Callable[..., SeededNoise], *settings: int) -> Plant:
    """Plant this noise."""

    def plant(scene, _):
        scene.noise = lambda seed: make(seed, *settings)

    return plant


# -- releases and accounts that are not what they say --------------------------------------


def exact_rows_as_total(scene, _):
    """The release carries the exact number of rows where it carries a public one."""
    honest = scene.run

    def run(grant):
        return replace(honest(grant), public_rows=replayed.exact_source(grant).row_count())

    scene.run = run


def charged_once(_, patch):
    """An id that was paid for gets a new grant each time: results beyond the charge."""
    charge, complete = Ledger.charge, Vault.complete

    def charge_again(self, *asked, **settings):
        return tuple((spend, True) for spend, _ in charge(self, *asked, **settings))

    def complete_once(self, grant, *release, **settings):
        if self._ledger.spend(grant.request_id).state is SpendState.CHARGED:
            complete(self, grant, *release, **settings)

    patch.setattr(Ledger, "charge", charge_again)
    patch.setattr(Vault, "complete", complete_once)


def never_charged(_, patch):
    """Grants are handed out and nothing is written down."""

    def grant(self, rho, what, request_id):
        people = self.population
        spend = Spend(
            *(request_id, people.name, what, rho, None, SpendState.CHARGED),
            *(datetime.now(UTC), None, None, None, "", people.owner),
        )
        return self._issue(spend)

    patch.setattr(Vault, "grant", grant)
    patch.setattr(Vault, "complete", lambda self, grant, *release, **settings: grant.close())


# -- scenes beside those of the report -----------------------------------------------------


def nobody_or_one() -> Scene:
    """The number of rows of an empty table, at a price where few bits matter."""
    tables = labelled(base=()), labelled(TORN, base=())
    honest = SCENES["row_count / add_remove"]
    return replace(honest, title="row_count of nobody", tables=tables, rho=Fraction(1, 10))


def alike(key: str) -> Callable[[], Scene]:
    """A scene on rows that are all the same, and a canary that differs from them in everything."""
    rows = [HIGH] * 30

    def scene() -> Scene:
        tables = labelled(base=rows), labelled(LOW, base=rows)
        return replace(SCENES[key], title=f"{SCENES[key].title} of equal rows", tables=tables)

    return scene


def two_answers() -> Scene:
    """Two columns counted one after the other; the canary lies in different cells of them."""

    def run(grant):
        return tuple(grant.counts([(name,)], grant.rho / 2)[0] for name in ("a", "c"))

    return replace(SCENES["counts / add_remove"], title="counts one by one", run=run)


def one_choice() -> Scene:
    """A tree of one selection, which most of the budget is for: a with c, or b with c."""
    roles = Roles(
        {"a": Role.PROTECTED, "b": Role.OUTCOME, "c": Role.INADMISSIBLE, "d": Role.IGNORE}
    )
    honest = SCENES["privci / replace_one"]
    return replace(
        honest,
        title="privci, one choice",
        run=partial(honest.run, roles=roles, split=(1, 18, 1)),
        tables=tuple(labelled(row, base=CLUMPS * 4) for row in ((1, 0, 0, 0), (0, 1, 0, 0))),
    )


def of_report(key: str, **settings) -> Callable[[], Scene | LedgerScene]:
    """A scene of the report, to be spoilt."""
    return lambda: replace(SCENES[key], **settings)


#: A price at which few runs tell what is seen for certain from what may be guessed.
LITTLE = Fraction(1, 10)


@dataclass(frozen=True)
class Fault:
    """What is wrong, and in which scene.

    ``effort``: how many times the usual number of runs it takes to be seen.  Least of all where
    nothing hides it.
    """

    name: str
    scene: Callable[[], Scene | LedgerScene]
    plant: Plant
    effort: float = 1.0

    @contextmanager
    def planted(self) -> Iterator[Scene | LedgerScene]:
        """The spoilt scene, for as long as the fault is in the code."""
        scene = self.scene()
        with pytest.MonkeyPatch.context() as patch:
            self.plant(scene, patch)
            yield scene


#: On primitives and small releases.
PLAIN_FAULTS = (
    Fault("sigma halved", of_report("counts / add_remove"), noise(Understated, 4)),
    Fault("rho doubled", of_report("moments: sums / add_remove"), noise(Understated, 2), 2),
    Fault(
        "split over tables forgotten",
        of_report("counts / add_remove"),
        replayed.forgotten_split_over_tables,
    ),
    Fault(
        "epsilon doubled in selection", of_report("select_pair / add_remove"), noise(DoubledEpsilon)
    ),
    Fault(
        "epsilon doubled in selection",
        of_report("select_entry / replace_one"),
        noise(DoubledEpsilon),
    ),
    Fault(
        "exact n published",
        of_report("mean / add_remove", rho=LITTLE),
        replayed.exact_total_published,
        0.2,
    ),
    Fault("noise added as a float", nobody_or_one, noise(FloatNoise), 4),
    Fault("noise around zero, added as a float", nobody_or_one, noise(NoiseAroundZero), 4),
    Fault(
        "unclipped outlier", of_report("moments: products / add_remove"), replayed.unclipped_values
    ),
    Fault("charge skipped", of_report("one request, three times / add_remove"), never_charged, 0.2),
    Fault("same noise for two answers", two_answers, noise(SameNoiseAgain)),
    Fault(
        "same noise on a rerun",
        of_report("two versions of a table / add_remove", rho=LITTLE),
        noise(SameNoiseAgain),
        0.2,
    ),
    Fault(
        "reference recomputed from data",
        alike("score_pairs / add_remove"),
        replayed.recomputed_reference,
    ),
    Fault("missing root two", of_report("counts / replace_one"), replayed.missing_root_two, 2),
    Fault(
        "missing factor two in scores",
        of_report("select_pair / replace_one"),
        replayed.missing_factor_two,
    ),
    Fault(
        "diagonal free under add/remove",
        of_report("moments: products / add_remove"),
        replayed.free_diagonal_under_add_remove,
        2,
    ),
    Fault(
        "rows a unit forgotten",
        of_report("counts, 3 rows a person / add_remove"),
        replayed.forgotten_rows_a_unit,
    ),
)

#: In whole releases, and where it takes many runs.
DEEP_FAULTS = (
    Fault("sigma halved", of_report("privci-exact / add_remove"), noise(Understated, 4)),
    Fault("sigma halved", of_report("regression / add_remove"), noise(Understated, 4)),
    Fault("sigma halved", of_report("pace_auto / add_remove"), noise(Understated, 4)),
    Fault("rho doubled", of_report("privci-exact / replace_one"), noise(Understated, 2), 2),
    Fault(
        "split over stages forgotten",
        of_report("privci-exact / add_remove"),
        replayed.forgotten_split_over_stages,
    ),
    Fault(
        "split over stages forgotten",
        of_report("mst / add_remove"),
        replayed.forgotten_split_over_stages,
        3,  # held to the region of rho alone
    ),
    Fault("epsilon doubled in selection", one_choice, noise(DoubledEpsilon)),
    Fault("exact n as total", of_report("mst / add_remove", rho=LITTLE), exact_rows_as_total, 0.2),
    Fault(
        "unclipped outlier",
        of_report("ssp_tight / add_remove", rho=LITTLE),
        replayed.unclipped_values,
        0.2,
    ),
    Fault(
        "unclipped outlier",
        of_report("pace_auto / replace_one", rho=LITTLE),
        replayed.unclipped_values,
        0.2,
    ),
    Fault(
        "charge skipped on a rerun",
        of_report("one request, three times / add_remove"),
        charged_once,
    ),
    Fault(
        "same noise for two answers",
        of_report("mean / add_remove", rho=LITTLE),
        noise(SameNoiseAgain),
        0.2,
    ),
    Fault(
        "reference recomputed from data",
        alike("privci-exact / add_remove"),
        replayed.recomputed_reference,
    ),
    Fault(
        "missing root two",
        of_report("privci-exact / replace_one"),
        replayed.missing_root_two,
        3,  # the scores, a third of the budget, are as they should be
    ),
)
