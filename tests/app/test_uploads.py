"""Uploads: limits that hold on the server, and memory that is given back."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from time import monotonic, sleep
from types import SimpleNamespace

import pytest
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.state.session_state import SessionState
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec
from streamlit.testing.v1 import AppTest

from core.errors import ReadingError
from pages.shared import uploads
from pages.shared.project import KEY
from tests.app.conftest import go
from tests.app.test_data_page import STAFF, opened, upload
from tests.app.test_journey import words


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Table:
    """Stands for rows: can be watched, unlike a tuple."""


class Session:
    """Stands for Streamlit's session, with the state that it keeps between runs of a page."""

    def __init__(self) -> None:
        assert "_state" in AppSession.__init__.__code__.co_names, "as Streamlit calls it"
        self._state = AppSessionState.APP_NOT_RUNNING
        self.session_state = SessionState()

    def keep(self, file: UploadedFile | list[UploadedFile], where: str) -> None:
        if where == "old":
            self.session_state._old_state["w"] = file
        elif where == "set":
            self.session_state._new_session_state["upload"] = file
        else:
            self.session_state._new_widget_state.set_from_value("w", file)


@pytest.fixture
def house_of_sessions(monkeypatch: pytest.MonkeyPatch):
    """A keeper with a clock of its own, sessions that come and go, and their files."""
    clock, connected, files = Clock(), {"s1"}, {}
    manager = SimpleNamespace(
        file_storage=files, remove_session_files=lambda session: files.pop(session, None)
    )
    states = {"s1": Session(), "s11": Session()}
    runtime = SimpleNamespace(
        is_active_session=lambda session: session in connected,
        get_app_session=lambda session: states[session] if session in connected else None,
        uploaded_file_mgr=manager,
    )
    monkeypatch.setattr(uploads, "exists", lambda: True)
    monkeypatch.setattr(uploads, "get_instance", lambda: runtime)
    monkeypatch.setattr(uploads, "_session", lambda: "s1")
    keeper = uploads.Keeper(clock)
    keeper._thread = object()  # type: ignore[assignment] # sweeps happen when the test says so
    return SimpleNamespace(
        keeper=keeper, clock=clock, connected=connected, files=files, states=states
    )


def uploaded_file(session: str) -> UploadedFile:
    """As Streamlit makes it for a page of this session."""
    record = UploadedFileRec(f"of-{session}", "rows.csv", "text/csv", b"rows")
    return UploadedFile(record, FileURLs(upload_url=f"/_stcore/upload_file/{session}/f"))


def project_with(table: object) -> SimpleNamespace:
    class Project(SimpleNamespace):
        def drop_rows(self) -> None:
            self.table = None

    said: list[str] = []
    return Project(table=table, say=said.append, said=said)


def test_a_table_goes_when_nobody_works_with_it(house_of_sessions, monkeypatch) -> None:
    monkeypatch.setenv("JUSTITIA_IDLE_MINUTES", "30")
    it, table = house_of_sessions, Table()
    gone = weakref.ref(table)
    project = project_with(table)
    it.files["s1"] = {"f": SimpleNamespace(data=b"rows")}
    it.keeper.touch(project)
    del table
    it.clock.now = 29 * 60
    assert it.keeper.sweep() == 0
    it.keeper.touch(project)  # a click starts the half hour anew
    it.clock.now = 58 * 60
    assert it.keeper.sweep() == 0
    it.clock.now = 60 * 60
    assert it.keeper.sweep() == 1
    gc.collect()
    assert gone() is None
    assert it.files == {}
    assert "put the file in again" in project.said[0]
    assert it.keeper.sweep() == 0


@pytest.mark.parametrize("where", ["old", "set", "new"])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
def test_copies_in_a_session_that_was_left_are_emptied(
    house_of_sessions, monkeypatch, where: str, many: bool, leaves: bool
) -> None:
    monkeypatch.setenv("JUSTITIA_IDLE_MINUTES", "30")
    it, mine, others = house_of_sessions, uploaded_file("s1"), uploaded_file("s11")
    it.states["s1"].keep([mine] if many else mine, where)
    it.states["s11"].keep(others, where)
    it.keeper.touch(project_with(None))
    if leaves:
        it.connected.clear()
        it.keeper.sweep()
        assert mine.getvalue() == b"rows"  # the browser may come back
    it.clock.now = 31 * 60
    it.keeper.sweep()
    assert mine.getvalue() == b""
    assert others.getvalue() == b"rows"


def test_who_comes_back_while_the_sweep_looks_around_keeps_everything(
    house_of_sessions, monkeypatch
) -> None:
    monkeypatch.setenv("JUSTITIA_IDLE_MINUTES", "30")
    it, project = house_of_sessions, project_with(Table())
    it.keeper.touch(project)
    it.clock.now = 31 * 60
    file = uploaded_file("s1")

    def clicks(session: str) -> bool:
        it.keeper.touch(project)
        it.states["s1"].keep(file, "new")
        it.files["s1"] = {"f": SimpleNamespace(data=b"rows")}
        return True

    monkeypatch.setattr(uploads, "_is_connected", clicks)
    assert it.keeper.sweep() == 0
    assert project.table is not None
    assert file.getvalue() == b"rows"
    assert "s1" in it.files


def test_a_session_whose_files_cannot_be_dropped_loses_its_rows_and_stops_nobody(
    house_of_sessions, monkeypatch
) -> None:
    monkeypatch.setenv("JUSTITIA_IDLE_MINUTES", "30")
    it, projects = house_of_sessions, [project_with(Table()), project_with(Table())]
    it.connected.add("s11")
    for session, project in zip(("s1", "s11"), projects, strict=True):
        monkeypatch.setattr(uploads, "_session", lambda session=session: session)
        it.keeper.touch(project)
    held, other = uploaded_file("s1"), uploaded_file("s11")
    it.states["s1"].keep(held, "new")
    it.states["s11"].keep(other, "new")
    it.clock.now = 31 * 60
    with held.getbuffer():  # somebody reads it: it cannot be emptied now
        it.keeper.sweep()
        assert [project.table for project in projects] == [None, None]
        assert other.getvalue() == b""
        assert held.getvalue() == b"rows"
    it.keeper.sweep()
    assert held.getvalue() == b""


def test_whoever_reads_for_longer_than_the_idle_time_is_at_work(
    house_of_sessions, monkeypatch
) -> None:
    monkeypatch.setenv("JUSTITIA_IDLE_MINUTES", "30")
    it, project = house_of_sessions, project_with(Table())
    it.keeper.touch(project)
    it.clock.now = 31 * 60
    it.states["s1"]._state = AppSessionState.APP_IS_RUNNING
    assert it.keeper.sweep() == 0
    assert project.table is not None
    it.states["s1"]._state = AppSessionState.APP_NOT_RUNNING
    assert it.keeper.sweep() == 1


def test_the_keeper_keeps_no_session_alive(house_of_sessions) -> None:
    it = house_of_sessions
    it.keeper.touch(project_with(None))
    gone = weakref.ref(it.states.pop("s1"))
    gc.collect()
    assert gone() is None
    it.connected.clear()
    for it.clock.now in (0, 1e6):
        it.keeper.sweep()


def test_sweeping_does_not_break_what_other_threads_are_making(house_of_sessions) -> None:
    """A search through all objects holds a tuple that is being made, and Python refuses to go on.

    Pages, and releases already paid for, then failed with a SystemError.
    """
    it, stop, broken = house_of_sessions, threading.Event(), []

    def slowly() -> Iterator[int]:
        for number in range(40):
            if number % 7 == 0:
                sleep(0)
            yield number

    def make() -> None:
        while not stop.is_set():
            try:
                tuple(slowly())
            except SystemError as error:
                broken.append(error)

    it.states["s1"].keep(uploaded_file("s1"), "new")
    it.keeper.touch(project_with(None))
    it.connected.clear()
    it.keeper.sweep()
    it.clock.now = 1e6
    makers = [threading.Thread(target=make) for _ in range(3)]
    for maker in makers:
        maker.start()
    until = monotonic() + 1
    while monotonic() < until:
        it.keeper.sweep()
        uploads._drop_files("s1", it.states["s1"].session_state)
    stop.set()
    for maker in makers:
        maker.join()
    assert not broken


def test_an_emptied_file_is_not_held(monkeypatch) -> None:
    file = uploaded_file("s1")
    monkeypatch.setattr(uploads.st, "session_state", {"upload": file})
    assert uploads.held("upload") is file
    file.truncate(0)
    assert uploads.held("upload") is None


def test_a_table_goes_when_its_browser_is_gone(house_of_sessions) -> None:
    it, project = house_of_sessions, project_with(Table())
    it.files["s1"] = {"f": SimpleNamespace(data=b"rows")}
    it.keeper.touch(project)
    it.connected.clear()
    assert it.keeper.sweep() == 0  # it may come back for two minutes
    it.clock.now = 60
    it.connected.add("s1")
    it.keeper.sweep()
    it.connected.clear()
    it.clock.now = 130
    assert it.keeper.sweep() == 0
    it.clock.now = 260
    assert it.keeper.sweep() == 1
    assert project.table is None
    assert it.files == {}


def test_alone_on_a_machine_a_table_stays(house_of_sessions, monkeypatch) -> None:
    monkeypatch.delenv("JUSTITIA_IDLE_MINUTES", raising=False)
    it, project = house_of_sessions, project_with(Table())
    it.keeper.touch(project)
    it.clock.now = 1e6
    assert it.keeper.sweep() == 0
    monkeypatch.setenv("JUSTITIA_MODE", "shared")
    assert it.keeper.sweep() == 1


def test_the_keeper_keeps_no_project_alive(house_of_sessions) -> None:
    it, project = house_of_sessions, project_with(Table())
    watched = weakref.ref(project)
    it.keeper.touch(project)
    del project
    gc.collect()
    assert watched() is None
    it.clock.now = 1e6
    it.keeper.sweep()


def test_files_that_no_page_shows_do_not_pile_up(house_of_sessions, monkeypatch) -> None:
    monkeypatch.setattr(uploads, "largest", lambda: 1)
    it = house_of_sessions
    half = SimpleNamespace(data=b"x" * (uploads.MEBIBYTE // 2))
    it.files["s1"] = {str(n): half for n in range(6)}
    it.files["s2"] = {str(n): half for n in range(7)}
    it.keeper.sweep()
    assert set(it.files) == {"s1"}


@pytest.mark.parametrize(
    ("typed", "seconds"), [("0", None), ("5", 300), ("0.5", 30), ("soon", 3600), ("-1", None)]
)
def test_the_idle_time_is_what_was_set(typed: str, seconds: float | None, monkeypatch) -> None:
    monkeypatch.setenv("JUSTITIA_IDLE_MINUTES", typed)
    assert uploads.idle_seconds() == seconds


def test_forget_this_table_gives_the_rows_back(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    project = app.session_state[KEY]
    rows = weakref.ref(project.table.frame)
    go(app, "start")
    next(button for button in app.button if "Forget" in button.label).click().run()
    assert project.table is None
    gc.collect()
    assert rows() is None
    assert "is no longer attached" in words(go(app, "data"))


SECRET = STAFF.replace("grade", "the one who must not linger")


@pytest.fixture
def bytes_in_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many files of this test still stand anywhere with what was in them."""
    made: list[weakref.ref[UploadedFile]] = []

    def watched(kind: type[UploadedFile], *_: object) -> UploadedFile:
        file = BytesIO.__new__(kind)
        made.append(weakref.ref(file))
        return file

    monkeypatch.setattr(UploadedFile, "__new__", watched)  # copies are made by it too

    def count() -> int:
        gc.collect()
        files = [file for file in (one() for one in made) if file is not None]
        return sum(b"must not linger" in file.getvalue() for file in files)

    return count


def test_a_file_that_is_taken_out_leaves_no_copy_behind(
    app: AppTest, bytes_in_memory: Callable[[], int]
) -> None:
    """Streamlit's session state would keep it until the page runs again, which may be never."""
    upload(opened(app), "staff.csv", SECRET)
    assert bytes_in_memory() > 0
    app.file_uploader(key="upload").set_value([]).run()
    assert not app.exception
    assert "is gone from memory" in words(app)
    assert bytes_in_memory() == 0


def test_a_file_that_was_let_go_is_not_read_again(
    app: AppTest, bytes_in_memory: Callable[[], int]
) -> None:
    """The page that was drawn before still shows its buttons."""
    upload(opened(app), "staff.csv", SECRET)
    project = app.session_state[KEY]
    project.drop_rows()
    uploads._drop_files("test session id", app.session_state._state)
    assert bytes_in_memory() == 0
    next(button for button in app.button if button.label == "Read again").click().run()
    assert not app.exception
    assert project.table is None


def test_another_project_gives_the_rows_of_the_one_before_back(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    rows = weakref.ref(app.session_state[KEY].table.frame)
    go(app, "start")
    app.button(key="demo_hiring").click().run()
    assert not app.exception
    gc.collect()
    assert rows() is None


@pytest.mark.parametrize(("key", "limit"), [("codebook", 20_000_000), ("upload", 500 << 20)])
def test_a_file_over_the_limit_is_refused_whatever_the_browser_checked(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, key: str, limit: int
) -> None:
    if key == "codebook":
        upload(opened(app), "staff.csv", STAFF)
    else:
        opened(app)
        monkeypatch.setattr(uploads, "largest", lambda: 1)
        limit = uploads.MEBIBYTE
    before = app.session_state[KEY].table
    app.file_uploader(key=key).set_value(("big.csv", b"x" * (limit + 1), "text/csv")).run()
    assert not app.exception
    assert f"larger than {limit / 1e6:,.0f} MB" in words(app)
    assert app.session_state[KEY].table is before


def test_published_statistics_have_their_limit_too(app: AppTest) -> None:
    app.run()
    go(app, "posterior")
    app.segmented_control(key="posterior_door").set_value("published").run()
    app.text_area(key="published_text").set_value("x" * 20_000_001).run()
    assert not app.exception
    assert "larger than 20 MB" in words(app)


def test_the_limit_is_one_clear_sentence() -> None:
    with pytest.raises(ReadingError, match="larger than 1 MB, the most that is taken here"):
        uploads.check_length(2_000_000, 1_000_000)
    uploads.check_length(1_000_000, 1_000_000)


def test_a_large_upload_is_received_in_memory_and_not_on_the_disk(app: AppTest) -> None:
    from starlette.datastructures import Headers
    from starlette.formparsers import MultiPartParser

    app.run()  # what a visit sets up
    head = b'--m\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    body = head + b"1" * 5_000_000 + b"\r\n--m--\r\n"

    async def stream() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    headers = Headers({"content-type": "multipart/form-data; boundary=m"})

    async def parse() -> tuple[int, bool]:
        form = await MultiPartParser(headers, stream()).parse()
        file = form["file"]
        size, on_disk = file.size, file.file._rolled
        await form.close()
        return size, on_disk

    with ThreadPoolExecutor(1) as pool:  # whatever loop the tests' own thread may have
        assert pool.submit(asyncio.run, parse()).result() == (5_000_000, False)
