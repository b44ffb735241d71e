"""Walls around the pages: what they may import, where files lie, what the browser is told."""

from __future__ import annotations

import ast
import time
import tomllib
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.privci.structures import STRUCTURES
from core.roles import Role
from pages.shared.palette import LOOKS
from tests.app.conftest import ROOT, go
from tests.app.test_journey import JOURNEY, made

STEPS = sorted((ROOT / "pages" / "steps").glob("*.py"))
CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", STEPS, ids=lambda path: path.stem)
def test_steps_import_only_streamlit_core_and_what_pages_share(path: Path) -> None:
    allowed = {"__future__", "streamlit", "dataclasses", "datetime", "hashlib"}
    for name in imports(path):
        assert name in allowed or name.startswith(("core", "pages.shared")), name
        assert not name.startswith("core.private"), name


def test_pages_never_reach_for_rows_or_noise() -> None:
    for path in (ROOT / "pages").rglob("*.py"):
        for name in imports(path):
            assert name not in {
                "core.private.source",
                "core.private.table",
                "core.private.noise",
                "core.private.grant",
                "opendp",
            }, path


def test_no_page_lies_where_streamlit_would_find_it_by_itself() -> None:
    assert [path.name for path in (ROOT / "pages").glob("*.py")] == ["__init__.py"]


def test_a_session_runs_one_page_at_a_time() -> None:
    """Two runs would share the session's project; see the double clicks in tests/load."""
    assert CONFIG["runner"]["fastReruns"] is False


def test_the_entry_is_short() -> None:
    assert len((ROOT / "app.py").read_text(encoding="utf-8").splitlines()) < 60


def test_nothing_computed_from_uploads_is_cached() -> None:
    for path in [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert "cache_data" not in text, path
        assert "cache_resource" not in text, path


def test_the_configuration_keeps_to_itself() -> None:
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"]["showErrorDetails"] == "type"
    assert CONFIG["client"]["showErrorLinks"] is False
    assert CONFIG["client"]["disableDataExport"] is True
    assert CONFIG["client"]["toolbarMode"] == "viewer"
    assert CONFIG["server"]["address"] == "127.0.0.1"
    assert CONFIG["server"]["maxUploadSize"] >= 200


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_carries_the_role_colours(theme: str) -> None:
    for role in (Role.PROTECTED, Role.OUTCOME, Role.ADMISSIBLE, Role.INADMISSIBLE):
        look = LOOKS[role]
        assert CONFIG["theme"][theme][f"{look.streamlit}Color"] == look.colour(theme)


def test_every_structure_has_its_words() -> None:
    text = (ROOT / "pages" / "steps" / "budget.py").read_text(encoding="utf-8")
    for name in STRUCTURES:
        assert f'"{name}":' in text


def test_reruns_feel_instant(app: AppTest) -> None:
    """At most thirty times an empty page at the 95th percentile, in the same run."""

    def seconds(page: AppTest) -> float:
        start = time.perf_counter()
        page.run()
        return time.perf_counter() - start

    empty = AppTest.from_string("import streamlit as st")
    empty.run()
    made(app)
    times, base = [], []
    for page in JOURNEY:
        go(app, page)
        for _ in range(5):
            times.append(seconds(app))
            base.append(seconds(empty))  # in turn, so that a busy machine slows both
    late = int(0.95 * len(times))
    slow, bare = sorted(times)[late], sorted(base)[late]
    assert slow <= 30 * bare, (slow, bare)
