"""What the server's log says of a stumble: kind and place, never an error's own words.

Streamlit logs what no page caught with the whole message, and a message may hold a cell's value.
"""

from __future__ import annotations

import logging
import traceback

import streamlit as st

#: Streamlit's loggers that tell of errors in pages, and in downloads that pages make.
LOGGERS = ("streamlit.error_util", "streamlit.runtime.backend_operation_handler")


class Wordless(logging.Filter):
    """Leaves of an exception its kind and the lines of code it came through."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; never drop it."""
        if record.exc_info:
            kind, _, trace = record.exc_info
            name = "error" if kind is None else kind.__name__
            place = "".join(traceback.format_tb(trace))
            record.msg, record.args = f"{record.getMessage()}: {name}\n{place}", ()
            record.exc_info = record.exc_text = None
        return True


_filter = Wordless()


def keep_words_out() -> None:
    """Put the filter before Streamlit's loggers; once, however often it is asked."""
    st.set_option("logger.enableRich", False)  # it would print errors past the loggers
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_filter)
