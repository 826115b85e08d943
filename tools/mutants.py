"""Break the code on purpose, one place at a time, and list the breakages that no test notices.

    python tools/mutants.py record MAP.json                    what each test enters; runs the suite
    python tools/mutants.py run MAP.json --count 300 --seed 1   one mutant of every file at least

A mutant is one changed comparison, operator, number or condition, one dropped check or keyword, drawn at
random from all places of `src/`. It runs in a copy of the tree, against the tests that enter the changed
function, those of the mirrored file and the quickest first, until one of them fails.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tacit"
SECONDS = 60.0
"""How long the recorded tests of one mutant take at the most, by their durations when nothing was broken."""

_PAIRS = (
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.LShift, ast.RShift),
    (ast.And, ast.Or),
)  # fmt: skip
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **dict(_PAIRS), **{b: a for a, b in _PAIRS}, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}  # fmt: skip
_NAMES = (("min", "max"), ("any", "all"), ("floor", "ceil"), ("minimum", "maximum"), ("argmin", "argmax"))
NAMES = dict(_NAMES) | {b: a for a, b in _NAMES} | {"expm1": "exp", "log1p": "log", "sqrt": "abs"}


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes of `path` from `start` to `end` become `new`; `function` is its first line."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str
    function: int

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.path}:{self.line}  {old[:70]}  ->  {new[:70]}"


class Places(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_bytes()
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.functions: list[int] = [0]
        self.found: list[Mutant] = []

    def add(self, node: ast.expr | ast.stmt, new: str) -> None:
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        old = self.text[start:end].decode()
        name = str(self.path.relative_to(ROOT))
        self.found.append(Mutant(name, node.lineno, start, end, old, new, self.functions[-1]))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(min([node.lineno, *(d.lineno for d in node.decorator_list)]))
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.functions.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.add(node, "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.add(node, "pass")
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self.add(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.add(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for k, op in enumerate(node.ops):
            ops = [*node.ops[:k], SWAPS[type(op)](), *node.ops[k + 1 :]]
            self.add(node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})")  # type: ignore[arg-type]
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in SWAPS and not isinstance(node.left, ast.JoinedStr) and not _text(node.left):
            self.add(
                node,
                f"({ast.unparse(ast.BinOp(node.left, SWAPS[type(node.op)](), node.right))})",
            )  # type: ignore[arg-type]
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in SWAPS:
            self.add(node, ast.unparse(ast.AugAssign(node.target, SWAPS[type(node.op)](), node.value)))  # type: ignore[arg-type]
        self.visit(node.value)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.add(node, f"({ast.unparse(ast.BoolOp(SWAPS[type(node.op)](), node.values))})")  # type: ignore[arg-type]
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.add(node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add(node, str(not value))
        elif isinstance(value, int):
            self.add(node, f"({value + 1})")
        elif isinstance(value, float):
            self.add(node, repr(2 * value if value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        for k, keyword in enumerate(node.keywords):
            if keyword.arg is not None and len(node.keywords) > 1:
                keywords = [*node.keywords[:k], *node.keywords[k + 1 :]]
                self.add(node, ast.unparse(ast.Call(node.func, node.args, keywords)))
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if name in NAMES:
            self.add(node.func, ast.unparse(node.func)[: -len(name)] + NAMES[name])
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text is not mutated."""


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    places = Places(path)
    places.visit(ast.parse(places.text))
    return [m for m in dict.fromkeys(places.found) if m.new != m.old]


def parses(mutant: Mutant) -> bool:
    try:
        ast.parse(mutated((ROOT / mutant.path).read_bytes(), mutant))
    except SyntaxError:
        return False
    return True


def mutated(text: bytes, mutant: Mutant) -> bytes:
    return text[: mutant.start] + mutant.new.encode() + text[mutant.end :]


def drawn(count: int, seed: int, only: str) -> list[Mutant]:
    """Draw one mutant of every file, then more from all places of all files together."""
    rng = random.Random(seed)  # noqa: S311 - draws places in source text
    chosen: list[Mutant] = []
    rest: list[Mutant] = []
    for path in sorted(SOURCE.rglob("*.py")):
        found = mutants(path) if only in str(path) else []
        rng.shuffle(found)
        first = next((m for m in found if parses(m)), None)
        chosen += [] if first is None else [first]
        rest += found
    rng.shuffle(rest)
    while rest and len(chosen) < count:
        mutant = rest.pop()
        chosen += [mutant] if mutant not in chosen and parses(mutant) else []
    return sorted(chosen, key=str)


# Which test enters which function


def record(target: Path) -> None:
    """Run the whole suite once and write {test: [seconds, {file: [first lines of functions]}]}."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-p",
            "tools.mutants",
            "--benchmark-disable",
        ]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "MUTANT_RECORD": folder}, check=False)
        found: dict[str, object] = {}
        for part in Path(folder).glob("*.json"):
            found |= json.loads(part.read_text())
    target.write_text(json.dumps(found))
    print(f"{len(found)} tests recorded")


class _Recorder:
    """A pytest plugin: notes the functions of `src/` that each test enters."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.prefix = folder, str(SOURCE)
        self.seen: set[CodeType] = set()
        self.found: dict[str, tuple[float, dict[str, list[int]]]] = {}

    def _enter(self, frame: FrameType, _event: str, _arg: object) -> None:
        self.seen.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.seen, start = set(), time.perf_counter()
        sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            places: dict[str, list[int]] = defaultdict(list)
            for code in self.seen:
                if code.co_filename.startswith(self.prefix):
                    places[str(Path(code.co_filename).relative_to(ROOT))].append(code.co_firstlineno)
            self.found[item.nodeid] = (time.perf_counter() - start, places)

    def pytest_sessionfinish(self) -> None:
        (self.folder / f"{os.getpid()}.json").write_text(json.dumps(self.found))


def pytest_configure(config: pytest.Config) -> None:
    """Install the recorder where `record` asks for it."""
    if folder := os.environ.get("MUTANT_RECORD"):
        config.pluginmanager.register(_Recorder(Path(folder)))


# Trying one


def tests_of(mutant: Mutant, recorded: dict[str, tuple[float, dict[str, list[int]]]]) -> list[str]:
    """Return tests that enter the changed function: the mirrored file's, then the quickest, up to SECONDS."""
    mirror = mutant.path.removeprefix("src/tacit/").removesuffix(".py").split("/")
    entering = []
    for test, (seconds, places) in recorded.items():
        lines = places.get(mutant.path, [])
        if mutant.function in lines or (mutant.function == 0 and lines):
            near = test.startswith(("tests/" + "/".join([*mirror[:-1], f"test_{mirror[-1]}"]), mutant.path))
            entering.append((not near, seconds, test))
    chosen, total = [], 0.0
    for _, seconds, test in sorted(entering):
        total += seconds
        if chosen and total > SECONDS:
            break
        chosen.append(test)
    return chosen[:400]


def survives(mutant: Mutant, tests: list[str], tree: Path) -> str | None:
    """Return why a mutant survives, None if it is killed."""
    if not tests:
        return "no test enters it"
    path = tree / mutant.path
    original = path.read_bytes()
    path.write_bytes(mutated(original, mutant))
    listed = tree / "mutant-tests.txt"
    listed.write_text("\n".join(tests))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"@{listed}",
    ]
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout=60 + 5 * SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        code = 1
    finally:
        path.write_bytes(original)
    return f"{len(tests)} tests pass" if code == 0 else None


def run(recorded: Path, *, count: int, seed: int, workers: int, only: str, out: Path | None) -> None:
    """Try the drawn mutants and print those that survive."""
    found = json.loads(recorded.read_text())
    chosen = drawn(count, seed, only)
    with tempfile.TemporaryDirectory() as folder:
        trees = [Path(folder) / str(k) for k in range(workers)]
        for tree in trees:
            shutil.copytree(
                ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "*.pyc", ".*_cache", "runs")
            )
        free = list(trees)

        def attempt(mutant: Mutant) -> tuple[Mutant, str | None]:
            tree = free.pop()
            try:
                return mutant, survives(mutant, tests_of(mutant, found), tree)
            finally:
                free.append(tree)

        survivors = []
        with ThreadPoolExecutor(workers) as pool:
            for k, (mutant, why) in enumerate(pool.map(attempt, chosen), 1):
                if why is not None:
                    survivors.append((mutant, why))
                    print(f"{mutant}  [{why}]", flush=True)
                if k % 25 == 0:
                    print(f"# {k} of {len(chosen)} tried, {len(survivors)} survive", flush=True)
    print(f"# seed {seed}: {len(chosen)} mutants, {len(survivors)} survive")
    if out is not None:
        out.write_text(json.dumps([{**asdict(m), "why": why} for m, why in survivors], indent=1))


def main() -> None:
    """Record, or run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("map", type=Path)
    trying = commands.add_parser("run")
    trying.add_argument("map", type=Path)
    trying.add_argument("--count", type=int, default=300)
    trying.add_argument("--seed", type=int, default=1)
    trying.add_argument("--workers", type=int, default=2)
    trying.add_argument("--only", default="", help="part of a path")
    trying.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        record(given.map.resolve())
    else:
        run(
            given.map,
            count=given.count,
            seed=given.seed,
            workers=given.workers,
            only=given.only,
            out=given.out,
        )


if __name__ == "__main__":
    main()
