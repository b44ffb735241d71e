"""Clicks that come faster than the server answers, on the real server."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager

import openpyxl
import pytest

from core.private.ledger import Ledger
from core.release_log import Act, ReleaseLog
from tests.load import journey
from tests.load.client import Client
from tests.load.running import Running, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("clicks")) as running:
        yield running


def slow_workbook() -> bytes:
    """One that takes the server some seconds to read."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append([f"c{column}" for column in range(12)])
    for row in range(15_000):
        sheet.append([row + column for column in range(12)])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


SLOW = slow_workbook()


@pytest.fixture(scope="module")
def reading(server: Running) -> float:
    """Seconds that the server takes to read the slow workbook just now."""
    with Client(server.address) as client:
        client.go("data")
        begun = time.monotonic()
        assert client.upload("upload", "wrong.xlsx", SLOW) < 300
        assert client.says("Attached: **wrong.xlsx")
        return time.monotonic() - begun


@contextmanager
def being_read(server: Running, reading: float) -> Iterator[Client]:
    """Somebody whose slow workbook the server reads just now."""
    with Client(server.address) as client:
        client.go("data")
        assert client.upload("upload", "wrong.xlsx", SLOW, wait=False) < 300
        time.sleep(reading / 4)
        yield client


def stays(client: Client, words: str, reading: float) -> bool:
    """Whether the page comes to show these words, and still does when any read has ended."""
    for _ in range(30):
        if client.says(words):
            time.sleep(2 * reading)
            break
        client.again()
    client.again()
    return client.says(words)


def test_a_double_click_on_sign_signs_once(server: Running) -> None:
    with Client(server.address) as client:
        journey.declare(client)
        journey.release_and_leave(client)
        journey.fit_sign_download(client, clicks=3)
    ledger = Ledger(server.ledger)
    acts = [entry.act for entry in ReleaseLog(ledger).entries()]
    ledger.close()
    assert acts == [Act.ASKED, Act.SIGNED]


def test_a_file_that_is_replaced_while_it_is_read_does_not_come_back(
    server: Running, reading: float
) -> None:
    with being_read(server, reading) as client:
        assert client.upload("upload", "right.csv", b"sex,grade\nf,A\nm,B\n") < 300
        assert stays(client, "Attached: **right.csv", reading)


def test_a_file_that_is_taken_out_while_it_is_read_does_not_come_back(
    server: Running, reading: float
) -> None:
    with being_read(server, reading) as client:
        client.take_out("upload")
        assert stays(client, "wrong.xlsx** is no longer attached", reading)
