"""A login service on loopback: OpenID Connect with the code flow, for whoever a cookie names.

It has no passwords; everything else (discovery, redirects, codes, nonces, a signed token, keys) is
as the standard says, so that Streamlit's login in front of it is the real one.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "justitia", "a client secret of a test"
#: Cookie that says who logs in.
COOKIE = "idp_user"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        if path == "/.well-known/openid-configuration":
            self._json(self.server.metadata)
        elif path == "/jwks":
            self._json({"keys": [self.server.key.as_dict(private=False)]})
        elif path == "/authorize":
            found = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
            code = secrets.token_hex(8)
            self.server.codes[code] = (found.value if found else "nobody", asked.get("nonce", ""))
            back = urllib.parse.urlencode({"code": code, "state": asked["state"]})
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        asked = dict(urllib.parse.parse_qsl(self.rfile.read(length).decode()))
        subject, nonce = self.server.codes.pop(asked["code"])
        now = int(time.time())
        claims = {
            "iss": self.server.issuer,
            "sub": subject,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 600,
            "nonce": nonce,
            "name": subject.capitalize(),
            "email": f"{subject}@example.org",
            "email_verified": subject != "mallory",
        }
        token = jwt.encode({"alg": "RS256", "kid": self.server.key.kid}, claims, self.server.key)
        self._json(
            {
                "access_token": secrets.token_hex(8),
                "token_type": "Bearer",
                "expires_in": 600,
                "id_token": token,
            }
        )

    def _json(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Provider(ThreadingHTTPServer):
    """The service on a port of its own."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = RSAKey.generate_key(2048, {"kid": "test", "use": "sig", "alg": "RS256"})
        self.codes: dict[str, tuple[str, str]] = {}

    @property
    def issuer(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def metadata(self) -> dict[str, object]:
        """What discovery tells."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }


@contextmanager
def provider() -> Iterator[Provider]:
    """A running login service."""
    with Provider() as service:
        thread = threading.Thread(target=service.serve_forever, daemon=True)
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def write_secrets(folder: Path, service: Provider, address: str) -> Path:
    """Streamlit's secrets for a server at this address; returns the file."""
    file = folder / "secrets.toml"
    file.write_text(
        "[auth]\n"
        f'redirect_uri = "{address}/oauth2callback"\n'
        f'cookie_secret = "{secrets.token_hex(32)}"\n'
        f'client_id = "{CLIENT}"\n'
        f'client_secret = "{SECRET}"\n'
        f'server_metadata_url = "{service.issuer}/.well-known/openid-configuration"\n',
        encoding="utf-8",
    )
    return file
