"""The server's log of errors: kind and place, and no word that could hold a value."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pandas as pd
import pytest
from streamlit.dataframe_util import convert_pandas_df_to_arrow_bytes
from streamlit.error_util import handle_uncaught_app_exception
from streamlit.logger import get_logger

from pages.shared import logs

CELL = "4711.25"
#: Streamlit's loggers of uncaught errors and of tables that do not fit their columns, and ours.
NAMES = ("streamlit.error_util", "streamlit.dataframe_util", "justitia.test")


@pytest.fixture
def written() -> Iterator[list[str]]:
    """What these loggers would write."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler, before, form = Kept(), logging.getLogRecordFactory(), warnings.formatwarning
    logs.keep_words_out()
    for name in NAMES:
        get_logger(name).addHandler(handler)
    yield lines
    for name in NAMES:
        get_logger(name).removeHandler(handler)
    logging.setLogRecordFactory(before)
    warnings.formatwarning = form


def stumble(cell: str) -> None:
    try:
        raise KeyError(cell)
    except KeyError as error:
        raise ValueError(f"could not convert {cell}") from error


def test_an_error_that_no_page_caught_is_told_without_its_words(written: list[str]) -> None:
    try:
        stumble(CELL)
    except ValueError as error:
        handle_uncaught_app_exception(error)
    (line,) = written
    assert line.startswith("Uncaught app execution\nTraceback (most recent call last):")
    assert "in stumble" in line
    assert line.endswith("ValueError")
    assert CELL not in line


def test_a_table_of_mixed_cells_is_shown_and_none_of_them_logged(written: list[str]) -> None:
    convert_pandas_df_to_arrow_bytes(pd.DataFrame({"pay": [1, CELL, b"x"]}, dtype=object))
    (line,) = written
    assert "Serialization of dataframe" in line
    assert CELL not in line


def test_lines_without_an_error_are_left_alone(written: list[str]) -> None:
    logs.keep_words_out()  # as at every run
    logger = logging.getLogger(NAMES[2])
    logger.error("%s of %s", 1, 2)
    logger.error("no error is being handled", exc_info=True)
    assert written == ["1 of 2", "no error is being handled\nNoneType: None"]


def test_warnings_tell_their_place_and_no_cell_whatever_filters_come_and_go(
    written: list[str],
) -> None:
    with warnings.catch_warnings():  # saves and restores filters, but not this
        told = warnings.formatwarning(f"Cell B3 holds {CELL}", UserWarning, "reader.py", 223)
    assert told == "reader.py:223: UserWarning\n"
    assert warnings.formatwarning is logs._place_of


def test_however_often_it_is_asked_a_record_is_made_once(written: list[str]) -> None:
    make = logging.getLogRecordFactory()
    logs.keep_words_out()
    assert logging.getLogRecordFactory() is make
    try:
        stumble(CELL)
    except ValueError:
        logging.getLogger(NAMES[2]).exception("of %s", "ours")
    (line,) = written
    assert line.startswith("of ours\nTraceback")
    assert CELL not in line
