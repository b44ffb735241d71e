"""JSON and TOML from strangers: strict, shallow, and read in a time that grows with their size."""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

from core.errors import ReadingError

#: Nothing that people or this program write is nested as deeply, or has such numbers.
MAXIMUM_DEPTH = 24
_DIGITS = 400
_KEY_PARTS = 12
#: Strings and comments of TOML, those that never end too, so that it takes linear time.
_TOML_TEXT = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+",
    re.DOTALL,
)
_LONG_KEY = re.compile(
    r"(?<![\w.-])(?:[\w-]++[ \t]*+\.[ \t]*+){%d}" % _KEY_PARTS  # noqa: UP031 - braces abound
)


def json_value(text: str, name: str, *, depth: int = MAXIMUM_DEPTH) -> Any:
    """The value of a JSON text.

    Raises
    ------
    ReadingError
        It is not JSON, names something twice, holds NaN, an infinite or a monstrous number, or is
        nested deeper than ``depth`` levels.
    """
    try:
        plain = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_number,
            parse_int=_whole,
            object_pairs_hook=_no_repetition,
        )
    except json.JSONDecodeError as error:
        raise ReadingError(
            f"{name}: line {error.lineno} is not valid JSON ({error.msg.lower()}); mend it"
        ) from None
    except RecursionError:
        raise _too_deep(name, depth) from None
    except ValueError as error:
        raise ReadingError(f"{name}: not valid JSON ({error}); mend it") from None
    _refuse_depth(plain, name, depth)
    return plain


def toml_table(text: str, name: str) -> dict[str, Any]:
    """The table of a TOML text.

    Raises
    ------
    ReadingError
        It is not TOML, or nested deeper than ``MAXIMUM_DEPTH`` levels.
    """
    if _LONG_KEY.search(_TOML_TEXT.sub("x", text)):
        raise _too_deep(name, _KEY_PARTS)
    try:
        plain = tomllib.loads(text)
    except RecursionError:
        raise _too_deep(name, MAXIMUM_DEPTH) from None
    except ValueError as error:
        words = str(error)
        # Python's own advice about endless numbers is for programmers.
        words = "a number has too many digits" if "digits" in words else words
        raise ReadingError(f"{name}: is not valid TOML: {words[:300]}") from None
    _refuse_depth(plain, name, MAXIMUM_DEPTH)
    return plain


def _too_deep(name: str, depth: int) -> ReadingError:
    return ReadingError(f"{name}: it is nested deeper than {depth} levels; nothing here needs that")


def _refuse_depth(plain: Any, name: str, depth: int) -> None:
    """Every later step may then follow the nesting by calling itself."""
    level = [plain]
    for _ in range(depth + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        level = [item for item in below if isinstance(item, dict | list)]
        if not level:
            return
    raise _too_deep(name, depth)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number here")


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError("a number has too many digits")
    return int(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) != len(pairs):
        raise ValueError("a setting is given twice")
    return plain
