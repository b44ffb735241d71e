"""Seeded damage at every door; a longer loop is ``python -m tests.hostile.fuzz --minutes 10``.

``JUSTITIA_FUZZ`` multiplies the number of inputs.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from core.errors import ReadingError
from tests.hostile import mutation, seeds
from tests.hostile.fuzz import tried
from tests.hostile.targets import DOORS, Door, Misbehaved, knock

TIMES = float(os.environ.get("JUSTITIA_FUZZ", "1"))
#: Inputs a door; those that take long get fewer.
INPUTS = {
    "excel members": 50,
    "excel cells": 50,
    "parquet cells": 80,
    "forecast": 40,
    "published values": 60,
    "bundle": 60,
    "bundle members": 60,
    "bundle manifest": 12,
    "bundle lies": 16,
}


@pytest.mark.parametrize("door", DOORS, ids=repr)
def test_a_door_gives_a_right_result_or_one_of_our_sentences(door):
    outcomes = Counter(tried(door, seed) for seed in range(int(TIMES * INPUTS.get(door.name, 120))))
    refused = sum(count for outcome, count in outcomes.items() if outcome != "read")
    assert refused > 0


def test_the_same_seed_is_the_same_input():
    for door in DOORS:
        if door.name in INPUTS:
            continue  # archives and bundles carry no clock either, but take long to make twice
        assert door.damage(Random("x 1")) == door.damage(Random("x 1"))
    for _ in range(2):
        assert mutation.altered({"a": [1, {"b": None}]}, Random(3)) == mutation.altered(
            {"a": [1, {"b": None}]}, Random(3)
        )


# -- the watch can fail ------------------------------------------------------------------------


def door(fault: Exception) -> Door:
    def read(data: bytes) -> object:
        raise fault

    return Door("test", read, lambda random: b"", True)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (KeyError("x"), "raised KeyError"),
        (ReadingError("a cell of canary-1"), "quotes a cell"),
        (ReadingError(""), "not one line"),
    ],
    ids=repr,
)
def test_misbehaviour_is_found(fault, words):
    with pytest.raises(Misbehaved, match=words):
        knock(door(fault), b"")


def test_a_cell_in_a_cause_is_found():
    fault = ReadingError("damaged")
    fault.__cause__ = ValueError(f"invalid literal: {seeds.CANARIES[0]}")
    with pytest.raises(Misbehaved, match="quotes a cell"):
        knock(door(fault), b"")
