"""The application in-process: a ledger of its own for every test, jobs run synchronously."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from pages.shared import house, jobs

ROOT = Path(__file__).parents[2]


class Synchronous:
    """Runs a job before ``submit`` returns."""

    def submit(self, work: Callable[[], None], /) -> None:
        work()


class Held:
    """Keeps jobs until the test lets them go."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, work: Callable[[], None], /) -> None:
        self.waiting.append(work)

    def release(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    monkeypatch.setenv("JUSTITIA_LEDGER", url)
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path))
    monkeypatch.delenv("JUSTITIA_MODE", raising=False)
    jobs.use_executor(Synchronous())
    yield
    jobs.use_executor(None)
    house.close(url)


@pytest.fixture
def held() -> Held:
    executor = Held()
    jobs.use_executor(executor)
    return executor


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)


def go(app: AppTest, page: str) -> AppTest:
    app.switch_page(f"pages/steps/{page}.py").run()
    assert not app.exception, app.exception[0].message
    return app


def cancel_button(app: AppTest) -> Button:
    """Cancel of the job that the page watches."""
    (found,) = [button for button in app.button if (button.key or "").startswith("cancel_")]
    return found
