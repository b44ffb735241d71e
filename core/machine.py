"""On what rows were drawn: the versions and the arithmetic that decide the last digit of a fit."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata

from core.version import VERSION

#: Packages whose arithmetic or formatting reaches the synthetic files.
PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "mbi", "jax")


def described() -> dict[str, str]:
    """Versions of program, Python and packages, operating system, processor and threads.

    The same machine gives the same description.  Rows that are drawn again where it is equal must
    be equal to the last byte; elsewhere sums may round otherwise.
    """
    import numpy

    dispatched = numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return {
        "justitia": VERSION,
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "system": platform.system(),
        "machine": platform.machine(),
        "vector instructions": " ".join(dispatched) or "none",
        # Sums over threads are added in an order that depends on how many there are.
        "threads": os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count()),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def differences(found: Mapping[str, str]) -> tuple[str, ...]:
    """Where another description differs from this machine, in words.

    >>> differences(described())
    ()
    """
    here = described()
    return tuple(
        f"{part} {found.get(part, 'unknown')} there, {here.get(part, 'unknown')} here"
        for part in dict.fromkeys((*here, *found))
        if found.get(part) != here.get(part)
    )
