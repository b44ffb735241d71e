"""Twenty people at once on the real server, and wave after wave of them without growth."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest

from core.bundle import verify
from core.private.ledger import Ledger, SpendState
from core.release_log import Act, ReleaseLog
from tests.load.client import Client, forgery_token
from tests.load.journey import at_once
from tests.load.memory import TOLERATED, Waves, megabytes, watched
from tests.load.running import Running, errors_in, serving

PEOPLE = 20
WAVE, WAVES = 4, 6
#: Largest upload of the server under test, in mebibytes.
LIMIT = 30
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    # Sessions that were left are let go at once: their two minutes' grace is no leak.
    options = ("--server.disconnectedSessionTTL=1", f"--server.maxUploadSize={LIMIT}")
    with serving(tmp_path_factory.mktemp("load"), options=options) as running:
        yield running


def test_twenty_people_at_once_all_finish_and_the_ledger_is_right(server: Running) -> None:
    finished = at_once(PEOPLE, server.address)
    assert len(finished) == PEOPLE
    assert len({one.bundle for one in finished}) == PEOPLE
    for one in finished:
        assert not verify(one.bundle).simulated
    places = "\n".join(place for one in finished for place in one.places)
    assert "in line" in places, "twenty releases at once: somebody must have waited, and seen it"

    ledger = Ledger(server.ledger)
    populations = ledger.populations()
    spends = [spend for found in populations for spend in ledger.spends(found.name)]
    assert len(populations) == len(spends) == PEOPLE
    for spend in spends:
        assert (spend.state, spend.rho) == (SpendState.DONE, Fraction(1, 2))
        assert spend.debited is not None
        assert spend.rho * Fraction(999, 1000) <= spend.debited <= spend.rho
    log = ReleaseLog(ledger)
    acts = [entry.act for entry in log.entries()]
    assert log.check() == len(acts)
    assert sorted(acts) == sorted([Act.ASKED, Act.SIGNED] * PEOPLE)
    ledger.close()


def test_wave_after_wave_leaves_nothing_behind(server: Running) -> None:
    """After the twenty of the test before, who filled every cache there is."""
    found = watched(server, lambda: at_once(WAVE, server.address, watch=False), WAVES)
    assert not found.grows, (
        f"{found.slope / 1e6:.1f} ± {found.error / 1e6:.1f} MB stay after each wave of {WAVE} "
        f"({megabytes(found.after)}), which needs {found.footprint / 1e6:.0f} MB while it runs"
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_regression_sees_a_leak_of_a_fifth_and_not_the_scatter(seed: int) -> None:
    footprint, waves = 40e6, 6
    scatter = np.random.default_rng(seed).uniform(-2e6, 2e6, waves)
    steady = Waves(tuple(int(400e6 + s) for s in scatter), int(footprint))
    leak = 3 * TOLERATED * footprint
    leaking = Waves(tuple(int(400e6 + leak * n + s) for n, s in enumerate(scatter)), int(footprint))
    assert not steady.grows
    assert leaking.grows


def test_errors_in_a_log_are_found_with_their_places(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "10:00 Uncaught app execution\nTraceback (most recent call last):\n  File a\n    x = y\n"
        "ValueError\n10:01 all is well\n10:02 job r1 failed: SystemError\n"
        "Traceback (most recent call last):\n  File b\nKeyError"
    )
    assert errors_in(log) == [
        "10:02 job r1 failed: SystemError",
        "  File a\n    x = y\nValueError",
        "  File b\nKeyError",
    ]


def table_bytes(rows: int) -> bytes:
    """A wide enough CSV file to be seen among a server's memory."""
    chance = np.random.default_rng(7)
    numbers = chance.integers(100_000, 999_999, (rows, 12))
    lines = [",".join(map(str, row)) for row in numbers.tolist()]
    return "\n".join([",".join(f"c{n}" for n in range(12)), *lines]).encode()


def falls_below(server: Running, limit: float, seconds: float = 90.0) -> bool:
    """Whether the server's own memory comes down to this within a while."""
    deadline = monotonic() + seconds
    while server.own_bytes > limit and monotonic() < deadline:
        sleep(0.5)
    return server.own_bytes <= limit


def test_a_forgotten_table_and_a_closed_tab_give_the_memory_back(tmp_path: Path) -> None:
    """On a server of its own: what earlier visitors leave to be swept would be taken for ours."""
    content = table_bytes(400_000)
    with serving(tmp_path, options=("--server.disconnectedSessionTTL=1",)) as server:
        with Client(server.address) as client:
            client.go("data")
            # What a first table brings in for good, such as libraries, is not the table.
            small = content[: content.rindex(b"\n", 0, 10_000)]
            assert client.upload("upload", "first.csv", small) < 300
            assert client.says("Attached")
            client.take_out("upload")
            before = server.own_bytes
            assert client.upload("upload", "big.csv", content) < 300
            assert client.says("Attached")
            held = server.own_bytes - before
            assert held > len(content), "the file and what was read from it are in memory"
            client.take_out("upload")
            assert client.says("is gone from memory")
            assert falls_below(server, before + 0.5 * held)
            assert client.upload("upload", "big.csv", content) < 300
            assert server.own_bytes > before + 0.7 * held
        # The tab is closed: nobody said anything, and the table goes all the same.
        assert falls_below(server, before + 0.5 * held)


def test_the_server_refuses_an_upload_over_its_limit(server: Running) -> None:
    with Client(server.address) as client:
        client.go("data")
        assert client.widget("upload").max_upload_size_mb == LIMIT
        cookie, token = forgery_token(server.address)
        connection = HTTPConnection(server.address.removeprefix("http://"), timeout=60)
        connection.putrequest("PUT", f"/_stcore/upload_file/{client.session}/a-file")
        connection.putheader("Content-Length", str((LIMIT + 1) << 20))
        connection.putheader("Content-Type", "multipart/form-data; boundary=m")
        connection.putheader("Cookie", cookie)
        connection.putheader("X-Xsrftoken", token)
        connection.endheaders()
        assert connection.getresponse().status == 413, "by its length, before a byte is sent"
        connection.close()
