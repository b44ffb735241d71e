"""Planted faults: the audit must refute each, and none of the same scenes without it."""

from __future__ import annotations

import pytest

from tests.privacy.audit_faults import (
    DEEP_FAULTS,
    PLAIN_FAULTS,
    alike,
    nobody_or_one,
    one_choice,
    two_answers,
)
from tests.privacy.audit_scenes import audit

#: Runs on either side of a fault of usual effort.
RUNS = 450


def named(fault):
    return f"{fault.name}: {fault.scene().title}"


@pytest.mark.parametrize(
    "fault",
    # The others take many runs of whole releases: the benchmark plants them too.
    [*PLAIN_FAULTS, *(fault for fault in DEEP_FAULTS if fault.effort < 1)],
    ids=named,
)
def test_a_planted_fault_is_refuted(fault):
    runs = round(RUNS * fault.effort)
    with fault.planted() as scene:
        verdict = audit(scene, learn=runs // 2, runs=runs)
    assert not verdict.passes, verdict


@pytest.mark.parametrize(
    "make",
    [nobody_or_one, two_answers, alike("score_pairs / add_remove"), one_choice],
    ids=["nobody or one", "two answers", "equal rows", "one choice"],
)
def test_scenes_made_for_a_fault_pass_without_it(make):
    assert audit(make(), learn=60, runs=150).passes


def test_nothing_stays_planted():
    """The faults patch the product; each must be gone when its scene is over."""
    honest = audit(PLAIN_FAULTS[2].scene(), learn=100, runs=200)
    with PLAIN_FAULTS[2].planted() as scene:
        spoilt = audit(scene, learn=100, runs=200)
    assert audit(PLAIN_FAULTS[2].scene(), learn=100, runs=200) == honest != spoilt
