"""Recognising a table that was attached before, without keeping anything about it in the clear.

The fingerprint is an HMAC-SHA256 of the canonical rows under a secret that stays beside the
ledger.  It *reminds*: the same table, with its rows or columns in another order, is recognised.
It stops nobody: one changed cell makes another fingerprint.  It is never exported; the id that is
exported is random (:meth:`core.private.ledger.Ledger.table_id`).

Backup: copy the secret (``<ledger file>.secret``, or ``justitia.secret`` in ``JUSTITIA_HOME`` for
a PostgreSQL ledger, the same copy on every server) together with the ledger, and protect it like
the tables: who has secret and ledger can test whether a guessed table was attached.  Rotation:
stop the programs, then :func:`renew_secret` (``python -m core ledger --new-secret``).  Losing or
rotating it loses the reminders, and each known table gets a new id once: its old releases are no
longer found by running their plans again, which would spend anew.  Caps, spends and releases stay.
A missing secret of a ledger that knows tables is therefore refused, not replaced.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.errors import LedgerError
from core.private.database import make_private_folder

if TYPE_CHECKING:
    from core.private.ledger import Ledger

_SECRET_BYTES = 32
_CHUNK_ROWS = 1 << 16
_MISSING = "m"
_SEPARATOR = "\x1f"


# -- the secret ----------------------------------------------------------------------------


def secret(ledger: Ledger) -> bytes:
    """The secret of a ledger, 32 bytes, made on first use (file mode 0600).

    Raises
    ------
    LedgerError
        The file cannot be read or written, is not a secret, or is missing although the ledger
        knows tables.
    """
    file = ledger.secret_file
    if file is None:
        return ledger.memory_secret
    try:
        if not file.exists():
            if ledger.knows_tables():
                raise _missing(file)
            _create(file)
        return _read(file)
    except OSError as error:
        raise LedgerError(
            f"the secret file {file} cannot be read or made; check its permissions and its folder"
        ) from error


def renew_secret(ledger: Ledger) -> None:
    """Start a new secret on purpose; tables seen before are not recognised any more."""
    file = ledger.secret_file
    if file is None:
        raise LedgerError("a ledger in memory has no secret file")
    try:
        file.unlink(missing_ok=True)
        _create(file)
    except OSError as error:
        raise LedgerError(
            f"the secret file {file} cannot be replaced; check its permissions and its folder"
        ) from error


def _missing(file: Path) -> LedgerError:
    return LedgerError(
        f"the secret file {file} is missing; restore its backup: without it no table is "
        "recognised, and running an old plan again would spend again (to go on like that on "
        "purpose: python -m core ledger --new-secret)"
    )


def _create(file: Path) -> None:
    """Write a complete file under another name, then link it: the first of several wins."""
    make_private_folder(file.parent)
    handle, name = tempfile.mkstemp(prefix=".secret-", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(_SECRET_BYTES) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(name, file)
        except FileExistsError:
            return  # another process was first; its secret is read
    finally:
        Path(name).unlink()


def _read(file: Path) -> bytes:
    if os.name == "posix" and file.stat().st_mode & 0o077:
        file.chmod(0o600)  # a restored backup may have lost its mode
    try:
        key = bytes.fromhex(file.read_text(encoding="ascii").strip())
    except ValueError as error:
        raise _damaged(file) from error
    if len(key) != _SECRET_BYTES:
        raise _damaged(file)
    return key


def _damaged(file: Path) -> LedgerError:
    return LedgerError(
        f"the secret file {file} is damaged; restore its backup: without it no table is "
        "recognised, and running an old plan again would spend again (to go on like that on "
        "purpose: python -m core ledger --new-secret)"
    )


# -- the fingerprint -----------------------------------------------------------------------


def fingerprint(frame: pd.DataFrame, key: bytes) -> str:
    """HMAC-SHA256 of a table's canonical rows, in hex; order of rows and columns is ignored.

    Values count by what they are, not by how a column stores them: 1 and 1.0 are one number, None
    and NaN are both missing, a date is its midnight; the text "1" is not the number 1.

    Parameters
    ----------
    frame
        Any table; confidential.
    key
        The ledger's secret.
    """
    names = [_canonical(name) for name in frame.columns]
    order = sorted(range(len(names)), key=names.__getitem__)
    digests: list[bytes] = []
    for start in range(0, len(frame), _CHUNK_ROWS):
        part = frame.iloc[start : start + _CHUNK_ROWS]
        columns = [_texts(part.iloc[:, position]) for position in order]
        rows = zip(*columns, strict=True)
        digests.extend(hmac.digest(key, _encoded(_SEPARATOR.join(row)), "sha256") for row in rows)
    whole = hmac.new(key, digestmod=hashlib.sha256)
    whole.update(_encoded(_SEPARATOR.join(names[position] for position in order)))
    whole.update(b"\x1e%d\x1e%d\x1e" % (len(names), len(frame)))
    whole.update(b"".join(sorted(digests)))
    return whole.hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _texts(column: pd.Series[Any]) -> list[str]:
    """Canonical text of every cell; each distinct value is written once where that is cheap."""
    kind = column.dtype
    if isinstance(kind, np.dtype) and kind.kind in "iu":
        return [f"n{value}" for value in column.tolist()]
    if isinstance(kind, np.dtype) and kind.kind == "f":
        return [_number(value) for value in column.tolist()]
    if isinstance(kind, pd.StringDtype | pd.CategoricalDtype | pd.DatetimeTZDtype) or (
        isinstance(kind, np.dtype) and kind.kind in "bMm"
    ):
        codes, values = pd.factorize(column)
        known = np.array([*map(_canonical, values), _MISSING], dtype=object)
        return list(known[codes])  # code -1 is missing
    return _object_texts(column.astype(object))


def _object_texts(values: Iterable[Any]) -> list[str]:
    known: dict[tuple[type, Any], str] = {}  # by type too: True == 1 == 1.0
    texts = []
    for value in values:
        try:
            text = known.get((value.__class__, value))
            if text is None:
                text = known[value.__class__, value] = _canonical(value)
        except TypeError:  # lists and the like cannot be looked up
            text = _canonical(value)
        texts.append(text)
    return texts


def _number(value: float) -> str:
    if math.isnan(value):
        return _MISSING
    if value.is_integer() and abs(value) < 2**63:
        return f"n{int(value)}"
    text = repr(value)
    return _decimal(Decimal(text)) if "e" in text else f"n{text}"


def _decimal(value: Decimal) -> str:
    if value.is_nan():
        return _MISSING
    if value.is_infinite():
        return _number(float(value))
    short = value.normalize(Context(prec=max(len(value.as_tuple().digits), 1)))
    whole = short == short.to_integral_value() and abs(short) < 2**63
    if whole:
        return f"n{int(short)}"
    return f"n{short:f}" if abs(short.adjusted()) < 16 else f"n{short}"


def _canonical(value: Any) -> str:
    """One value as a tagged text without separators."""
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value)
    if value is None or value is pd.NA:
        return _MISSING
    return f"o{_escaped(f'{type(value).__name__} {value!r}')}"


def _escaped(text: str) -> str:
    if "\\" in text or _SEPARATOR in text:
        return text.replace("\\", "\\\\").replace(_SEPARATOR, "\\u")
    return text


def _moment(value: date) -> str:
    if pd.isna(value):
        return _MISSING
    if not isinstance(value, datetime):
        return f"t{value.isoformat()}T00:00:00"
    moment = pd.Timestamp(value)
    return f"t{(moment.tz_convert('UTC') if moment.tz is not None else moment).isoformat()}"


def _span(value: timedelta) -> str:
    return _MISSING if pd.isna(value) else f"d{pd.Timedelta(value).isoformat()}"


def _bytes(value: bytes | bytearray) -> str:
    return f"y{value.hex()}"


def _sequence(value: Iterable[Any]) -> str:
    return f"l{_escaped(str([_canonical(item) for item in value]))}"


#: The first kind that fits writes the value; truth values come before integers.
_WRITERS: tuple[tuple[tuple[type, ...], Callable[[Any], str]], ...] = (
    ((str,), lambda value: f"s{_escaped(value)}"),
    ((bool, np.bool_), lambda value: f"b{int(value)}"),
    ((int, np.integer), lambda value: f"n{int(value)}"),
    ((float, np.floating), lambda value: _number(float(value))),
    ((Decimal,), _decimal),
    ((type(pd.NaT),), lambda _value: _MISSING),
    ((np.datetime64,), lambda value: _moment(pd.Timestamp(value))),
    ((np.timedelta64,), lambda value: _span(pd.Timedelta(value))),
    ((date,), _moment),
    ((timedelta,), _span),
    ((bytes, bytearray), _bytes),
    ((dict,), lambda value: _sequence(sorted(map(_sequence, value.items())))),
    ((list, tuple, np.ndarray), _sequence),
)
