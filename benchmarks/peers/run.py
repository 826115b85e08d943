"""Ask every library every question, each library and task in a process of its own, and write the page."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import page
from benchmarks.peers.libraries import LIBRARIES, Library, Way, lines_of
from benchmarks.peers.tasks import TASKS, Task, available

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).parent / "measured.json"
"""What was measured: the page is made of it and of nothing else."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_LONGEST = 1800
"""Seconds after which a library is given up."""

Row = dict[str, Any]


def main(arguments: Sequence[str], facts: dict[str, Any]) -> None:
    """Measure, print, and write the page; `facts` says on which machine and commit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small data, one seed; prints, and writes no page"
    )
    parser.add_argument("--only", default="", help="tasks whose name contains this; others stay as they were")
    parser.add_argument(
        "--library", default="", help="libraries whose name contains this; others stay as they were"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds of every mean")
    options = parser.parse_args(arguments)
    seeds = 1 if options.quick else options.seeds
    rows: dict[str, Row] = {}
    for row in measured(options.only, options.library, seeds, quick=options.quick):
        print(json.dumps(row), flush=True)
        rows[key(row)] = row | {"commit": facts["commit"]}
        if not options.quick:
            keep(rows, facts)
    if options.quick:
        print("\n" + page.render(record(rows, {}, facts)))


def keep(rows: dict[str, Row], facts: dict[str, Any]) -> None:
    """Write what was measured so far, beside what was measured before, and the page of both."""
    before = (
        json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {"rows": [], "versions": {}}
    )
    both = record({key(row): row for row in before["rows"]} | rows, before["versions"], facts)
    RECORD.write_text(json.dumps(both, indent=1) + "\n", encoding="utf-8")
    page.PAGE.write_text(page.render(both), encoding="utf-8")


def record(rows: dict[str, Row], versions: dict[str, str], facts: dict[str, Any]) -> dict[str, Any]:
    """Return all that the page is made of."""
    found = versions | {one.name: version for one in LIBRARIES if (version := one.version())}
    return {"facts": facts, "versions": found, "rows": in_order(list(rows.values()))}


def key(row: Row) -> str:
    """Return what a row is about: measured again, it replaces the one before."""
    return "|".join(str(row[name]) for name in ("task", "library", "relation", "note"))


def in_order(rows: list[Row]) -> list[Row]:
    """Return rows as tasks and libraries are listed; of those that are gone, none."""
    order = [
        "|".join((task.name, library.name, way.relation, way.note))
        for task in TASKS
        for library in LIBRARIES
        for way in library.ways
        if task.name.startswith(way.tasks)
    ]
    return sorted((row for row in rows if key(row) in order), key=lambda row: order.index(key(row)))


def measured(only: str, library: str, seeds: int, *, quick: bool) -> Iterator[Row]:
    """Yield a row for every task and way that is asked."""
    named = [task for task in TASKS if task.name == only] or [task for task in TASKS if only in task.name]
    asked = tuple(task for task in named if task.quick or only or not quick)
    with tempfile.TemporaryDirectory() as folder:
        for task, reason in available(asked):
            paths = [] if reason else task.write(Path(folder), seeds, quick)
            for one in LIBRARIES:
                for way in one.ways:
                    if library in one.name and task.name.startswith(way.tasks):
                        found = {"failed": reason} if reason else ask(task, one, way, paths, quick=quick)
                        yield {
                            "task": task.name,
                            "library": one.name,
                            "relation": way.relation,
                            "note": way.note,
                            "rests": way.rests,
                            "lines": lines_of(one.module, way.function or task.kind),
                            **found,
                        }
            for path in paths:
                Path(path).unlink()


def ask(task: Task, library: Library, way: Way, paths: list[str], *, quick: bool) -> Row:
    """Return what one library says to all questions of a task, or why it says nothing."""
    if library.version() is None:
        return {"failed": "not installed"}
    questions = [one for one in task.asked if not quick or one.get("epsilon", 1.0) == 1.0]
    asked = {
        "module": library.module,
        "function": way.function or task.kind,
        "kind": task.kind,
        "questions": questions,
        "warm": not quick,
        "data": paths,
        "with": task.given | dict(way.given),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.peers.child"],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=os.environ | _ONE_THREAD,
            timeout=_LONGEST,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {_LONGEST} s"}
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"failed": said[-1][:160]}
    found: Row = json.loads(done.stdout)
    found["answers"] = [summary(one, found["answers"]) for one in questions]
    return found


def summary(question: dict[str, Any], answers: list[Row]) -> Row:
    """Return the mean over seeds of one question, its standard error, and the seconds of the first of them.

    Later seeds find prices that the first has computed, which a user does not.
    """
    own = [one for one in answers if one["question"] == question]
    failed = [one["failed"] for one in own if "failed" in one]
    if failed:
        return {"question": question, "failed": failed[0]}
    values = [one["value"] for one in own]
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return {
        "question": question,
        "value": mean,
        "error": math.sqrt(spread / len(values)) if len(values) > 1 else None,
        "said": own[0]["said"],
        "processor": own[0]["processor"],
        "wall": own[0]["wall"],
    }
