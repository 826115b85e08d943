"""docs/comparison.md, from what was measured and from nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.libraries import LIBRARIES
from benchmarks.peers.tasks import TASKS, Task

PAGE = Path(__file__).resolve().parents[2] / "docs" / "comparison.md"

Row = dict[str, Any]
_PRIVATE = ("classify", "mean", "frequencies")
"""Kinds of tasks whose answers are random; the others are prices, and speed."""
_HIGHER = ("classify", "speed")
"""Kinds of tasks where more is better."""

HEAD = """# Comparison with other libraries

The same task, data, neighbours, epsilon and delta with tacit and with its peers. `python -m benchmarks peers`
measures and writes this page: no figure was written by hand, and what tacit loses stands beside what it wins.
Every library answers every task in a process of its own, with one thread. What is run are the short files
`with_*.py` in `benchmarks/peers`, each as a user of that library writes: documented defaults, and where a
library has none, settings for which the file gives the reason.
"""

RULES = """
How to read the tables:

- **Neighbours** are what two data sets that must look alike differ in. Under add-remove the same epsilon
  promises less than under replace-one, and costs half the noise: rows are compared with rows of the same
  neighbours only.
- **Accuracy** is on records that nobody trained on, the mean over seeds, with its standard error. Seeds
  change the noise, and the halves where the data have none of their own. tacit's settings are its
  defaults; [which scores were seen](theory/defaults.md) when their constants were chosen is said there.
  Opacus has none: its settings were chosen on held-out training records, and that was not charged to it.
- **Wins and losses** take a peer with several settings at the one that does best.
- **Speed** is of a whole call: tacit finds its noise in it, and its price; Opacus is told its noise.
- **States** is what the library itself says was spent at epsilon 1 (prices: it is the answer).
- **Seconds** are of the first fit after one of 200 records, processor time and wall time in parentheses;
  the machine was shared, so trust the first. They include finding the noise. **MB** is the most that the
  process held, its imports included.
- **Lines** are those of the code that ran, imports included, without blank lines and comments.
"""

HOW = """
## Measure again

```text
python -m venv peers && peers/bin/pip install '.[peers]'
peers/bin/python -m benchmarks peers              # half an hour; writes this page
peers/bin/python -m benchmarks peers --quick      # small data, one seed, under 3 minutes; prints only
peers/bin/python -m benchmarks peers --only classify/mnist --library opacus
```

The environment is one of its own, because diffprivlib needs an older scikit-learn than the lock of this
project has, and pfl an older dp-accounting: it is left out there. A library that is not installed is
reported as such. Data sets that are not embedded are looked for in `TACIT_DATA_HOME`.
"""


def render(record: dict[str, Any]) -> str:
    """Return the page."""
    rows: list[Row] = record["rows"]
    parts = [HEAD, _summary(rows), RULES]
    for task in TASKS:
        own = [row for row in rows if row["task"] == task.name]
        if own:
            parts.append(_section(task, own))
    parts += [_libraries(record), _rests(rows), HOW, _facts(record)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; no cell breaks a row."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _name(row: Row) -> str:
    return f"{row['library']} ({row['note']})" if row["note"] else str(row["library"])


def _answers(row: Row) -> list[Row]:
    """Return what a row says to each question; one refusal stands for all."""
    answers: list[Row] = row.get("answers", [])
    return answers


def _section(task: Task, rows: list[Row]) -> str:
    """Return the table of one task."""
    asked = [a["question"] for row in rows for a in _answers(row)]
    questions = [one for number, one in enumerate(asked) if one not in asked[:number]]
    values = [f"{_measure(task)}, {_label(one)}" for one in questions] or [_measure(task)]
    stated = ["states"] if task.kind in _PRIVATE else []
    head = ["library", "neighbours", *values, *stated, "seconds", "MB", "lines"]
    body = []
    for row in rows:
        found = {str(a["question"]): a for a in _answers(row)}
        cells = [_value(task, found.get(str(one), row)) for one in questions or [{}]]
        own = [_stated(row)] if stated else []
        body.append([_name(row), row["relation"], *cells, *own, *_costs(row), str(row["lines"])])
    better = {
        "classify": "",
        "mean": " A smaller error is better.",
        "frequencies": " A smaller error is better; estimates are made consistent as each library does.",
        "speed": " Gradients of records in a second of processor time.",
    }
    note = better.get(task.kind, " A smaller price for the same release is better.")
    title = task.title[0].upper() + task.title[1:]
    return f"## {title}\n\nDelta {_delta(task)}.{note}\n\n{table(head, body)}"


def _costs(row: Row) -> tuple[str, str]:
    """Return the seconds of the slowest answer, and megabytes."""
    timed = [a for a in _answers(row) if "processor" in a]
    if not timed:
        return "", ""
    slow = max(timed, key=lambda a: a["processor"])
    return f"{_short(slow['processor'])} ({_short(slow['wall'])})", f"{row['peak_mb']:.0f}"


def _delta(task: Task) -> str:
    return f"{task.asked[0]['delta']:g}"


def _measure(task: Task) -> str:
    names = {
        "classify": "accuracy",
        "mean": "error (RMS)",
        "speed": "gradients per second",
        "frequencies": "error (l2)",
    }
    return names.get(task.kind, "epsilon")


def _label(question: Row) -> str:
    """Return what tells a question from the others of a task."""
    shown = {name: value for name, value in question.items() if name != "delta"}
    return ", ".join(f"{name.replace('_', ' ')} {value:,g}" for name, value in shown.items())


def _value(task: Task, answer: Row) -> str:
    """Return a value with its standard error, or why there is none."""
    if "failed" in answer:
        return f"none: {answer['failed']}"
    if "value" not in answer:
        return "not asked"
    if task.kind == "classify":
        spread = "" if answer["error"] is None else f" ± {100 * answer['error']:.1f}"
        return f"{100 * answer['value']:.1f}{spread} %"
    return f"{answer['value']:,.0f}" if task.kind == "speed" else f"{answer['value']:.4g}"


def _stated(row: Row) -> str:
    """Return the epsilon and delta that a library says were spent, where it was asked for epsilon 1."""
    own = [a for a in _answers(row) if a["question"].get("epsilon") == 1.0 and "said" in a]
    return f"({own[0]['said'][0]:.4g}, {own[0]['said'][1]:g})" if own else ""


def _short(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:.0f}"


def _pairs(rows: list[Row]) -> Iterable[tuple[Task, Row, Row, Row, Row]]:
    """Yield tacit's and a peer's answer to one question under the same neighbours, with their rows.

    A peer with several settings is compared at the one that does best.
    """
    for task in TASKS:
        own = [row for row in rows if row["task"] == task.name]
        sign = -1.0 if task.kind in _HIGHER else 1.0
        for mine in (row for row in own if row["library"] == "tacit" and not row["note"]):
            near = [row for row in own if row["library"] != "tacit" and row["relation"] == mine["relation"]]
            for a, name in itertools.product(_answers(mine), dict.fromkeys(row["library"] for row in near)):
                said = [
                    (sign * b["value"], number, peer, b)
                    for number, peer in enumerate(near)
                    for b in _answers(peer)
                    if peer["library"] == name and b["question"] == a["question"] and "value" in b
                ]
                if said:
                    _, _, peer, b = min(said, key=lambda one: one[:2])
                    yield task, mine, peer, a, b


def _verdict(task: Task, a: Row, b: Row) -> str:
    """Return who is better, if it is not chance: three standard errors; of a price 1e-3, of speed a fifth."""
    if "value" not in a:
        return "loses"
    apart = a["value"] - b["value"]
    noise = (0.2 if task.kind == "speed" else 1e-3) * b["value"]
    if task.kind in _PRIVATE:
        if a["error"] is None:
            return "one seed"
        noise = 3 * math.hypot(a["error"], b["error"])
    if abs(apart) <= noise:
        return "even"
    return "wins" if (apart > 0) == (task.kind in _HIGHER) else "loses"


def _summary(rows: list[Row]) -> str:
    """Return wins and losses, question by question."""
    body, counts = [], dict.fromkeys(("wins", "loses", "even", "one seed"), 0)
    slower, heavier = 0, 0
    for task, mine, peer, a, b in _pairs(rows):
        verdict = _verdict(task, a, b)
        counts[verdict] += 1
        seconds = a["processor"] / max(b["processor"], 1e-9) if "value" in a else math.inf
        memory = mine["peak_mb"] / peer["peak_mb"]
        slower, heavier = slower + (seconds > 1), heavier + (memory > 1)
        body.append(
            (
                task.name,
                peer["relation"],
                _label(a["question"]),
                _value(task, a),
                f"{_name(peer)}: {_value(task, b)}",
                verdict,
                _times(seconds),
                _times(memory),
            )
        )
    head = ("task", "neighbours", "asked", "tacit", "peer", "tacit", "processor time", "memory")
    said = (
        f"Of {len(body)} questions that a peer answers under the same neighbours, tacit "
        f"**wins {counts['wins']}**, **loses {counts['loses']}** and is even in {counts['even']}. It takes "
        f"more processor time than the peer in {slower} of them, and more memory in {heavier}."
    )
    note = (
        "Wins and losses are differences of more than three standard errors of both sides (prices: more than "
        "one thousandth; speed: more than a fifth). Time and memory are tacit's, as multiples of the peer's; "
        "above 1 tacit loses."
    )
    return f"## Wins and losses\n\n{said}\n\n{note}\n\n{table(head, body)}"


def _times(ratio: float) -> str:
    return "" if math.isinf(ratio) else f"{ratio:.2g}x" if ratio < 10 else f"{ratio:,.0f}x"


def _libraries(record: dict[str, Any]) -> str:
    """Return the libraries, what importing them costs, and what they cannot be asked."""
    body = []
    for one in LIBRARIES:
        costs = [row for row in record["rows"] if row["library"] == one.name and "import_mb" in row]
        seconds = f"{min(row['import_seconds'] for row in costs):.1f}" if costs else ""
        memory = f"{min(row['import_mb'] for row in costs):.0f}" if costs else ""
        version = record["versions"].get(one.name, "not installed")
        body.append((one.name, version, seconds, memory, one.lacks))
    head = ("library", "version", "import, seconds", "import, MB", "what it is not asked, and why")
    return f"## Libraries\n\n{table(head, body)}"


def _rests(rows: list[Row]) -> str:
    """Return what the guarantees rest on, each once."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        kinds = found.setdefault((_name(row), row["rests"]), [])
        group = row["task"].split("/")[0]
        kind = group if group in ("classify", "frequencies") else row["task"]
        if kind not in kinds:
            kinds.append(kind)
    body = [(name, ", ".join(kinds), rests) for (name, rests), kinds in found.items()]
    head = ("library", "tasks", "noise, generator, accountant")
    return f"## What the guarantees rest on\n\n{table(head, body)}"


def _facts(record: dict[str, Any]) -> str:
    """Return where it was measured."""
    commits = ", ".join(sorted({row["commit"] for row in record["rows"]}))
    facts = {name: value for name, value in record["facts"].items() if name != "commit"}
    return f"Measured at {commits}, on {', '.join(f'{name} {value}' for name, value in facts.items())}."
