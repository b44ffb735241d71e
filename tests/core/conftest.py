"""A ledger of one's own for every test that asks for it, and a demo table to run."""

import pytest

from core.__main__ import main
from tests.core.command_line import ROWS


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Each test has a ledger and a secret of its own."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUSTITIA_LEDGER", raising=False)
    return tmp_path / "home"


@pytest.fixture
def demo(tmp_path, home):
    assert main(["demo", "--out", str(tmp_path / "demo"), "--rows", str(ROWS)]) == 0
    return tmp_path / "demo"
