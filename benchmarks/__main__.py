"""One front door for every benchmark: ``python -m benchmarks NAME [options]``."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = {
    "privci": "the papers' experiments: fidelity, fairness, utility (demos without --data)",
    "privci-trees": "noise-free tree scores on the papers' tables (needs --data)",
    "engines": "error of the exact and entropic engines by budget (needs --data)",
    "image": "the image's own commands without a container engine, from an empty environment",
    "licences": "licences of everything the server runs on, into docs/licences.md",
    "load": "twenty people at once, and wave after wave of them, on the real server",
    "pace": "errors of the covariance methods by table and budget (all of it needs --data)",
    "pace-speed": "time of an adaptive covariance release, and of one completion",
    "privacy-audit": "attacks on every privacy claim, and on planted faults",
    "pumba": "coverage and speed of posteriors from noisy statistics (areal part needs --data)",
    "scale": "counting 10 to 100 million rows, against pandas and DuckDB",
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
