"""The composition: its schema, what each service may do, and its proxy in front of a server."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from ruamel.yaml import YAML

from tests.browser import house
from tests.load.client import Client
from tests.load.journey import declare
from tests.load.running import ROOT, Running, free_port, serving

COMPOSE = YAML(typ="safe").load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NGINX = ROOT / "deploy" / "nginx.conf"
CHECKER = (Path(sys.executable).parent / "check-jsonschema", "--builtin-schema")
HOST = "justitia.example.org"
MEBIBYTE = 1 << 20


def test_it_fits_the_schema_of_compose_files() -> None:
    checked = subprocess.run(
        [*CHECKER, "vendor.compose-spec", ROOT / "compose.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_may_do_more_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("user", "999:999") == "999:999"


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_version(name: str) -> None:
    _, _, tag = SERVICES[name]["image"].rpartition(":")
    assert re.match(r"\d+\.?\d*", tag), "no latest, and no tag that moves without notice"


def test_what_is_written_lies_on_volumes_and_the_rest_in_memory() -> None:
    app = SERVICES["app"]
    assert app["volumes"] == ["store:/var/lib/justitia"]
    assert [mount.split(":")[0] for mount in app["tmpfs"]] == ["/tmp"]
    assert SERVICES["db"]["volumes"] == ["ledger:/var/lib/postgresql/data"]
    assert all(mount.endswith(":ro") for mount in SERVICES["proxy"]["volumes"])
    named = {mount.split(":")[0] for mount in app["volumes"] + SERVICES["db"]["volumes"]}
    assert named == set(COMPOSE["volumes"])


def test_only_the_proxy_is_reached_from_outside_and_the_database_by_nobody_else() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert SERVICES["db"]["networks"] == ["back"]
    assert COMPOSE["networks"]["back"]["internal"] is True
    assert "back" not in SERVICES["proxy"]["networks"]


def test_secrets_are_files_and_in_no_variable() -> None:
    used = set()
    for service in SERVICES.values():
        for entry in service.get("secrets", []):
            used.add(entry if isinstance(entry, str) else entry["source"])
        for variable, value in (service.get("environment") or {}).items():
            assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), "a password in a URL"
            if re.search(r"PASSWORD|SECRET|TOKEN", variable):
                assert variable.endswith("_FILE")
    assert used == set(COMPOSE["secrets"])
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    for secret in COMPOSE["secrets"].values():
        assert f"/{secret['file']}" in ignored, "a secret must not slip into version control"


def test_a_crashed_charge_finds_its_host_again() -> None:
    assert SERVICES["app"]["hostname"]


def test_the_examples_are_complete() -> None:
    login = tomllib.loads((ROOT / "deploy/secrets.example.toml").read_text(encoding="utf-8"))
    wanted = {"redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url"}
    assert set(login["auth"]) == wanted
    assert login["auth"]["redirect_uri"] == f"https://{HOST}/oauth2callback"
    settings = (ROOT / "deploy/settings.example.env").read_text(encoding="utf-8")
    product = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("core", "pages")
        for path in (ROOT / folder).rglob("*.py")
    )
    for name in re.findall(r"^(JUSTITIA_\w+)=", settings, re.MULTILINE):
        assert f'"{name}"' in product, f"{name} is read by nobody"


def test_one_upload_limit_from_the_proxy_to_the_page() -> None:
    settings = (ROOT / "deploy/settings.example.env").read_text(encoding="utf-8")
    inside = int(re.search(r"MAX_UPLOAD_SIZE=(\d+)", settings)[1])
    outside = int(re.search(r"client_max_body_size (\d+)m", NGINX.read_text())[1])
    assert outside == inside + 1, "one mebibyte for the frame around the file"


# -- the proxy, for real ----------------------------------------------------------------------

has_nginx = pytest.mark.skipif(
    shutil.which("nginx") is None or shutil.which("openssl") is None,
    reason="no nginx; install one (apt-get install nginx-light)",
)


@contextmanager
def proxied(folder: Path, server: Running) -> Iterator[tuple[str, Path]]:
    """The shipped configuration in front of a server; yields its address and its folder."""
    tls = folder / "tls"
    tls.mkdir(parents=True)
    subject = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}")
    files = ("-keyout", tls / "privkey.pem", "-out", tls / "fullchain.pem")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            *subject,
            *files,
        ],
        check=True,
        capture_output=True,
    )
    outside = free_port()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        plain = probe.getsockname()[1]
    # Only what a container would map: ports, paths, the name of the other container.
    text = NGINX.read_text(encoding="utf-8")
    for old, new in (
        ("server app:8501", f"server {server.address.removeprefix('http://')}"),
        ("listen 8443", f"listen 127.0.0.1:{outside}"),
        ("listen 8080", f"listen 127.0.0.1:{plain}"),
        ("/etc/nginx/tls/", f"{tls}/"),
        ("/tmp/nginx", f"{folder}/nginx"),
        ("/dev/stdout", f"{folder}/access.log"),
        ("/dev/stderr", f"{folder}/error.log"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "nginx.conf"
    file.write_text(text, encoding="utf-8")
    tested = subprocess.run(
        ["nginx", "-t", "-c", file], capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stderr
    process = subprocess.Popen(["nginx", "-c", file, "-g", "daemon off;"])
    try:
        _wait_for_port(outside)
        yield f"https://127.0.0.1:{outside}", folder
    finally:
        process.terminate()
        process.wait(20)


def _wait_for_port(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the proxy did not listen in time")


def trusting() -> ssl.SSLContext:
    """TLS towards a certificate that this test made."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def ask(url: str, host: str = HOST, **headers: str) -> tuple[int, Any]:
    """Status and headers of an answer of the proxy."""
    request = urllib.request.Request(url, headers={"Host": host, **headers})
    try:
        with urllib.request.urlopen(request, context=trusting(), timeout=20) as answer:
            return int(answer.status), answer.headers
    except urllib.error.HTTPError as error:
        return int(error.code), error.headers


@has_nginx
@pytest.mark.slow
def test_the_proxy_carries_a_whole_session_and_keeps_its_promises(tmp_path: Path) -> None:
    options = ("--server.maxUploadSize=200",)
    with serving(tmp_path, options=options) as server, proxied(tmp_path / "p", server) as (url, at):
        # The websocket: a person works through the proxy, over TLS.
        port = int(url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as raw,
            Client(f"https://{HOST}:{port}", sock=raw, ssl=trusting()) as client,
        ):
            declare(client)
            project = client.query
        # Headers on the page, the cookie for TLS only.
        code, headers = ask(f"{url}/")
        assert code == 200
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "max-age=31536000" in headers["Strict-Transport-Security"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "nginx/" not in headers["Server"]
        _, health = ask(f"{url}/_stcore/health")
        assert "secure" in health["Set-Cookie"].lower()
        # What nobody outside needs is not there; nor is another name's server.
        for path in ("/_stcore/metrics", "/_stcore/agent/interact"):
            assert ask(f"{url}{path}")[0] == 404
        with pytest.raises((ConnectionError, urllib.error.URLError, OSError)):
            ask(f"{url}/", host="elsewhere.example.org")
        # A body over the limit is refused by its announced length, before any byte is sent.
        assert refused_by_length(url, 202 * MEBIBYTE) == 413
        # The log names no project.
        time.sleep(0.2)
        log = (at / "access.log").read_text(encoding="utf-8")
        assert "/_stcore/stream" in log
        assert project not in log
        assert "project=" not in log


def refused_by_length(url: str, length: int) -> int:
    """Status for an upload that only announces how large it would be."""
    port = int(url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as raw,
        trusting().wrap_socket(raw, server_hostname=HOST) as secure,
    ):
        secure.sendall(
            f"PUT /_stcore/upload_file/a/b HTTP/1.1\r\nHost: {HOST}\r\n"
            f"Content-Length: {length}\r\n\r\n".encode()
        )
        return int(secure.recv(100).split()[1])


@has_nginx
@pytest.mark.slow
def test_the_content_policy_stops_nothing_that_the_pages_do(tmp_path: Path) -> None:
    if house.chromium() is None:
        pytest.skip("no Chromium binary; install one (apt-get install chromium fonts-dejavu)")
    with serving(tmp_path) as server, proxied(tmp_path / "p", server) as (url, _):
        port = url.rpartition(":")[2]
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(
                executable_path=house.chromium(),
                args=[
                    *(flag for flag in house.FLAGS if "host-resolver" not in flag),
                    f"--host-resolver-rules=MAP {HOST} 127.0.0.1, MAP * ~NOTFOUND",
                ],
            )
            refusals = walk(opened, f"https://{HOST}:{port}")
            opened.close()
    assert len(refusals) >= 1
    assert all("elsewhere.example.org" in refusal for refusal in refusals)


def walk(opened: Browser, address: str) -> list[str]:
    """Every page of the demo, then a forbidden request; what the browser refused by its policy."""
    visitor = house.visitor(opened, address, ignore_https_errors=True)
    refusals: list[str] = []
    visitor.context.on(
        "console",
        lambda message: refusals.append(message.text) if "policy" in message.text.lower() else None,
    )
    page = visitor.open()
    house.journey(page, "synthetic")
    for name in ("Start", "Data", "Roles", "Budget", "Tree", "Posterior", "Release", "Ledger"):
        house.go(page, name)
    assert visitor.problems == []
    assert refusals == []
    # The policy is in force: a page that talks to somebody else is stopped, and this test sees it.
    page.evaluate("fetch('https://elsewhere.example.org/').catch(() => 0)")
    page.wait_for_timeout(500)
    visitor.context.close()
    return refusals
