"""What the code computes, to the last bit, through its front doors: what a change of its inside must keep.

    python tools/fingerprints.py record FILE     run every case and keep what came out
    python tools/fingerprints.py compare FILE    run them again; exit 1, and a line for every difference

A case is a command line or a fitted estimator, with a seed, on data that come with the code. Of runs without
a seed only the statement, the plan and the ledgers are kept. `--only WORD` takes the cases that hold it.
Last bits are those of one machine and one numpy: record the old code where the new code is compared.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import platform
import shutil
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from tacit.cli import main as command_line
from tacit.jobs import load_model
from tacit.learning import FederatedLinearRegression, FederatedLogisticRegression
from tacit.privacy import PrivacyBudget, Relation

Case = Callable[[], dict[str, Any]]
UNKEPT = {"created", "digests", "plan_digest", "seconds", "tacit", "time", "version"}
"""What differs between two runs, or with the names of classes: `digests` has that of a pickled model."""

TRAIN = "train --name run --out out"
ALGORITHMS = ("minibatch --rounds 5", "minibatch --rounds 6 --mu 0.02", "accelerated --rounds 5",
              "accelerated --rounds 6 --mu 0.02", "multistage --rounds 24 --mu 0.2",
              "local --rounds 3 --local-steps 3", "local --rounds 2", "sign-vote --rounds 5")  # fmt: skip
NAMES = tuple(dict.fromkeys(algorithm.split()[0] for algorithm in ALGORITHMS))
TRUSTS = ("none", "central", "local")
DATA = ("digits-odd-even", "digits", "many.csv --label y --silo-column site",
        "persons.csv --label y --silo-column site --person who",
        "numbers.csv --label y --silo-column site --task regression")  # fmt: skip
FACTORS = (
    tuple(f"--algorithm {a} --trust {t}" for a in ALGORITHMS for t in TRUSTS),
    tuple(f"--data {data}" for data in DATA),
    tuple(f"--batch {b}" for b in ("full", "6", "0.25", "1 --sampling disjoint", "0.04 --sampling disjoint")),
    ("--noise gaussian", "--noise discrete-gaussian"),
    ("", "--participants 4"),
    ("--neighbours replace-one", "--neighbours zero-out"),
    ("--seed 1 --epsilon 2", "--seed 2 --epsilon 2", "--seed 1 --epsilon 8 --l1 0.001 --l2 0.01",
     "--seed 2 --epsilon 0.5 --clip 0.7", "--seed 1 --epsilon 8 --weights silos"),
)  # fmt: skip
"""Flags of `tacit train`; algorithm and trust are one, so that both together meet every other choice."""
REFUSED = ("--algorithm local --trust central", "--weights silos --trust central",
           "--neighbours zero-out --batch 6", "--neighbours zero-out --batch 0.25")  # fmt: skip
UNKNOWN = ("--noise laplace", "--noise discrete-laplace", "--trust shuffle", "--trust aggregate",
           "--neighbours add-remove", "--batch 0.2 --sampling poisson")  # fmt: skip
"""What does not go together, and what no training takes: such a run shows nothing of its other flags."""
LOADERS = {"two classes": load_breast_cancer, "ten classes": load_digits, "numbers": load_diabetes}


def covering() -> Iterator[str]:
    """Yield few trainings in which every two values that go together meet."""
    pairs: dict[str, set[Any]] = {}
    for case in itertools.product(*FACTORS):
        flags = " ".join(filter(None, case))
        if not any(all(f"--{one}" in f"{flags} " for one in pair.split("--")[1:]) for pair in REFUSED):
            pairs[flags] = set(itertools.combinations(enumerate(case), 2))
    covered: set[Any] = set()
    for wanted in range(len(FACTORS) * (len(FACTORS) - 1) // 2, 0, -1):
        for flags, held in pairs.items():
            if len(held - covered) >= wanted:
                covered |= held
                yield f"{TRAIN} --delta 1e-5 {flags}"


def commands() -> Iterator[str]:
    """Yield all command lines."""
    yield from (TRAIN, f"{TRAIN} --seed 3 --trust all --algorithm local --rounds 2", *covering())
    yield from (f"{TRAIN} --seed 1 --delta 1e-5 {pair}" for pair in REFUSED)
    for name in NAMES:
        yield from (f"{TRAIN} --seed 1 --rounds 5 --algorithm {name} {flag}" for flag in UNKNOWN)
        numbers = f"{TRAIN} --data numbers.csv --label y --task regression --seed 1 --algorithm {name}"
        yield from (f"{numbers} --trust {trust}" for trust in ("none", "local"))
    rests = ("--seed 1", "--seed 2 --delta 1e-5", "--seed 1 --on-violation error")
    for trust, relation, rest in itertools.product(TRUSTS[1:], Relation, rests):
        mean = "mean numbers.csv --columns x0 x2 --lower -0.1 0 --upper 0.1 0.2 --epsilon 1"
        yield f"{mean} --trust {trust} --neighbours {relation.value} {rest}"
    yield "plan mean --n 50 --dim 16 --trust none --correlation 0.5 --simulate 3 --all"
    budgets = ("--epsilon 2", "--epsilon 2 --delta 1e-5")
    for trust, norm, budget in itertools.product((*TRUSTS[1:], "shuffle"), ("l1", "l2", "linf"), budgets):
        yield f"plan mean --n 200 --dim 8 {budget} --norm {norm} --trust {trust} --simulate 3"
    for trust, mechanism in itertools.product(TRUSTS[1:], ("additive", "training")):
        yield f"audit --mechanism {mechanism} --trust {trust} --runs 400 --dim 4"


def make_tables() -> None:
    """Write known data: 25 silos whose columns are described, persons in ten silos, a regression."""
    X, y = load_digits(return_X_y=True)
    n = np.arange(len(y))
    table = pd.DataFrame(X[:, 10:30].astype(int)).add_prefix("x").assign(y=y % 2)
    table.assign(site=n % 25).to_csv("many.csv", index=False)
    columns = [f'[columns.x{k}]\nkind = "numeric"\nlower = 0\nupper = 16\n' for k in range(20)]
    Path("many.columns.toml").write_text('[label]\nkind = "classes"\nclasses = [0, 1]\n' + "".join(columns))
    table.assign(site=n % 10, who=n % 10 + 10 * (n // 30)).to_csv("persons.csv", index=False)
    X, y = load_diabetes(return_X_y=True)
    pd.DataFrame(X).add_prefix("x").assign(y=y, site=np.arange(len(y)) % 7).to_csv("numbers.csv", index=False)


def digest(values: Any) -> list[str]:
    """Return what tells an array from any other, and its first values, for a person to read."""
    first = [float(value).hex() for value in values.ravel()[:3]]
    return [hashlib.sha256(values.tobytes()).hexdigest(), f"{values.dtype} {values.shape}", *first]


def run(line: str) -> dict[str, Any]:
    """Run one command line; return its exit code and what it printed, and a training's models and files."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as said:
        code = command_line([*line.split(), "--json"])
    if code == 130:
        raise KeyboardInterrupt
    printed = json.loads(out.getvalue()) if code == 0 else out.getvalue()
    found, made = {"exit": code, "printed": printed, "said": said.getvalue()}, Path("out", "run")
    found |= {path.stem: json.loads(path.read_text()) for path in made.glob("*.json")}
    if "metrics" in found:
        said = printed.get("results", ()) if isinstance(printed, dict) else ()
        for numbers in (*found["metrics"]["results"], *said):
            numbers.pop("scores", None)  # they follow from the model, which is kept
        found["metrics"] = {part: found["metrics"].get(part) for part in ("results", "sweep")}
    found |= {path.stem: tomllib.loads(path.read_text()) for path in made.glob("plan*.toml")}
    for path in made.glob("model*.json"):
        model = load_model(path)
        found[path.stem] = {model.trust: digest(model.fitted.w)}
    return found


def run_secret(trust: str) -> dict[str, Any]:
    """Train without a seed, then beyond the limit; return what is the same in all such runs."""
    made = run("ledger create out/ledgers --silos-from many.csv --silo-column site --epsilon 3 --delta 1e-4")
    rest = f"--data many.csv --label y --silo-column site --ledger out/ledgers --trust {trust} --epsilon 2"
    first = run(f"{TRAIN} {rest} --delta 1e-5 --rounds 3 --batch 9")
    first = {part: first.get(part) for part in ("exit", "said", "statement", "plan")}
    second = run(f"train --name again --out out {rest} --delta 1e-5 --rounds 4")["said"]
    return {"made": made, **first, "second": second, "ledgers": run("ledger show out/ledgers")["printed"]}


def estimators() -> Iterator[tuple[str, Case]]:
    """Yield fits by name: every loss with every algorithm, trust model and noise."""
    noises = ("gaussian", "discrete-gaussian", "laplace")
    for number, (kind, name, trust, noise) in enumerate(itertools.product(LOADERS, NAMES, TRUSTS, noises)):
        rounds = "auto" if number % 7 == 6 else 400 if name == "multistage" else 4
        given: dict[str, Any] = {"algorithm": name, "trust": trust, "noise": noise, "rounds": rounds}
        given |= {"random_state": number // 3 % 2, "clip": (None, 0.5)[number // 4 % 2]}
        given |= {"l1": number // 2 % 2 / 1000, "l2": number // 5 % 2 / 100}
        persons = number % 4 == 3
        yield f"fit {kind}, persons={persons}, {given}", partial(fit, kind, given, persons=persons)


def fit(kind: str, given: dict[str, Any], *, persons: bool) -> dict[str, Any]:
    """Fit an estimator to ten silos, and return all that it says of itself."""
    X, y = LOADERS[kind](return_X_y=True)
    n = np.arange(len(y))
    budget = None if given["trust"] == "none" else PrivacyBudget(2.0, 1e-5)
    given = given | {"budget": budget, "bounds": (X.min(axis=0), X.max(axis=0))}
    model: Any = FederatedLogisticRegression(**given, classes=np.unique(y))
    if kind == "numbers":
        model = FederatedLinearRegression(**given, target_bounds=(25, 346))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y, silos=n % 10, persons=n % 10 + 10 * (n // 30) if persons else None)
    trained, scores = model.trained_, model.predict if kind == "numbers" else model.decision_function
    return {
        "model": digest(model.model_.w), "scores": digest(scores(X)), "score": float(model.score(X, y)),
        "bits": trained.traffic.bits_up.tolist(),
        "trained": [trained.algorithm, trained.rounds, trained.noise_multiplier],
        "guarantees": [[str(one), one.epsilon, one.delta] for one in model.guarantees_],
        "said": [str(one.message) for one in said],
    }  # fmt: skip


def run_all(word: str) -> dict[str, Any]:
    """Run all cases whose name holds the word, in a folder of their own."""
    cases: list[tuple[str, Case]] = [(f"tacit {line}", partial(run, line)) for line in commands()]
    cases += [(f"without a seed, {trust}", partial(run_secret, trust)) for trust in TRUSTS[1:]]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), threadpool_limits(1):
        make_tables()
        for name, case in itertools.chain(cases, estimators()):
            if word not in name:
                continue
            try:
                text = json.dumps(case())
            except Exception as error:  # noqa: BLE001  # what a case fails with is a part of what it does
                text = json.dumps({"raised": f"{type(error).__name__}: {error}"})
            text = text.replace(str(Path.cwd()), "FOLDER")
            found[name] = json.loads(text, object_hook=lambda d: {k: d[k] for k in d if k not in UNKEPT})
            shutil.rmtree("out", ignore_errors=True)
    return found


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all that a value holds, with the way there."""
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield a line for every part of every case that differs: its first place, and how many more."""
    for name in old | new:
        was, now = (dict(leaves(runs.get(name, "no such case"))) for runs in (old, new))
        places = [place for place in was | now if repr(was.get(place)) != repr(now.get(place))]
        for part, held in itertools.groupby(places, lambda place: place.split(".")[0]):
            first, *more = held
            line = f"{name}: {first}: {was.get(first)!r} is now {now.get(first)!r}"
            yield f"{line}, and {len(more)} more in {part}" if more else line


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name holds this")
    given = parser.parse_args()
    old = json.loads(given.file.read_text()) if given.command == "compare" else {}
    kernels = {str(one.get("architecture")) for one in threadpool_info()}
    made_with = [platform.python_version(), np.__version__, *sorted(kernels)]
    new = run_all(given.only)
    refused = sum(one.get("exit", 0) != 0 or "raised" in one for one in new.values())
    print(f"{len(new)} cases, {refused} of them refused", file=sys.stderr)
    if given.command == "record":
        given.file.write_text(json.dumps({"made with": made_with, "runs": new}, indent=1) + "\n")
        return
    if old["made with"] != made_with:
        print(f"recorded with {old['made with']}, compared with {made_with}", file=sys.stderr)
    lines = [*differences({name: old["runs"][name] for name in old["runs"] if given.only in name}, new)]
    print("\n".join(lines) or "no difference")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
