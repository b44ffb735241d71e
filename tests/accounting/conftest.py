"""Ledgers in files and on a server, with a home of their own."""

import pytest

from core.private.ledger import Ledger
from tests.core.private.conftest import postgres_url

__all__ = ["postgres_url"]


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
def ledger(url):
    opened = Ledger(url)
    yield opened
    opened.close()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The default ledger's folder; nothing names another ledger."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUSTITIA_LEDGER", raising=False)
    return tmp_path / "home"
