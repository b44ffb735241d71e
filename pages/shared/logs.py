"""What the server's log says of a stumble: kind and place, never an error's own words.

Whoever catches an error writes it to the log with its whole message: Streamlit what no page
caught, or a preview that did not fit its columns at first.  That message may hold a cell's value.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import streamlit as st

log = logging.getLogger("justitia")


class Wordless:
    """Makes log records as ``make`` does, and leaves of an exception its kind and its lines."""

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **settings: Any) -> logging.LogRecord:
        """Make a record as :class:`logging.LogRecord` is made."""
        record = self._make(*args, **settings)
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            place = "".join(traceback.format_tb(trace))
            record.exc_info = None
            if record.name == "asyncio":  # its further lines quote the error
                record.msg = str(record.msg).partition("\n")[0]
            record.exc_text = f"Traceback (most recent call last):\n{place}{kind.__name__}"
        return record


def _nobody_caught(found: Any) -> None:
    error = (found.exc_type, found.exc_value, found.exc_traceback)
    log.error("nobody caught an error", exc_info=error)


def _place_of(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: Any = None
) -> str:
    return f"{filename}:{lineno}: {category.__name__}\n"


def keep_words_out() -> None:
    """See to it that what this process tells of errors and warnings is wordless."""
    st.set_option("logger.enableRich", False)  # it would print errors past the loggers
    threading.excepthook = sys.unraisablehook = _nobody_caught
    # Libraries warn of single cells, and no filter of warnings holds between threads.
    warnings.formatwarning = _place_of
    make = logging.getLogRecordFactory()
    if not isinstance(make, Wordless):
        logging.setLogRecordFactory(Wordless(make))
