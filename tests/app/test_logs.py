"""The server's log of errors: kind and place, and no word that could hold a value."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import warnings
from collections.abc import Iterator

import pandas as pd
import pytest
from streamlit.dataframe_util import convert_pandas_df_to_arrow_bytes
from streamlit.error_util import handle_uncaught_app_exception
from streamlit.runtime import Runtime

from pages.shared import logs, warming

CELL = "4711.25"
HOOKS = ((warnings, "formatwarning"), (threading, "excepthook"), (sys, "unraisablehook"))
#: Streamlit's loggers of uncaught errors and of tables that do not fit their columns, the event
#: loop's, and ours.
NAMES = ("streamlit.error_util", "streamlit.dataframe_util", "asyncio", "justitia")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What these loggers would write."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    for place, name in HOOKS:
        monkeypatch.setattr(place, name, getattr(place, name))  # put back at the end
    handler, before = Kept(), logging.getLogRecordFactory()
    logs.keep_words_out()
    loggers = [logging.getLogger(name) for name in NAMES]
    for logger in loggers:
        logger.addHandler(handler)
    yield lines
    for logger in loggers:
        logger.removeHandler(handler)
    logging.setLogRecordFactory(before)


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
    logger = logging.getLogger("justitia.test")
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


@pytest.mark.parametrize("how", ["thread", "ignored"])
def test_errors_that_nobody_could_catch_are_wordless_too(
    written: list[str], how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if how == "thread":
        thread = threading.Thread(target=stumble, args=(CELL,), name="worker")
        thread.start()
        thread.join()
    else:

        class Closing:
            def __del__(self) -> None:
                stumble(CELL)

        Closing()
        gc.collect()
    (line,) = written
    assert "in stumble" in line
    assert line.endswith("ValueError")
    assert CELL not in line + capsys.readouterr().err


def test_a_task_that_nobody_waited_for_does_not_quote_its_error(written: list[str]) -> None:
    async def forgotten() -> None:
        stumble(CELL)

    async def left() -> None:
        task = asyncio.create_task(forgotten())
        await asyncio.sleep(0.01)
        del task
        gc.collect()

    asyncio.run(left())
    (line,) = written
    assert "never retrieved" in line
    assert CELL not in line


def test_a_real_server_is_wordless_from_its_first_visitor_on(
    written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(warming, "exists", lambda: True)
    monkeypatch.setattr(warming, "get_instance", lambda: Runtime.__new__(Runtime))
    monkeypatch.setattr(warming, "keep_words_out", lambda: asked.append(1))
    monkeypatch.setattr(warming, "load", lambda: None)
    monkeypatch.setattr(warming, "_begun", threading.Event())
    for _ in range(3):
        warming.begin()
    assert asked == [1]


def test_however_often_it_is_asked_a_record_is_made_once(written: list[str]) -> None:
    make = logging.getLogRecordFactory()
    logs.keep_words_out()
    assert logging.getLogRecordFactory() is make
    try:
        stumble(CELL)
    except ValueError:
        logging.getLogger("justitia.test").exception("of %s", "ours")
    (line,) = written
    assert line.startswith("of ours\nTraceback")
    assert CELL not in line
