"""What stands behind ``--data``: a path, or the address of a table in a database."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

_ADDRESS = re.compile(r"(connection:|[A-Za-z][A-Za-z0-9+.-]+:/)")


def is_database(data: object) -> bool:
    """Whether this is the address of a table in a database rather than a path.

    >>> is_database("duckdb:///data/people.duckdb?table=people"), is_database("people.csv")
    (True, False)
    """
    return isinstance(data, str) and _ADDRESS.match(data) is not None


def table(text: str) -> str | Path:
    """A path, or an address letter for letter (a path would lose one of its slashes)."""
    return text if is_database(text) else Path(text)


def file(text: str) -> Path:
    """A path.

    Raises
    ------
    argparse.ArgumentTypeError
        It is an address; the message does not quote it, because it may hold a password.
    """
    if is_database(text):
        raise argparse.ArgumentTypeError(
            "this command looks at rows, and those of a database stay there; give a file"
        )
    return Path(text)
