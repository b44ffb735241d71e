"""Files, plans and runs for the field cases: everything goes through the command line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from core.__main__ import main
from core.plan import Plan, PopulationPlan, ReadingPlan, SyntheticPlan, TreePlan, read_plan
from core.private.ledger import Ledger, Spend
from core.releases import NoisyMarginal, TreeRelease
from core.roles import Roles
from core.schema import Column, Kind, Schema

STAMP = "SIMULATED_NOT_PRIVATE_"


def csv_text(rows: Sequence[Sequence[object]], delimiter: str = ",") -> str:
    """Rows as CSV text; the first one is the header."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def write(path: Path, content: str | bytes) -> Path:
    """A file with this content."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def yes_no(name: str, labels: tuple[str, str] = ("no", "yes")) -> Column:
    """A column of exactly two cells."""
    return Column(
        name,
        Kind.BOOLEAN,
        categories=labels,
        missing="constant",
        missing_constant=labels[0],
        other_label=labels[0],
    )


def plan(
    columns: Sequence[Column],
    rho: object = "1",
    *,
    cap: object | None = None,
    expected_rows: int | None = None,
    roles: Roles | None = None,
    files: tuple[str, ...] = ("csv",),
    reading: ReadingPlan | None = None,
) -> Plan:
    """A declared plan for the population "people"."""
    price = Fraction(str(rho))
    return Plan(
        PopulationPlan(
            "people",
            cap=price if cap is None else Fraction(str(cap)),
            expected_rows=expected_rows,
        ),
        Schema(tuple(columns)),
        roles or Roles(),
        TreePlan(price),
        SyntheticPlan(files=files),
        reading or ReadingPlan(),
    )


@dataclass(frozen=True)
class Outcome:
    """What a run wrote."""

    folder: Path
    simulated: bool
    release: TreeRelease

    def path(self, name: str) -> Path:
        """Where a file of the bundle lies."""
        plain = Path(name)
        stamped = plain.with_name(STAMP + plain.name) if self.simulated else plain
        return self.folder / stamped

    def text(self, name: str) -> str:
        """A file's text, without its byte-order mark."""
        return self.path(name).read_text("utf-8-sig")

    def rows(self, name: str = "synthetic.csv") -> list[list[str]]:
        """A CSV file's records, header first, as any CSV reader sees them."""
        with self.path(name).open(encoding="utf-8-sig", newline="") as file:
            return list(csv.reader(file))

    @property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic table as text, missing cells empty."""
        header, *rows = self.rows()
        return pd.DataFrame(rows, columns=header, dtype="str")

    @property
    def tree(self) -> dict[str, Any]:
        """The tree document."""
        plain: dict[str, Any] = json.loads(self.text("tree.json"))
        return plain

    @property
    def one_way(self) -> Mapping[str, dict[str, int]]:
        """Noisy counts by column and cell label."""
        return {m.clique[0]: _labelled(m, self.release) for m in self.release.one_way}


def _labelled(marginal: NoisyMarginal, release: TreeRelease) -> dict[str, int]:
    cells = release.schema[marginal.clique[0]].cells
    return dict(zip(cells, marginal.values.tolist(), strict=True))


def save(made: Plan, path: Path) -> Path:
    """A plan file."""
    return write(path, made.to_toml())


def draft(data: Path, out: Path, *more: str) -> Plan:
    """The plan that ``draft`` writes."""
    assert main(["draft", "--data", str(data), "--out", str(out), "--force", *more]) == 0
    return read_plan(out)


def run(plan_path: Path, data: Path, out: Path, *more: str, seed: int | None = None) -> int:
    """Exit code of a run; with a seed it is simulated and charges nothing."""
    if seed is not None:
        more = (*more, "--simulate", str(seed), "--allow-real-data")
    return main(["run", str(plan_path), "--data", str(data), "--out", str(out), *more])


def release(plan_path: Path, data: Path, out: Path, *more: str, seed: int | None = None) -> Outcome:
    """What a run that must succeed has written."""
    assert run(plan_path, data, out, *more, seed=seed) == 0
    stamp = "" if seed is None else STAMP
    blob = (out / f"{stamp}release.npz").read_bytes()
    return Outcome(out, seed is not None, TreeRelease.from_bytes(blob))


def spends() -> list[Spend]:
    """Every charge in the test's own ledger."""
    ledger = Ledger(None)
    return [spend for found in ledger.populations() for spend in ledger.spends(found.name)]


def files_in(folder: Path) -> dict[str, bytes]:
    """Content of a folder's files by relative path."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
