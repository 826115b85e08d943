"""Answer the questions of one task with one library, in a process of its own.

Nothing of tacit is imported here, so that the memory of a peer is its own. Reads one JSON line, writes one.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def resident(name: str) -> float:
    """Return megabytes: VmRSS now, or VmHWM at most; NaN where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def _call(function: Callable[..., Any], known: dict[str, Any]) -> tuple[Any, float, float]:
    """Call a function with what it takes of what is known; return its answer, processor and wall seconds."""
    taken = {name: known[name] for name in inspect.signature(function).parameters}
    wall, processor = time.perf_counter(), time.process_time()
    answer = function(**taken)
    return answer, time.process_time() - processor, time.perf_counter() - wall


def _classify(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    (predict, said), processor, wall = _call(function, known)
    value = float(np.mean(np.asarray(predict(known["X_test"])) == known["y_test"]))
    return {"value": value, "said": said, "processor": processor, "wall": wall}


def _mean(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    """Ask for a mean many times: one error says little."""
    draws, true = known["draws"], known["X"].mean(axis=0)
    found = [_call(function, known) for _ in range(draws)]
    errors = np.array([np.asarray(answer) - true for (answer, _said), _, _ in found])
    return {
        "value": float(np.sqrt(np.mean(errors**2))),
        "said": found[0][0][1],
        "processor": found[0][1],
        "wall": found[0][2],
    }


def _frequencies(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    """Ask how often each of k values is held by n clients: an l2 error."""
    k, places = known["k"], known["places"][: known["n"]]
    values = (k * places).astype(np.int64)
    (found, said), processor, wall = _call(function, known | {"values": values})
    value = float(np.linalg.norm(np.asarray(found) - np.bincount(values, minlength=k) / len(values)))
    return {"value": value, "said": said, "processor": processor, "wall": wall}


def _price(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    epsilon, processor, wall = _call(function, known)
    return {"value": float(epsilon), "said": None, "processor": processor, "wall": wall}


def _speed(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    """Count the gradients of records in a second of processor time, whatever else the call does in it."""
    said, processor, wall = _call(function, known)
    gradients = known["rate"] * known["rounds"] * len(known["X"])
    return {"value": gradients / processor, "said": said, "processor": processor, "wall": wall}


_KINDS = {"classify": _classify, "mean": _mean, "speed": _speed, "frequencies": _frequencies}


def _warm(known: dict[str, Any]) -> dict[str, Any]:
    """Return a smaller question with other numbers: late imports are then done, and no price is known."""
    less = {"draws": 1}
    less |= {name: known[name] * 1.25 for name in ("epsilon", "sigma", "local_epsilon") if name in known}
    less |= {name: known[name][:200] for name in ("X", "y", "places") if name in known}
    return known | less


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what one library says to all questions of a task."""
    start = time.process_time()
    module = importlib.import_module(f"benchmarks.peers.{asked['module']}")
    import_seconds, imported = time.process_time() - start, resident("VmRSS")
    function, work = getattr(module, asked["function"]), _KINDS.get(asked["kind"], _price)
    answers = []
    for seed, path in enumerate(asked["data"] or [None]):
        data = {} if path is None else dict(np.load(path))
        for question in asked["questions"]:
            known = data | asked["with"] | question | {"seed": seed}
            try:
                if seed == 0 and asked["warm"]:
                    work(function, _warm(known))
                answers.append({"question": question, **work(function, known)})
            except Exception as error:  # noqa: BLE001 - whatever a library refuses is printed
                what = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
                answers.append({"question": question, "failed": what[:160]})
    return {
        "answers": answers,
        "import_seconds": import_seconds,
        "import_mb": imported,
        "peak_mb": resident("VmHWM"),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(answer(json.loads(sys.stdin.read()))))
