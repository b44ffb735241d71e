"""Ledgers in files and on a server, with a home of their own."""

import pytest

from tests.core.private.conftest import ledger, postgres_url

__all__ = ["ledger", "postgres_url"]


@pytest.fixture
def file(tmp_path):
    """Where a ledger file will be."""
    return tmp_path / "ledger" / "ledger.sqlite"


@pytest.fixture(params=["file", "postgres"])
def url(request, file):
    """The same behaviour in a file and, when a server is offered, on PostgreSQL."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    file.parent.mkdir()
    return f"sqlite:///{file}"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The default ledger's folder; nothing names another ledger."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUSTITIA_LEDGER", raising=False)
    return tmp_path / "home"
