"""One front door for every benchmark: ``python -m benchmarks NAME [options]``."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = {
    "privci-trees": "noise-free tree scores on the papers' tables (needs --data)",
    "engines": "error of the exact and entropic engines by budget (needs --data)",
    "pace": "errors of the covariance methods by table and budget (all of it needs --data)",
    "pace-speed": "time of an adaptive covariance release, and of one completion",
    "pumba": "coverage and speed of posteriors from noisy statistics (areal part needs --data)",
    "screenshots": "every page, light, dark and narrow, into docs/screenshots",
    "speed": "time, memory and error against the MST recipe on mbi (needs --data)",
}


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] not in BENCHMARKS:
        print("usage: python -m benchmarks NAME [options]\n")
        for name, words in BENCHMARKS.items():
            print(f"  {name:14} {words}")
        return 0 if arguments[:1] in ([], ["--help"], ["-h"]) else 2
    module = importlib.import_module(f"benchmarks.{arguments[0].replace('-', '_')}")
    return int(module.main(arguments[1:]) or 0)


if __name__ == "__main__":
    raise SystemExit(main())
