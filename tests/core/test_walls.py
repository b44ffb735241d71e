"""The walls of the house: what may import what, kept by reading the source and by running it.

Each rule is also tried on a planted offender: a rule that cannot fail keeps nothing out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.walls import (
    HEAVY,
    LONGEST,
    PYTHON_RULES,
    ROOT,
    WIRING,
    Rule,
    mbi_only_in_its_engine,
    modules_stay_short,
    no_other_randomness_behind_the_door,
    no_paths_of_one_machine,
    nothing_runs_data_as_code,
    opendp_only_in_noise,
    public_things_have_docstrings,
    rows_stay_in_the_private_room,
    screens_stay_out_of_core,
    steps_only_draw,
)

# -- the project keeps them -------------------------------------------------------------------


def product_files() -> dict[str, str]:
    """The product's own modules (tests and benchmarks may reach behind the walls)."""
    found = [*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    found += [path for path in [ROOT / "app.py"] if path.exists()]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(found)}


def text_files() -> dict[str, str]:
    """Every text of the project: code, documents and settings."""
    endings = {".py", ".md", ".toml", ".txt", ".cfg", ".ini", ".yml", ".yaml", ".html", ".css"}
    skipped = {".git", ".venv", "node_modules", "__pycache__", "site-packages"}
    texts = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped and "_cache" not in name]
        for name in names:
            path = Path(folder, name)
            plain = path.suffix in endings or name in {"Makefile", "LICENSE", "run", ".gitignore"}
            if plain:
                texts[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8", "replace")
    return texts


@pytest.mark.parametrize("rule", PYTHON_RULES, ids=lambda rule: rule.__name__)
def test_product_keeps_the_rule(rule):
    files = product_files()
    assert "core/schema.py" in files
    complaints = [complaint for path, text in files.items() for complaint in rule(path, text)]
    assert complaints == []


def test_project_names_no_path_of_one_machine():
    files = text_files()
    assert {"core/schema.py", "tests/core/test_walls.py", "pyproject.toml"} <= set(files)
    assert [c for path, text in files.items() for c in no_paths_of_one_machine(path, text)] == []


def test_exceptions_name_modules_that_exist():
    # A documented exception for a module that is gone would be an open door.
    for place in WIRING:
        assert (ROOT / place).exists(), place


# -- each rule can fail -----------------------------------------------------------------------

OFFENDERS: tuple[tuple[Rule, str, str], ...] = (
    (screens_stay_out_of_core, "core/report/page.py", "def draw():\n    import plotly.express\n"),
    (screens_stay_out_of_core, "core/plan.py", "from streamlit import cache_data\n"),
    (rows_stay_in_the_private_room, "core/bundle.py", "from core.private.source import X\n"),
    (rows_stay_in_the_private_room, "core/bundle.py", "from core.private import table\n"),
    (rows_stay_in_the_private_room, "core/runner.py", "from core.private.fitness import f\n"),
    (rows_stay_in_the_private_room, "core/bundle.py", "from .private import coding\n"),
    (rows_stay_in_the_private_room, "core/privci/select.py", "from ..private import vault\n"),
    (rows_stay_in_the_private_room, "core/pace/select.py", "import core.private.ledger\n"),
    (rows_stay_in_the_private_room, "pages/steps/data.py", "import core.private.reading\n"),
    (rows_stay_in_the_private_room, "app.py", "import core.private.source as s\n"),
    (
        rows_stay_in_the_private_room,
        "core/store.py",
        "import importlib\nimportlib.import_module('core.private.source')\n",
    ),
    (opendp_only_in_noise, "core/private/grant.py", "import opendp.prelude as dp\n"),
    (opendp_only_in_noise, "core/simulation.py", "def f():\n    from opendp.mod import x\n"),
    (mbi_only_in_its_engine, "core/privci/select.py", "def f():\n    import jax.numpy\n"),
    (mbi_only_in_its_engine, "core/audit/fidelity.py", "from mbi import Domain\n"),
    (no_other_randomness_behind_the_door, "core/private/noise.py", "import random\n"),
    (no_other_randomness_behind_the_door, "core/private/grant.py", "x = np.random.normal()\n"),
    (no_other_randomness_behind_the_door, "core/private/grant.py", "from numpy import random\n"),
    (no_other_randomness_behind_the_door, "core/privci/select.py", "x = norm(0, 1).rvs()\n"),
    (no_other_randomness_behind_the_door, "core/privci/select.py", "from scipy import stats\n"),
    (nothing_runs_data_as_code, "core/store.py", "import pickle\n"),
    (nothing_runs_data_as_code, "core/store.py", "from joblib import load\n"),
    (nothing_runs_data_as_code, "core/store.py", "eval('1')\n"),
    (nothing_runs_data_as_code, "pages/shared/jobs.py", "exec(text)\n"),
    (nothing_runs_data_as_code, "core/releases.py", "np.load(f, allow_pickle=True)\n"),
    (nothing_runs_data_as_code, "core/releases.py", "np.load(f, allow_pickle=flag)\n"),
    (nothing_runs_data_as_code, "core/releases.py", "numpy.load(f)\n"),
    (nothing_runs_data_as_code, "core/plan.py", "def f():\n    import yaml\n"),
    (nothing_runs_data_as_code, "core/private/reading.py", "pd.read_pickle(f)\n"),
    (steps_only_draw, "pages/steps/tree.py", "import numpy as np\n"),
    (steps_only_draw, "pages/steps/tree.py", "from pandas import DataFrame\n"),
    (steps_only_draw, "pages/steps/tree.py", "from core.private.zcdp import epsilon\n"),
    (steps_only_draw, "pages/steps/tree.py", "from core.private import vault\n"),
    (steps_only_draw, "pages/steps/tree.py", "import math\n"),
    (steps_only_draw, "pages/steps/tree.py", "from pages.steps import data\n"),
    (modules_stay_short, "core/plan.py", "x = 1\n" * (LONGEST + 1)),
    (public_things_have_docstrings, "core/plan.py", '"""A."""\ndef run():\n    pass\n'),
    (
        public_things_have_docstrings,
        "core/plan.py",
        '"""A."""\nclass Plan:\n    """B."""\n    def run(self):\n        pass\n',
    ),
    (public_things_have_docstrings, "core/plan.py", "x = 1\n"),
    (no_paths_of_one_machine, "docs/guide.md", "see " + "/wo" + "rk/main/README.md\n"),
    (no_paths_of_one_machine, "core/plan.py", 'X = "' + "/tm" + 'p/contract.md"\n'),
    (no_paths_of_one_machine, "Makefile", "cd " + "/ho" + "me/somebody/justitia\n"),
)

HARMLESS: tuple[tuple[Rule, str, str], ...] = (
    (rows_stay_in_the_private_room, "core/private/vault.py", "from core.private import source\n"),
    (rows_stay_in_the_private_room, "core/privci/select.py", "from core.private import zcdp\n"),
    (rows_stay_in_the_private_room, "core/statement.py", "from core.private.zcdp import f\n"),
    (rows_stay_in_the_private_room, "core/attachment.py", "from core.private.source import X\n"),
    (opendp_only_in_noise, "core/private/noise.py", "import opendp.prelude\n"),
    (mbi_only_in_its_engine, "core/privci/engine_mbi.py", "import mbi\nimport jax\n"),
    (no_other_randomness_behind_the_door, "core/privci/sample.py", "x = np.random.default_rng()\n"),
    (
        nothing_runs_data_as_code,
        "core/releases.py",
        "np.load(f, allow_pickle=False)\nre.compile(p)\n",
    ),
    (
        steps_only_draw,
        "pages/steps/tree.py",
        "from dataclasses import replace\nimport streamlit as st\nfrom core import plan\n"
        "from pages.shared import charts\nfrom pages.shared.guards import guard\n",
    ),
    (modules_stay_short, "core/plan.py", "x = 1\n\n" * LONGEST),
    (
        public_things_have_docstrings,
        "core/plan.py",
        '"""A."""\ndef _run():\n    pass\nclass _B:\n    def f(self):\n        pass\n'
        'def g():\n    """C."""\n    def inner():\n        pass\n',
    ),
    (no_paths_of_one_machine, "README.md", "a network/work/flow at example.org/work/x\n"),
)


@pytest.mark.parametrize(("rule", "path", "text"), OFFENDERS)
def test_rule_catches_a_planted_offender(rule, path, text):
    assert rule(path, text)


@pytest.mark.parametrize(("rule", "path", "text"), HARMLESS)
def test_rule_lets_honest_code_pass(rule, path, text):
    assert rule(path, text) == []


# -- what a fresh process loads ---------------------------------------------------------------

PROBE = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps([name for name in json.loads(sys.argv[2]) if name in sys.modules]))
"""


def loaded_by(modules: list[str]) -> list[str]:
    """Which heavy packages a fresh process has loaded after importing ``modules``."""
    result = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(modules), json.dumps(HEAVY)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return list(json.loads(result.stdout))


def core_modules() -> list[str]:
    """Every module of core but the command line and the engine of the reference library."""
    left_out = {"core.__main__", "core.privci.engine_mbi"}
    names = []
    for path in product_files():
        if path.startswith("core/"):
            parts = Path(path).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in names if name not in left_out]


def test_importing_core_loads_nothing_heavy():
    assert loaded_by(["core"]) == []


def test_importing_every_core_module_loads_nothing_heavy():
    modules = core_modules()
    assert {"core", "core.schema", "core.private.noise", "core.demo.world"} <= set(modules)
    assert loaded_by(modules) == []


def test_the_probe_notices_a_heavy_import():
    assert loaded_by(["core.schema", "scipy.stats"]) == ["scipy.stats"]
