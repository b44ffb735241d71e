"""The server's log of what no page caught: kind and place, and no word that could hold a value."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from streamlit.error_util import handle_uncaught_app_exception

from pages.shared import logs


@pytest.fixture
def written() -> Iterator[list[str]]:
    """What Streamlit's logger of uncaught errors would write."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    logs.keep_words_out()
    logger, handler = logging.getLogger(logs.LOGGERS[0]), Kept()
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def stumble(cell: str) -> None:
    try:
        raise KeyError(cell)
    except KeyError as error:
        raise ValueError(f"could not convert {cell}") from error


def test_an_error_is_told_without_its_words(written: list[str]) -> None:
    cell = "4711.25"
    try:
        stumble(cell)
    except ValueError as error:
        handle_uncaught_app_exception(error)
    (line,) = written
    assert "Uncaught app execution: ValueError" in line
    assert "in stumble" in line
    assert cell not in line


def test_lines_without_an_error_are_left_alone(written: list[str]) -> None:
    logs.keep_words_out()  # as at every run
    logger = logging.getLogger(logs.LOGGERS[0])
    logger.error("%s of %s", 1, 2)
    assert written == ["1 of 2"]
    assert logger.filters.count(logs._filter) == 1
