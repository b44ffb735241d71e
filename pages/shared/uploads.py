"""Uploaded files: how large they may be, and that they leave memory when nobody works with them.

Streamlit keeps an upload for as long as its session lives.  Here a table goes, with the bytes it
was read from, when its person says so, when the browser has been gone for a while, and on a shared
server when nobody has touched the page for ``JUSTITIA_IDLE_MINUTES``.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import threading
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.runtime import exists, get_instance
from streamlit.runtime.app_session import AppSessionState
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.errors import ReadingError
from pages.shared.people import shared

if TYPE_CHECKING:
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.state.session_state import SessionState

    from pages.shared.project import Project

#: Environment variable: minutes without a click after which a table goes; 0 is never.
IDLE = "JUSTITIA_IDLE_MINUTES"
IDLE_MINUTES = 60.0
#: How often is looked for tables that nobody works with, in seconds.
SWEEP_SECONDS = 15.0
#: A session may hold so many times the largest upload; what is more goes at the next sweep.
FILES = 3
MEBIBYTE = 1 << 20
log = logging.getLogger("justitia.uploads")


def largest() -> int:
    """The largest upload that the server takes, in mebibytes (``server.maxUploadSize``)."""
    return int(st.get_option("server.maxUploadSize"))


def uploader(
    label: str, types: list[str], key: str, *, bytes_at_most: int | None = None, **settings: Any
) -> Any:
    """A file uploader that says its limit.

    Parameters
    ----------
    bytes_at_most
        What the reader behind it takes; the server's own limit unless given.

    Returns
    -------
    UploadedFile or None
        The file, if one was put in.
    """
    limit = largest()
    if bytes_at_most is not None:
        limit = min(limit, max(bytes_at_most // MEBIBYTE, 1))
    return st.file_uploader(label, type=types, key=key, max_upload_size=limit, **settings)


def held(key: str) -> UploadedFile | None:
    """The file in the uploader with this key; None where there is none, or it was let go."""
    file = st.session_state.get(key)
    # What was deleted, or emptied when the table went, still stands in the session's state.
    return file if type(file) is UploadedFile and len(file.getvalue()) == file.size else None


def check_size(file: Any, bytes_at_most: int | None = None) -> None:
    """Refuse a file that is larger than its reader takes; see :func:`check_length`."""
    check_length(file.size, bytes_at_most)


def check_length(size: int, bytes_at_most: int | None = None) -> None:
    """Refuse so many bytes where the reader takes fewer, whatever the browser checked.

    Raises
    ------
    ReadingError
        It is; the message names the limit.
    """
    limit = largest() * MEBIBYTE
    if bytes_at_most is not None:
        limit = min(limit, bytes_at_most)
    if size > limit:
        raise ReadingError(
            f"the file is larger than {limit / 1e6:,.0f} MB, the most that is taken here; leave "
            "out what is not needed, or use Parquet, which is smaller than CSV"
        )


def keep_in_memory() -> None:
    """Receive uploads in memory: the web framework would spool those over 1 MB to the disk.

    And read them into memory that can be given back, see :func:`give_back`.
    """
    import pyarrow as pa
    from starlette.formparsers import MultiPartParser

    MultiPartParser.spool_max_size = (largest() + 1) * MEBIBYTE
    # Arrow's own allocator keeps, for each thread, what was freed; the system's gives it back.
    pa.set_memory_pool(pa.system_memory_pool())


# -- who works with what -------------------------------------------------------------------------


@dataclass
class Visit:
    """One browser session as the keeper sees it; holds nothing alive."""

    project: weakref.ref[Project]
    session: weakref.ref[AppSession] | None
    seen: float
    gone_since: float | None = None

    @property
    def app_session(self) -> AppSession | None:
        """Streamlit's session, while it is there."""
        return None if self.session is None else self.session()

    @property
    def runs(self) -> bool:
        """Whether its page runs: whoever reads a large table for long is at work."""
        its = self.app_session
        return its is not None and its._state is AppSessionState.APP_IS_RUNNING


class Keeper:
    """Lets go of tables and files that nobody works with; one for the process.

    Parameters
    ----------
    clock
        Seconds that only grow.
    """

    def __init__(self, clock: Any = time.monotonic) -> None:
        self._clock = clock
        self._visits: dict[str, Visit] = {}
        self._worked = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def touch(self, project: Project) -> None:
        """A script runs: somebody works with this project."""
        session = _session()
        if session is None:
            return
        its = get_instance().get_app_session(session) if exists() else None
        with self._lock:
            self._visits[session] = Visit(
                weakref.ref(project), None if its is None else weakref.ref(its), self._clock()
            )
            self._worked = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="justitia-uploads", daemon=True
                )
                self._thread.start()

    def forget(self) -> None:
        """Drop the files of the session that runs: its person forgets the table."""
        context = get_script_run_ctx(suppress_warning=True)
        if context is not None:
            _drop_files(context.session_id, context.session_state)

    def sweep(self) -> int:
        """Drop what nobody works with; returns how many tables went."""
        now, idle, gone_for = self._clock(), idle_seconds(), _reconnection_seconds()
        with self._lock:
            visits = list(self._visits.items())
        dropped = 0
        for session, visit in visits:
            if _is_connected(session):
                visit.gone_since = None
            elif visit.gone_since is None:
                visit.gone_since = now
            gone = visit.gone_since is not None and now - visit.gone_since >= gone_for
            left = idle is not None and now - visit.seen >= idle and not visit.runs
            if gone or left:
                try:
                    dropped += self._drop(session, visit, gone)
                except Exception as error:  # the others' turn comes all the same
                    log.error("dropping a session failed: %s", type(error).__name__)
        _drop_hoards()
        with self._lock:
            # What was worked on may be garbage by the sweep after the next one only.
            worked, self._worked = self._worked or dropped > 0, bool(visits)
        if worked:
            give_back()
        return dropped

    def _drop(self, session: str, visit: Visit, gone: bool) -> int:
        with self._lock:  # who comes back meanwhile waits, and is seen at the next sweep
            if self._visits.get(session) is not visit:
                return 0
            dropped = self._drop_rows(visit, gone)
            its = visit.app_session
            _drop_files(session, None if its is None else its.session_state)
            if gone:
                del self._visits[session]
            return dropped

    def _drop_rows(self, visit: Visit, gone: bool) -> int:
        project = visit.project()
        if project is None or project.table is None:
            return 0
        project.drop_rows()
        if not gone:
            project.say(
                "The table was released from memory because nobody had worked here for a while. "
                "Releases stay readable; put the file in again on Data to spend again."
            )
        return 1

    def _run(self) -> None:
        while True:
            time.sleep(SWEEP_SECONDS)
            try:
                self.sweep()
            except Exception as error:  # the next sweep may work; no message, it could hold a value
                log.error("sweeping uploads failed: %s", type(error).__name__)


def give_back() -> None:
    """Collect garbage, such as sessions that ended, and return what is free to the system.

    Streamlit would collect after every run of a page, with everybody else waiting.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # only the GNU library keeps, and trims
        return


def idle_seconds() -> float | None:
    """After how long without a click a table goes; None is never, as on one's own machine."""
    typed = os.environ.get(IDLE, "").strip()
    try:
        minutes = float(typed) if typed else (IDLE_MINUTES if shared() else 0.0)
    except ValueError:
        minutes = IDLE_MINUTES  # a slip of the pen must not keep tables for ever
    return 60.0 * minutes if minutes > 0 else None


def _session() -> str | None:
    context = get_script_run_ctx(suppress_warning=True)
    return None if context is None else context.session_id


def _is_connected(session: str) -> bool:
    return exists() and get_instance().is_active_session(session)


def _reconnection_seconds() -> float:
    """For how long a browser may be away and find its session again."""
    return float(st.get_option("server.disconnectedSessionTTL"))


def _drop_files(session: str, state: SessionState | SafeSessionState | None) -> None:
    """Let go of what a session uploaded, and of the copies that its state still holds.

    Streamlit keeps the file, with all its bytes, until the session runs again, which may be never;
    so each copy is emptied where it stands.  They are looked for in the state alone: a search
    through all objects of the process holds what other threads are just making, and breaks it.
    """
    if exists():
        get_instance().uploaded_file_mgr.remove_session_files(session)
    while isinstance(state, SafeSessionState):  # as a page that runs sees it
        state = state._state
    if state is None:
        return
    widgets = [*state._new_widget_state.states.values()]
    values = [getattr(widget, "value", None) for widget in widgets]
    values += [*state._old_state.values(), *state._new_session_state.values()]
    for value in values:
        for file in value if isinstance(value, list) else [value]:
            if isinstance(file, UploadedFile):
                file.truncate(0)  # not closed: the page may draw its uploader once more


def _drop_hoards() -> None:
    """No session may fill the memory with files that no page shows."""
    if not exists():
        return
    manager = get_instance().uploaded_file_mgr
    limit = FILES * largest() * MEBIBYTE
    for session, files in list(getattr(manager, "file_storage", {}).items()):
        if sum(len(file.data) for file in list(files.values())) > limit:
            manager.remove_session_files(session)
            log.warning("a session held more uploads than any page needs; they were dropped")


_keeper = Keeper()


def keeper() -> Keeper:
    """The process's keeper (a plain module value, like the desk of jobs)."""
    return _keeper
