"""A home of its own for every test, and the doors of the application and of the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.conftest import app, own_ledger
from tests.browser.conftest import chrome

__all__ = ["app", "chrome", "home", "own_ledger"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for ledgers, and a working folder that must stay as it is."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUSTITIA_LEDGER", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield tmp_path
    assert list(work.iterdir()) == []
