"""Releases of a demo with seeded noise, and its real rows behind a handle."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np

from core import demo
from core.attachment import attach_simulated, read_for
from core.audit.room import AuditSettings, audit_private, audit_released
from core.audit.worlds import World, real_world
from core.runner import simulate
from core.starting import demo_plan

ROWS = 4000
#: Cheap, and enough for verdicts.
SETTINGS = AuditSettings(draws=40, permutations=100)


def plan_of(structure="privci", rho="5", proxies=True):
    plan = demo_plan("hiring", ROWS)
    roles = plan.roles if proxies else replace(plan.roles, proxies=frozenset())
    return replace(
        plan,
        roles=roles,
        tree=replace(plan.tree, structure=structure, rho=Fraction(rho)),
        population=replace(plan.population, cap=Fraction(100)),
    )


def derived(structure="privci", rho="5", proxies=True):
    return _derived(structure, rho, proxies)


def real(proxies=True):
    return _real(proxies)


def released(structure="privci", rho="5", proxies=True):
    return _released(structure, rho, proxies)


def private(structure="privci", rho="5", proxies=True):
    return _private(structure, rho, proxies)


@cache  # by position: a default and its own value are the same scene
def _derived(structure, rho, proxies):
    return simulate(plan_of(structure, rho, proxies), 1)


@cache
def _real(proxies):
    plan = plan_of(proxies=proxies)
    raw = read_for(plan, demo.csv_bytes("hiring", rows=ROWS, seed=0))
    attached = attach_simulated(plan, raw, 1)
    handle = attached.vault.not_private("a test")
    return real_world(handle, derived(proxies=proxies).release.schema)


@cache
def _released(structure, rho, proxies):
    made = derived(structure, rho, proxies)
    return audit_released(made.release, made.synthetic, made.certificate, settings=SETTINGS)


@cache
def _private(structure, rho, proxies):
    return audit_private(released(structure, rho, proxies), real(proxies))


def as_synthetic(world):
    """Real demo rows passed off as synthetic ones, to audit a table against itself."""
    return World("synthetic rows", world.schema, dict(world.codes), world.rows, private=False)


def shuffled(world, seed=0):
    """Every column shuffled on its own: the same one-way tables, no association at all."""
    generator = np.random.default_rng(seed)
    codes = {name: generator.permutation(codes) for name, codes in world.codes.items()}
    return World("synthetic rows", world.schema, codes, world.rows, private=False)


def score(scorecard, end):
    """The one score whose figure's key ends so."""
    (found,) = [one for one in scorecard.scores if one.figure.key.endswith(end)]
    return found
