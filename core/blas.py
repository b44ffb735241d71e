"""One BLAS thread for small linear algebra.

A second thread makes matrices of a few hundred rows slower, and slower by orders of magnitude
when other processes keep the cores busy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (scipy's own BLAS must be loaded before threads are limited)
from threadpoolctl import ThreadpoolController


class _Limit:
    """How many callers want one thread; the first one in sets it, the last one out restores."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self.limiter: Any = None


_LIMIT = _Limit()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the block on one BLAS thread; blocks may nest and may overlap between threads.

    The number of BLAS threads belongs to the process, so overlapping blocks share one limit.

    >>> with one_blas_thread():
    ...     sum(range(3))
    3
    """
    with _LIMIT.lock:
        if _LIMIT.holders == 0:
            _LIMIT.limiter = _controller().limit(limits=1, user_api="blas")
        _LIMIT.holders += 1
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.holders -= 1
            if _LIMIT.holders == 0:
                _LIMIT.limiter.restore_original_limits()
                _LIMIT.limiter = None
