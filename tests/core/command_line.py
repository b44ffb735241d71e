"""Runs of the demo by the command line, for tests."""

from pathlib import Path

from core.__main__ import main
from core.private.ledger import Ledger

ROOT = Path(__file__).parents[2]
ROWS = 3000


def run(demo, out, *more):
    arguments = [
        "run",
        str(demo / "plan.toml"),
        "--data",
        str(demo / "demo.csv"),
        "--out",
        str(out),
    ]
    return main([*arguments, *more])


def spends():
    ledger = Ledger(None)
    return [spend for p in ledger.populations() for spend in ledger.spends(p.name)]


FILES = {
    "synthetic.csv",
    "tree.json",
    "certificate.json",
    "marginals/one_way.csv",
    "marginals/two_way.csv",
    "ledger.json",
    "statement.md",
    "plan.toml",
    "release.npz",
    "bundle.zip",
}


def files_in(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
