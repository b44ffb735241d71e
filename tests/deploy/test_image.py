"""The image: its properties as text, its linters, and its commands carried out by another user."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from core.bundle import verify
from core.private.ledger import Ledger
from tests.deploy.image import (
    DOCKERFILE,
    READS_ALL,
    container,
    copied,
    health_command,
    now,
    stages,
    written_by,
)
from tests.load.journey import whole_journey
from tests.load.running import ROOT

IMAGE = stages(DOCKERFILE.read_text(encoding="utf-8"))
RUN = IMAGE[-1]
TOOLS = Path(sys.executable).parent


def test_the_linters_find_nothing() -> None:
    lint = subprocess.run(
        [TOOLS / "hadolint", DOCKERFILE], capture_output=True, text=True, check=False
    )
    assert (lint.returncode, lint.stdout) == (0, "")


def test_the_linter_would_find_a_fault(tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python:latest\nRUN pip install x\nUSER root\n", encoding="utf-8")
    lint = subprocess.run([TOOLS / "hadolint", bad], capture_output=True, text=True, check=False)
    assert lint.returncode != 0
    assert "DL3007" in lint.stdout


def test_every_base_is_pinned_and_the_same() -> None:
    assert len({stage.base for stage in IMAGE}) == 1
    for stage in IMAGE:
        name, _, tag = stage.base.partition(":")
        assert name == "python"
        assert re.fullmatch(r"3\.11(\.\d+)?-slim-\w+(@sha256:[0-9a-f]{64})?", tag)


def test_it_runs_as_nobody_in_particular_and_says_how_it_is() -> None:
    user, _, group = RUN.last("USER").partition(":")
    assert int(user) >= 10_000, "a number, so that an engine can see that it is not root"
    assert int(group) >= 10_000
    assert RUN.steps[-1][0] == "CMD"
    assert [name for name, _ in RUN.steps].index("USER") < len(RUN.steps) - 1
    assert "/_stcore/health" in RUN.last("HEALTHCHECK")
    assert json.loads(RUN.last("VOLUME")) == [RUN.environment["JUSTITIA_HOME"]]
    assert json.loads(RUN.last("CMD"))[:4] == ["python", "-m", "streamlit", "run"]


def test_the_lock_file_decides_what_is_installed() -> None:
    (install,) = [value for value in IMAGE[0].all("RUN") if "pip install" in value]
    assert "--require-hashes" in install
    assert "--only-binary=:all:" in install, "nothing is compiled, so that no compiler is needed"
    assert "--requirement requirements.lock" in install
    assert not [value for stage in IMAGE for value in stage.all("RUN") if "apt-get" in value]
    assert "pip uninstall" in install, "no installer is left in the image"


def test_no_secret_and_no_data_get_into_the_image() -> None:
    sources = [source for stage in IMAGE for source, _ in copied(stage)]
    assert "." not in sources
    assert not [s for s in sources if re.search(r"secret|\.env|sqlite|deploy|\.git", s)]
    for stage in IMAGE:
        for name in stage.environment:
            assert not re.search(r"secret|password|token|key", name, re.IGNORECASE)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored, "what is not named stays out of the builder"
    assert set(sources) == kept


def test_every_file_that_the_application_reads_is_in_the_image() -> None:
    sources = {source for source, _ in copied(RUN)}
    needed = set()
    for path in [ROOT / "app.py", *(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        needed |= {"/".join(parts) for parts in re.findall(r'"(docs)" / "([\w.-]+)"', text)}
    assert needed <= sources, "a document that a page reads is missing in the Dockerfile"


def test_its_settings_are_settings_that_streamlit_knows() -> None:
    from streamlit import config

    known = {f"STREAMLIT_{name.replace('.', '_').upper()}" for name in _snake(config)}
    for name in RUN.environment:
        assert not name.startswith("STREAMLIT_") or name in known


def _snake(config: object) -> list[str]:
    names = config.get_config_options()
    return [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name) for name in names]


@pytest.mark.slow
@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can become the image's user (and setpriv is part of util-linux)",
)
def test_it_works_as_another_user_who_can_write_to_the_store_alone(tmp_path: Path) -> None:
    user = int(RUN.last("USER").partition(":")[0])
    begun = now()
    with container(tmp_path, JUSTITIA_MODE="shared") as (running, store, work):
        assert running.process.uids().real == user
        finished = whole_journey(running.address, watch=False)
        port = str(urlsplit(running.address).port)
        healthy = subprocess.run([sys.executable, *health_command(port)[1:]], check=False)
        assert healthy.returncode == 0
        # No write but to the store: not beside the program, not in any place open to everybody.
        written = written_by(user, begun, [str(tmp_path), "/tmp", "/var/tmp", "/dev/shm"])
        assert written
        outside = [path for path in written if not path.is_relative_to(store)]
        assert outside == []
        assert {"justitia.sqlite", "justitia.sqlite.secret"} >= {
            path.name for path in written if path.suffix in {".sqlite", ".secret"}
        }
        with pytest.raises(PermissionError):
            _write_as(user, work / "app.py")
    assert not verify(finished.bundle).simulated
    ledger = Ledger(running.ledger)
    (population,) = ledger.populations()
    assert [spend.state.value for spend in ledger.spends(population.name, owner="guest")] == [
        "done"
    ]
    ledger.close()
    dead = subprocess.run(
        [sys.executable, *health_command(port)[1:]], stderr=subprocess.DEVNULL, check=False
    )
    assert dead.returncode != 0, "the health check must notice a dead server"


def _write_as(user: int, path: Path) -> None:
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *READS_ALL, "--"]
    tried = subprocess.run([*become, "tee", str(path)], input=b"", capture_output=True, check=False)
    if b"Permission denied" in tried.stderr:
        raise PermissionError(str(path))


def test_the_configuration_in_the_image_is_the_one_of_the_checkout() -> None:
    text = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert (".streamlit/config.toml", ".streamlit/config.toml") in copied(RUN)
    assert "secrets" not in tomllib.loads(text)
