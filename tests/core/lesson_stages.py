"""Stages of lessons, and how far a sound figure may lie from its expectation."""

from __future__ import annotations

from fractions import Fraction

from core import demo, lessons

NAMES = demo.names()
PLENTY = Fraction(1)
#: Deviations within which a sound figure lies with probability above 1 - 1e-6.
SURE = 5.0


def stage(name: str, **settings) -> lessons.Stage:
    return lessons.Stage.of(name, **settings)
