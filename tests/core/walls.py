"""The walls of the house as rules.

Every rule is a function from a file's name and text to complaints, so that each one is also tried
on a planted offender: a rule that cannot fail keeps nothing out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Longest core module in lines that are not blank.
LONGEST = 450
#: Top-level packages that are slow or large: loaded where they are used, never on import.
HEAVY = (
    *("mbi", "jax", "scipy.stats", "opendp", "sklearn", "fairlearn", "streamlit", "plotly"),
    *("ibis", "duckdb", "pyspark"),
)

# -- reading imports --------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One imported dotted name, and its line."""

    name: str
    line: int

    def inside(self, *packages: str) -> bool:
        """Whether the name is one of these packages or lies inside one."""
        return any(self.name == p or self.name.startswith(p + ".") for p in packages)


def package_of(path: str) -> list[str]:
    """Dotted parts of the package that holds a file."""
    return list(Path(path).parent.parts)


def imports(path: str, text: str) -> Iterator[Import]:
    """Every name that a module imports, lazily or not, relative names resolved.

    ``from a import b`` yields ``a`` and ``a.b``, because ``b`` may be a module.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            parent = package_of(path)
            base = parent[: len(parent) - node.level + 1] if node.level else []
            base = [*base, *(node.module or "").split(".")] if node.module else base
            yield Import(".".join(base), node.lineno)
            for alias in node.names:
                yield Import(".".join([*base, alias.name]), node.lineno)
        elif isinstance(node, ast.Call) and called(node) in {"import_module", "__import__"}:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Import(first.value, node.lineno)


def called(node: ast.Call) -> str:
    """Last part of the name that a call calls."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of an attribute chain, or an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


# -- rules ------------------------------------------------------------------------------------

Rule = Callable[[str, str], list[str]]

#: Pure arithmetic on public facts: it never meets a row.
ARITHMETIC = ("zcdp", "sensitivity", "feature_sensitivity", "scales")
#: What any room may use of the private one: arithmetic, the accounts, and the door itself.
OPEN_ROOMS = (*ARITHMETIC, "accounts", "ledger", "vault")
#: Algorithms see a grant as a protocol; of the private room they may use its arithmetic only.
ALGORITHMS = ("core/privci/", "core/pumba/", "core/pace/")
#: Documented exceptions: the rooms that wire a table to a vault, show it to its owner, or keep
#: releases beside the accounts in one database.
WIRING: dict[str, tuple[str, ...]] = {
    "core/attachment.py": (
        *("batches", "coding", "earlier_fingerprint", "fingerprint", "reading", "source"),
        *("ibis_connection", "streaming", "streaming_files"),
    ),
    # Opens what an administrator offers; headers, footers and the engine's schema only.
    "core/sources.py": ("fingerprint", "ibis_connection", "streaming", "streaming_files"),
    "core/simulation.py": ("noise", "source", "table"),
    # Made-up people of an embedded demo, drawn anew and anew.
    "core/teaching.py": ("coding", "table"),
    "core/lessons/people.py": ("coding", "source", "table"),
    # Fitness: coarse shares of the rows, passed on as words to the steward's own screen.
    "core/starting.py": ("fitness", "reading", "suggestions"),
    "core/store.py": ("ledger_tables",),
    # Deletes stored results and projects, and nothing of what was charged.
    "core/retention.py": ("ledger_tables",),
    "core/runner.py": ("reading",),
    # Takes a grant from the vault to the algorithm that it was paid for, and back to be closed.
    "core/measuring.py": ("grant",),
    # Copies and mends the ledger's own database, by explicit command; no table is near.
    "core/safekeeping.py": ("backup", "mending"),
    # A lost secret is replaced by an explicit command.
    "core/__main__.py": ("fingerprint",),
    "pages/shared/": ("reading", "suggestions"),
}


def screens_stay_out_of_core(path: str, text: str) -> list[str]:
    """The core draws nothing."""
    if not path.startswith("core/"):
        return []
    screens = ("streamlit", "plotly", "pyvis", "altair", "matplotlib")
    return [f"{path}:{i.line} imports {i.name}" for i in imports(path, text) if i.inside(*screens)]


def rows_stay_in_the_private_room(path: str, text: str) -> list[str]:
    """Outside ``core/private`` nobody gets at rows, but for the wiring named above."""
    if path.startswith("core/private/"):
        return []
    allowed = ARITHMETIC if path.startswith(ALGORITHMS) else OPEN_ROOMS
    for place, rooms in WIRING.items():
        if path == place or (place.endswith("/") and path.startswith(place)):
            allowed = (*allowed, *rooms)
    doors = tuple(f"core.private.{room}" for room in allowed)
    return [
        f"{path}:{i.line} imports {i.name}"
        for i in imports(path, text)
        if i.inside("core.private") and i.name != "core.private" and not i.inside(*doors)
    ]


def opendp_only_in_noise(path: str, text: str) -> list[str]:
    """One module draws release noise."""
    if path == "core/private/noise.py":
        return []
    return [f"{path}:{i.line} imports {i.name}" for i in imports(path, text) if i.inside("opendp")]


def mbi_only_in_its_engine(path: str, text: str) -> list[str]:
    """The reference library stays behind one door."""
    if path == "core/privci/engine_mbi.py":
        return []
    return [
        f"{path}:{i.line} imports {i.name}"
        for i in imports(path, text)
        if i.inside("mbi", "jax", "jaxlib")
    ]


#: What alternates a grant's answers with pure functions.
PAID_LOOPS = (
    "core/privci/select.py",
    "core/pumba/measure.py",
    *(
        f"core/pace/{name}.py"
        for name in ("auto", "baselines", "frames", "paid", "rounds", "select")
    ),
)


def no_other_randomness_behind_the_door(path: str, text: str) -> list[str]:
    """Private code and the paid loop draw from OpenDP alone."""
    if not (path.startswith("core/private/") or path in PAID_LOOPS):
        return []
    found = [
        f"{path}:{i.line} imports {i.name}"
        for i in imports(path, text)
        if i.inside("random", "numpy.random", "scipy.stats")
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            if name in {"np.random", "numpy.random", "scipy.stats"} or node.attr == "rvs":
                found.append(f"{path}:{node.lineno} uses {name or node.attr}")
    return found


def nothing_runs_data_as_code(path: str, text: str) -> list[str]:
    """No pickle in any of its disguises, no eval, no exec."""
    picklers = (
        "pickle",
        "cPickle",
        "_pickle",
        "joblib",
        "dill",
        "cloudpickle",
        "shelve",
        "marshal",
        "yaml",
    )
    found = [
        f"{path}:{i.line} imports {i.name}" for i in imports(path, text) if i.inside(*picklers)
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}:
                found.append(f"{path}:{node.lineno} calls {node.func.id}")
            if called(node) in {"read_pickle", "to_pickle"} or dotted(node.func) == "mbi.load":
                found.append(f"{path}:{node.lineno} calls {called(node)}")
            stated = {keyword.arg for keyword in node.keywords}
            if dotted(node.func) in {"np.load", "numpy.load"} and "allow_pickle" not in stated:
                found.append(f"{path}:{node.lineno} does not refuse pickles")
            for keyword in node.keywords:
                value = keyword.value
                if keyword.arg == "allow_pickle" and not (
                    isinstance(value, ast.Constant) and value.value is False
                ):
                    found.append(f"{path}:{node.lineno} allows pickles")
    return found


def steps_only_draw(path: str, text: str) -> list[str]:
    """A page asks ``core`` and ``pages.shared``; it computes nothing and sees no rows."""
    if not path.startswith("pages/steps/"):
        return []
    computing = ("math", "statistics", "random", "sqlite3", "subprocess", "decimal", "fractions")
    found = []
    for i in imports(path, text):
        top = i.name.partition(".")[0]
        standard = top in sys.stdlib_module_names and not i.inside(*computing)
        house = i.inside("core", "pages.shared", "streamlit") or i.name == "pages"
        if i.inside("core.private") or not (standard or house):
            found.append(f"{path}:{i.line} imports {i.name}")
    return found


def modules_stay_short(path: str, text: str) -> list[str]:
    """A module that grows too long wants splitting along a seam."""
    lines = sum(bool(line.strip()) for line in text.splitlines())
    too_long = path.startswith("core/") and lines > LONGEST
    return [f"{path} has {lines} lines that are not blank"] if too_long else []


def public_things_have_docstrings(path: str, text: str) -> list[str]:
    """Modules, public classes, functions and methods of core say what they are."""
    if not path.startswith("core/"):
        return []
    tree = ast.parse(text)
    found = [] if ast.get_docstring(tree) else [f"{path}:1 module"]
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, parent = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if not named or node.name.startswith("_"):
                continue
            name = f"{prefix}{node.name}"
            if not ast.get_docstring(node) and not is_overload(node):
                found.append(f"{path}:{node.lineno} {name}")
            if isinstance(node, ast.ClassDef):
                waiting.append((f"{name}.", node))
    return found


def is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Overloads and property setters share the docstring of the thing itself."""
    words = [dotted(decorator) for decorator in node.decorator_list]
    return any(word.endswith(("overload", ".setter")) for word in words)


# The pattern is put together from parts, so that this file does not accuse itself.
MACHINE_PATHS = re.compile(
    r"(?<![\w.-])/(?:" + "work|" + "tmp/contract" + r"|home/\w+|root)(?:/|\b)"
)


def no_paths_of_one_machine(path: str, text: str) -> list[str]:
    """Nothing in the project knows where it was written."""
    return [
        f"{path}:{number} names {match.group()}"
        for number, line in enumerate(text.splitlines(), 1)
        if (match := MACHINE_PATHS.search(line))
    ]


PYTHON_RULES: tuple[Rule, ...] = (
    screens_stay_out_of_core,
    rows_stay_in_the_private_room,
    opendp_only_in_noise,
    mbi_only_in_its_engine,
    no_other_randomness_behind_the_door,
    nothing_runs_data_as_code,
    steps_only_draw,
    modules_stay_short,
    public_things_have_docstrings,
)
