"""A small table of made-up people, and plans of several parts for it that are quick to run."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

#: Lines of a plan that its paid parts follow.
HEAD = """version = 1

[population]
name = "{name}"
relation = "add_remove"
unit_rows = 1
cap = "{cap}"
delta = 1e-09
expected_rows = 200

[roles]
protected = ["sex"]
outcome = ["hired"]
admissible = ["age"]

[synthetic]
rows = 20
engine = "exact"
seed = 0

[[columns]]
name = "sex"
kind = "categorical"
categories = ["woman", "man"]
missing = "constant"
missing_constant = "man"
out_of_domain = "other"
other_label = "man"

[[columns]]
name = "age"
kind = "integer"
lower = 18
upper = 67
bins = 3
missing = "constant"
missing_constant = 40
out_of_domain = "clip"

[[columns]]
name = "hired"
kind = "boolean"
categories = ["no", "yes"]
missing = "constant"
missing_constant = "no"
out_of_domain = "other"
other_label = "no"
"""
TREE = """
[tree]
rho = "{rho}"
structure = "privci"
split = ["1/3", "1/3", "1/3"]
"""
MEAN = """
[[posterior]]
name = "{title}"
kind = "mean"
outcome = "age"
rho = "{rho}"
draws = 200
"""


def plan_text(
    tree: Fraction | None,
    means: dict[str, Fraction],
    *,
    name: str = "people",
    cap: Fraction = Fraction(1),
) -> str:
    """A plan with a tree at that price, if any, and an analysis for each title and price."""
    parts = [HEAD.format(name=name, cap=cap)]
    if tree is not None:
        parts.append(TREE.format(rho=tree))
    parts += [MEAN.format(title=title, rho=rho) for title, rho in means.items()]
    return "".join(parts)


def write_table(path: Path, rows: int = 200, seed: int = 1) -> Path:
    """A CSV file of that many people."""
    generator = np.random.default_rng(seed)
    lines = ["sex,age,hired"]
    for _ in range(rows):
        sex = ("woman", "man")[generator.integers(2)]
        lines.append(f"{sex},{generator.integers(18, 68)},{('no', 'yes')[generator.integers(2)]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
