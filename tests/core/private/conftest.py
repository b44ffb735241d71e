"""Ledgers in memory, in a file and on a server."""

import os

import pytest

from core.private.ledger import Ledger
from tests.core.private.ledgers import POSTGRES


@pytest.fixture(params=["memory", "file", "postgres"])
def url(request, tmp_path):
    """The same behaviour everywhere; PostgreSQL when a server is offered."""
    if request.param == "memory":
        return "sqlite://"
    if request.param == "file":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def postgres_url(tmp_path, monkeypatch):
    """An empty PostgreSQL database, one for each process that runs tests, and an empty home."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    if POSTGRES not in os.environ:
        pytest.skip(f"no server: set {POSTGRES} to the URL that tests/postgres.sh start prints")
    import psycopg

    server = os.environ[POSTGRES].replace("postgresql+psycopg://", "postgresql://")
    name = f"justitia_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{server.rpartition('/')[0]}/{name}"


@pytest.fixture
def ledger(url):
    opened = Ledger(url)
    yield opened
    opened.close()


@pytest.fixture
def shared(tmp_path, request):
    """URLs that several processes can open at once."""
    return f"sqlite:///{tmp_path / 'shared.sqlite'}"
