"""A shuffler that is killed (SIGKILL) at random moments, and goes on with its memory.

    python -m tests.federation.network.shuffler_kills --count 200

Silos send other bytes every time, so that a second batch of a round would differ. Whatever was handed over of
a round, by however many processes, must be the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import tempfile
import time
from pathlib import Path

from tacit.federation.network.faults import Fault, RoundError
from tacit.federation.network.shuffling import Shuffling
from tests.federation.network.shuffled import World, parties_of, plan_of

ROUNDS = 100_000


def handed_over(report: Path) -> dict[int, set[str]]:
    """Digests of what was handed over, by step; a line that was cut off says nothing."""
    found: dict[int, set[str]] = {}
    for line in report.read_text().split("\n")[:-1]:
        step, digest = line.split()
        found.setdefault(int(step), set()).add(digest)
    return found


def shuffle_on(made: World, path: Path, report: Path) -> None:
    """Run rounds until somebody kills this process, from the last that was handed over."""
    shuffling = Shuffling(path, roster=made.who.roster, key=made.who.shuffler)
    world = World(made.plan, made.who, made.silos, shuffling)
    step = max(handed_over(report), default=0)
    with report.open("ab", buffering=0) as file:
        while True:
            signed = world.open(step)
            for party in range(3):
                try:
                    world.send(party, signed, os.urandom(world.form(party).size))
                except RoundError as error:
                    if error.fault is not Fault.LATE:
                        raise
            try:
                batch = world.batch(signed).to_bytes()
                file.write(f"{step} {hashlib.sha256(batch).hexdigest()}\n".encode())
            except RoundError as error:  # it was fetched before the next round was opened, and is forgotten
                if error.fault is not Fault.LATE:
                    raise
            step += 1


class _SizeOnly:
    """A silo that sends noise: the shuffler cannot tell."""

    def __init__(self, size: int) -> None:
        self.size = size


def kill_often(count: int, folder: Path) -> dict[int, set[str]]:
    """Kill so many processes; return what they handed over."""
    who, report, path = parties_of(), folder / "report", folder / "memory"
    report.touch()
    sizes = who.roster.sizes
    made = World(plan_of(rounds=ROUNDS), who, [_SizeOnly(n) for n in sizes], None)  # type: ignore[misc, arg-type]
    rng = random.Random(count)  # noqa: S311 - when to kill
    for _ in range(count):
        before, child = report.stat().st_size, os.fork()
        if not child:
            try:
                shuffle_on(made, path, report)
            finally:
                os._exit(1)
        until = time.monotonic() + 20
        while report.stat().st_size == before and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise RuntimeError("a shuffler ended by itself.")
    return handed_over(report)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        found = kill_often(count, Path(folder))
    twice = [step for step, digests in found.items() if len(digests) > 1]
    print(f"{count} kills in {len(found)} rounds, {len(twice)} with two batches")  # noqa: T201 - what it is for
    if twice or sorted(found) != list(range(len(found))):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
