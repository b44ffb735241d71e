"""A home of its own for every test that asks."""

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
