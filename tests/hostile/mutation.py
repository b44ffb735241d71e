"""Seeded damage to files: to bytes, to plain values, and inside archives with right checksums.

Everything takes a ``random.Random``, so that an input is known by its seed.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

#: Pieces that parsers stumble over, whatever the format.
TOKENS: tuple[bytes, ...] = (
    b"\0",
    b"\r",
    b"\n",
    b"\r\n",
    b'"',
    b'""',
    b"'",
    b",",
    b";",
    b"\t",
    b"|",
    b"\\",
    b"[",
    b"]",
    b"{",
    b"}",
    b"=",
    b".",
    b"#",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    "\u202e\u200b\u0301\U0001f600".encode(),
    b"1e308",
    b"1e309",
    b"-1e999",
    b"nan",
    b"inf",
    b"-0.0",
    b"9" * 400,
    b"9" * 5000,
    b"0x1p9999",
    b"1/0",
    b"null",
    b"true",
    b"<script>",
    b"</script>",
    b"=1+1",
    b"@SUM(A1)",
    b"../",
    b"\\u0000",
    b"\\ud800",
    b"A" * 70_000,
    b"[" * 2000,
    b'{"a":' * 2000,
)
#: Numbers at the ends of types, as they stand in binary headers.
NUMBERS = (0, 1, 2, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
#: Values of the wrong kind, size or meaning, for a place in plain data.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    10**9,
    2**53,
    2**63,
    -(2**63) - 1,
    10**400,
    0.0,
    -0.0,
    1e-320,
    1e308,
    -1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "0",
    "1/0",
    "1/3",
    "-1",
    "1e999",
    "nan",
    "9" * 5000,
    "\0",
    "\n",
    "\ud800",
    "\u202edesrever",
    "a" * 300,
    "=1+1",
    "<b>x</b>",
    "../../x",
    [],
    [[]],
    {},
    [None],
    [1, 2, 3],
    ["a", "a"],
    {"a": 1},
    {"": {}},
)


def damaged(data: bytes, random: Random, tokens: Sequence[bytes] = TOKENS) -> bytes:
    """A few bytes changed, cut, doubled, moved, or replaced by something that parsers dislike."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        _damage(found, random, tokens)
    return bytes(found)


def _damage(found: bytearray, random: Random, tokens: Sequence[bytes]) -> None:
    place = random.randrange(len(found) + 1)
    length = min(random.choice((1, 2, 4, 8, 64, 1024)), len(found) - place)
    kind = random.randrange(8)
    if kind == 0 and length:
        found[place] ^= 1 << random.randrange(8)
    elif kind == 1 and length:
        found[place] = random.randrange(256)
    elif kind == 2:
        found[place:place] = random.choice(tokens)
    elif kind == 3:
        found[place : place + length] = random.choice(tokens)
    elif kind == 4:
        del found[place : place + length]
    elif kind == 5:
        found[place:place] = found[place : place + length] * random.choice((1, 3, 50))
    elif kind == 6:
        number = random.choice(NUMBERS)
        size = random.choice((1, 2, 4, 8))
        order = random.choice(("little", "big"))
        found[place : place + size] = (number % 256**size).to_bytes(size, order)  # type: ignore[arg-type]
    else:
        del found[place:]


def altered(plain: Any, random: Random) -> Any:
    """Plain data with one or a few places changed: another value, gone, doubled or nested."""
    found = copy.deepcopy(plain)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        found = _alter(found, random)
    return found


def _alter(plain: Any, random: Random) -> Any:
    places = list(_places(plain))
    if not places:
        return copy.deepcopy(random.choice(VALUES))
    holder, key = random.choice(places)
    kind = random.randrange(10)
    if kind < 6:
        holder[key] = copy.deepcopy(random.choice(VALUES))
    elif kind == 6:
        del holder[key]
    elif kind == 7:
        other, where = random.choice(places)
        if where in other if isinstance(other, dict) else where < len(other):
            holder[key] = copy.deepcopy(other[where])
    elif kind == 8 and isinstance(holder, dict):
        holder[random.choice(("", "a", "name", "\u202e", "x" * 300))] = holder.pop(key)
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[key] = [holder[key]]
    return plain


def _places(plain: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [plain]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, Mapping):
            keys: list[Any] = list(holder)
        elif isinstance(holder, list):
            keys = list(range(len(holder)))
        else:
            continue
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found


# -- archives ----------------------------------------------------------------------------------


def unzipped(data: bytes) -> dict[str, bytes]:
    """All members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive with right checksums, whatever its members hold."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, blob in members.items():
            archive.writestr(zipfile.ZipInfo(name), blob, compression)
    return buffer.getvalue()


def rezipped(data: bytes, random: Random, damage: Callable[[str, bytes, Random], bytes]) -> bytes:
    """An archive with one member damaged, dropped or renamed."""
    members = unzipped(data)
    name = random.choice(sorted(members))
    kind = random.randrange(12)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[random.choice(sorted(members))] = members[name]
    else:
        members[name] = damage(name, members[name], random)
    return zipped(members)


def damaged_header(blob: bytes, random: Random) -> bytes:
    """A release's NPZ with its JSON header altered and every array's own header right."""
    import numpy as np

    with np.load(io.BytesIO(blob), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if random.randrange(3):
        plain = altered(json.loads(arrays["header"].tobytes()), random)
        try:
            text = json.dumps(plain).encode()
        except ValueError:  # a number too long to write
            text = damaged(arrays["header"].tobytes(), random)
        arrays["header"] = np.frombuffer(text, np.uint8)
    else:
        name = random.choice(sorted(arrays))
        arrays[name] = _other_array(arrays[name], random)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _other_array(values: Any, random: Random) -> Any:
    import numpy as np

    changes: tuple[Callable[[], Any], ...] = (
        lambda: values[:0],
        lambda: values.ravel()[:-1],
        lambda: np.concatenate([values, values]) if values.ndim else np.stack([values] * 2),
        lambda: values.astype(np.float64) * np.nan,
        lambda: values.astype(np.float64) + np.inf,
        lambda: np.full_like(values, np.iinfo(np.int64).max if values.dtype == np.int64 else 255),
        lambda: values.astype("U8"),
        lambda: np.array(3),
        lambda: values.reshape(1, *values.shape),
        lambda: -values.astype(np.int64),
        lambda: values.astype(np.complex128),
    )
    try:
        return random.choice(changes)()
    except (ValueError, TypeError):
        return np.zeros((0, 3))
