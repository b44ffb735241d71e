"""The fingerprint of version 0.1, so that tables attached then keep their ids.

It sorts a digest of every row, which cannot be done batch by batch; tables attached since are
recognised by :func:`core.private.fingerprint.fingerprint`.  A table's id decides whether a plan
that is run again replays its releases or spends anew.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import numpy as np

from core.private.fingerprint import (
    CHUNK_ROWS,
    SEPARATOR,
    canonical,
    different,
    encoded,
    fingerprint,
)

if TYPE_CHECKING:
    import pandas as pd

    from core.private.ledger import Ledger


def recognised(ledger: Ledger, frame: pd.DataFrame, key: bytes, population: str, owner: str) -> str:
    """A table's fingerprint; one that the ledger knows from version 0.1 is entered under it.

    Parameters
    ----------
    ledger
        Where the table may have been attached before.
    frame
        The rows; confidential.
    key
        The ledger's secret.
    population, owner
        To which the table is being attached.
    """
    mark = fingerprint(frame, key)
    if population in ledger.seen_in(mark, owner) or not ledger.knows_tables():
        return mark
    earlier = earlier_fingerprint(frame, key)
    for name in ledger.seen_in(earlier, owner):
        ledger.renew_mark(name, earlier, mark, owner=owner)
    return mark


def earlier_fingerprint(frame: pd.DataFrame, key: bytes) -> str:
    """HMAC-SHA256 of a table's canonical rows, sorted by their digests, in hex."""
    names = [canonical(name) for name in frame.columns]
    order = sorted(range(len(names)), key=names.__getitem__)
    digests: list[bytes] = []
    for start in range(0, len(frame), CHUNK_ROWS):
        part = frame.iloc[start : start + CHUNK_ROWS]
        columns = []
        for place in order:
            positions, texts = different(part.iloc[:, place])
            columns.append(np.array(texts, dtype=object)[positions])
        rows = zip(*columns, strict=True)
        digests.extend(hmac.digest(key, encoded(SEPARATOR.join(row)), "sha256") for row in rows)
    whole = hmac.new(key, digestmod=hashlib.sha256)
    whole.update(encoded(SEPARATOR.join(names[place] for place in order)))
    whole.update(b"\x1e%d\x1e%d\x1e" % (len(names), len(frame)))
    whole.update(b"".join(sorted(digests)))
    return whole.hexdigest()
