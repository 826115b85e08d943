"""Run all benchmarks: `python -m benchmarks [NAME] [--smoke]`. The name `peers` compares libraries.

Every case prints one JSON line with its measurements, the machine and the commit; the table at the end is for
people.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from benchmarks.case import Case
from tacit.errors import DataError

ROOT = Path(__file__).resolve().parent.parent

MODULES = (
    "federation",
    "rounds",
    "algorithms",
    "crowd",
    "flower",
    "accounting",
    "shuffling",
    "shuffled_rounds",
    "sealed",
    "complete_masks",
    "recoverable",
    "summed_rounds",
    "deployed_rounds",
    "iteration",
    "shuffled_gradient",
    "binomial",
    "binomial_sums",
    "noise",
    "transforms",
    "projection",
    "means",
    "voting",
    "frequencies",
    "bandits",
    "fairness",
    "fairness_curves",
    "tables",
    "messages",
    "neural",
)


def cases() -> list[Case]:
    """All of them, imported here: a process that a case starts reads this file again, and needs none."""
    return [case for name in MODULES for case in import_module(f"benchmarks.{name}").CASES]


def main() -> None:
    facts = {
        "commit": _commit(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }
    if sys.argv[1:2] == ["peers"]:
        from benchmarks.peers import run

        run.main(sys.argv[2:], facts)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "name", nargs="?", default="", help="as --only; or peers, which has options of its own"
    )
    parser.add_argument("--smoke", action="store_true", help="smallest size: does it still run?")
    parser.add_argument("--only", default="", help="run only cases whose name contains this")
    options = parser.parse_args()
    results = []
    for case in cases():
        if (options.only or options.name) not in case.name:
            continue
        start = time.perf_counter()
        try:
            measured = case.run(options.smoke)
        except DataError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            print(f"{case.name} is left out: {error}", file=sys.stderr)  # data of elsewhere
            continue
        results.append((case, measured))
        seconds = round(time.perf_counter() - start, 2)
        print(
            json.dumps(
                {"case": case.name, **measured, "case_seconds": seconds, "smoke": options.smoke, **facts}
            )
        )
    print()
    for case, measured in results:
        print(f"{case.name:34}  {case.say(measured)}")
        print(f"{'':34}  aim: {case.aim}")


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


__all__ = ["Case", "main"]

if __name__ == "__main__":
    main()
