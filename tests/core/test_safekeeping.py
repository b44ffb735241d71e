"""What a published bundle remembers of its ledger."""

from __future__ import annotations

import pytest

from core.bundle import bundle_bytes
from core.errors import BundleError
from core.safekeeping import published_head


def test_a_bundle_of_monotonous_rows_still_tells_its_chain(tmp_path):
    file = tmp_path / "bundle.zip"
    rows = b"a\n" + b"1\n" * 11_000_000
    parts = {"ledger.json": b'{"chain_head": "abc"}', "synthetic.csv": rows}
    file.write_bytes(bundle_bytes(parts, simulated=False))
    assert published_head(file) == "abc"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"hello", "not a bundle"),
        (bundle_bytes({"ledger.json": b"{"}, simulated=False), "cannot be read"),
        (bundle_bytes({"ledger.json": b"{}"}, simulated=False), "remembers nothing"),
        (bundle_bytes({"plan.toml": b""}, simulated=True), "remembers nothing"),
    ],
)
def test_what_cannot_tell_its_chain_is_refused(tmp_path, content, words):
    file = tmp_path / "bundle.zip"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BundleError, match=words):
        published_head(file)
