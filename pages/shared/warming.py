"""What every visit needs, loaded once while the first visitor reads the first page."""

from __future__ import annotations

import importlib
import threading

from streamlit.runtime import Runtime, exists, get_instance

from pages.shared.logs import keep_words_out
from pages.shared.uploads import keep_in_memory

#: Slow to load, and part of every journey.
LIBRARIES = (
    "numpy",
    "pandas",
    "plotly.graph_objects",
    "scipy.stats",
    "scipy.optimize",
    "opendp.prelude",
    "sqlalchemy.dialects.sqlite",
    "core.deriving",
    "core.measuring",
    "pages.shared.actions",
    "pages.shared.pictures",
)
_lock = threading.Lock()
_begun = threading.Event()


def begin() -> None:
    """Prepare the process for its visitors; loading happens once, and only in a real server."""
    keep_in_memory()
    if not exists() or not isinstance(get_instance(), Runtime):
        return
    with _lock:
        if not _begun.is_set():
            _begun.set()
            keep_words_out()
            threading.Thread(target=load, name="justitia-warming", daemon=True).start()


def load() -> None:
    """Load the libraries; what a page needs before that it loads itself."""
    for name in LIBRARIES:
        importlib.import_module(name)
