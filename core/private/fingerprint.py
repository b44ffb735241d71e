"""Recognising a table that was attached before, without keeping anything about it in the clear.

The fingerprint is made of HMAC-SHA256 digests of the canonical values under a secret that stays
beside the ledger, see :class:`Fingerprint`.  It *reminds*: the same table, with its rows or
columns in another order, is recognised, read whole or in batches.  It stops nobody: one changed
cell makes another fingerprint.  It is never exported; the id that is exported is random
(:meth:`core.private.ledger.Ledger.table_id`).

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
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import LedgerError
from core.private.database import make_private_folder

if TYPE_CHECKING:
    from core.private.ledger import Ledger

_SECRET_BYTES = 32
CHUNK_ROWS = 1 << 16
_MISSING = "m"
SEPARATOR = "\x1f"
_LANES = 4
#: SplitMix64's finaliser; the last factor is one.
_SCRAMBLE = tuple(
    (np.uint64(shift), np.uint64(factor))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
)

Positions = NDArray[np.integer[Any]]
Lanes = NDArray[np.uint64]


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
    """A table's keyed fingerprint, in hex; order of rows and columns is ignored.

    Values count by what they are, not by how a column stores them: 1 and 1.0 are one number, None
    and NaN are both missing, a date is its midnight; the text "1" is not the number 1.

    Parameters
    ----------
    frame
        Any table; confidential.
    key
        The ledger's secret.
    """
    growing = Fingerprint(list(frame.columns), key)
    for start in range(0, len(frame), CHUNK_ROWS):
        part = frame.iloc[start : start + CHUNK_ROWS]
        growing.add([(part.iloc[:, place], None) for place in range(part.shape[1])], len(part))
    return growing.hexdigest()


def declared_mark(key: bytes, *words: str) -> str:
    """What stands in for a fingerprint where the rows never leave their engine.

    Parameters
    ----------
    key
        The ledger's secret.
    words
        What the steward declares: connection, table, version.  Other rows under the same words
        pass for the same table, so that a new version needs new words.
    """
    text = SEPARATOR.join(["declared", *map(_escaped, words)])
    return hmac.new(key, encoded(text), hashlib.sha256).hexdigest()


class Fingerprint:
    """A fingerprint that grows batch by batch and does not depend on the cut into batches.

    Every value of a column has a secret digest of 256 bits, an HMAC-SHA256.  A row is the sum of
    its digests in four lanes of 64 bits, each then scrambled (the finaliser of SplitMix64; Steele,
    Lea and Flood 2014, Fig. 13); a table is the sum of its rows (as in the multiset hashes of
    Clarke et al. 2003), so that no row need be kept.  Sums, names and the number of rows go into a
    last HMAC.

    Parameters
    ----------
    names
        Column names, in the order in which columns will be given.
    key
        The ledger's secret.
    """

    def __init__(self, names: Sequence[Any], key: bytes) -> None:
        self._key = key
        seen: Counter[str] = Counter()
        self._tags: list[str] = []
        for name in map(canonical, names):  # repeated names are told apart by their order
            self._tags.append(f"{name}{SEPARATOR}{seen[name]}")
            seen[name] += 1
        self._empty_row = _lanes([self._digest("row")])
        self._sums = np.zeros(_LANES, dtype=np.uint64)
        self._rows = 0
        self._known: dict[int, tuple[pd.Series[Any], Lanes]] = {}

    def add(self, columns: Sequence[tuple[pd.Series[Any], Positions | None]], rows: int) -> None:
        """Some more rows.

        Parameters
        ----------
        columns
            The cells of every column; or few cells, and for every row the position of its own.
            Cells that are given again as the same object cost nothing.
        rows
            How many rows these are.
        """
        state = np.repeat(self._empty_row, rows, axis=1)
        for place, (cells, positions) in enumerate(columns):
            digests = self._digests(place, cells)
            state += digests if positions is None else digests.take(positions, axis=1)
        turned = np.roll(state, 1, axis=0)
        state ^= (turned << np.uint64(31)) | (turned >> np.uint64(33))
        for shift, factor in _SCRAMBLE:
            state ^= state >> shift
            state *= factor
        self._sums += state.sum(axis=1, dtype=np.uint64)
        self._rows += rows

    def hexdigest(self) -> str:
        """The fingerprint of all rows so far."""
        whole = hmac.new(self._key, digestmod=hashlib.sha256)
        whole.update(encoded(SEPARATOR.join(sorted(self._tags))))
        whole.update(b"\x1e%d\x1e%d\x1e" % (len(self._tags), self._rows))
        whole.update(self._sums.astype("<u8").tobytes())
        return whole.hexdigest()

    def _digests(self, place: int, cells: pd.Series[Any]) -> Lanes:
        """One digest a cell; each different value is digested once."""
        known = self._known.get(place)
        if known is not None and known[0] is cells:
            return known[1]
        positions, texts = different(cells)
        tag = self._tags[place]
        digests = _lanes([self._digest(f"{tag}{SEPARATOR}{text}") for text in texts])
        found = digests.take(positions, axis=1)
        self._known[place] = (cells, found)
        return found

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, encoded(text), "sha256")


def _lanes(digests: Sequence[bytes]) -> Lanes:
    """Digests as columns of four unsigned numbers."""
    numbers = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return np.ascontiguousarray(numbers.reshape(-1, _LANES).T)


def encoded(text: str) -> bytes:
    """A text's bytes; lone surrogates of a file's text are kept."""
    return text.encode("utf-8", "surrogatepass")


def different(column: pd.Series[Any]) -> tuple[Positions, list[str]]:
    """Canonical texts of the different values, and each cell's position among them."""
    if column.dtype == object:
        return _different_objects(column)
    codes, values = pd.factorize(column)
    texts = [*map(canonical, values.tolist() if values.dtype.kind in "iufb" else values), _MISSING]
    return np.where(codes < 0, len(texts) - 1, codes), texts


def _different_objects(values: Iterable[Any]) -> tuple[Positions, list[str]]:
    known: dict[tuple[type, Any], int] = {}  # by type too: True == 1 == 1.0
    texts: list[str] = []
    positions = []
    for value in values:
        try:
            place = known.setdefault((value.__class__, value), len(texts))
        except TypeError:  # lists and the like cannot be looked up
            place = len(texts)
        if place == len(texts):
            texts.append(canonical(value))
        positions.append(place)
    return np.array(positions, dtype=np.intp), texts


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


def canonical(value: Any) -> str:
    """One value as a tagged text without separators."""
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value)
    if value is None or value is pd.NA:
        return _MISSING
    return f"o{_escaped(f'{type(value).__name__} {value!r}')}"


def _escaped(text: str) -> str:
    if "\\" in text or SEPARATOR in text:
        return text.replace("\\", "\\\\").replace(SEPARATOR, "\\u")
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
    return f"l{_escaped(str([canonical(item) for item in value]))}"


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
