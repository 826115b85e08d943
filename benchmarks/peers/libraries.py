"""The libraries that are compared: what each of them answers, and what its guarantees rest on."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.peers.tasks import ADD_REMOVE, REPLACE_ONE

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Way:
    """How a library answers a kind of question.

    Attributes:
        tasks: Names of tasks begin so.
        relation: What neighbours differ in.
        rests: What the guarantee rests on, besides the code.
        function: In the library's file; None is that of the task.
        note: What tells two ways of one library apart.
        given: Further arguments.
    """

    tasks: str
    relation: str
    rests: str
    function: str | None = None
    note: str = ""
    given: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Library:
    """One library.

    Attributes:
        name: Of the distribution.
        ways: How it answers.
        lacks: Why it answers no other tasks.
    """

    name: str
    ways: tuple[Way, ...]
    lacks: str

    @property
    def module(self) -> str:
        """The module of this folder that is written as its users write."""
        return f"with_{self.name.replace('-', '_')}"

    def version(self) -> str | None:
        """Return the version that is installed; None where it is not."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None


_EXACT = "exact discrete Gaussian noise from the operating system's generator; own accountant; n is public"
_LOOSE = "a simulation: continuous noise in floating point, from a seed; own accountant; n is public"
_LAPLACE = "exact discrete Laplace noise from the operating system's generator; n is public"
_DPSGD = (
    "continuous noise in floating point from PyTorch's generator (`secure_mode` is off by default); "
    "PRV accountant; n is public"
)
_CMS = (
    "objective perturbation (Chaudhuri et al. 2011), proven for an exact minimum and stopped at a tolerance "
    "of 1e-4; noise in floating point from the operating system's generator; delta = 0; n is public"
)
_ANSWERS = "exact answers from the operating system's generator; n is public"
_MERSENNE = "answers in floating point from {}, which can be predicted; n is public"
LIBRARIES: tuple[Library, ...] = (
    Library(
        "tacit",
        (
            Way("classify/", REPLACE_ONE, _EXACT, given=(("relation", REPLACE_ONE), ("seeded", False))),
            Way("classify/", ADD_REMOVE, _EXACT, given=(("relation", ADD_REMOVE), ("seeded", False))),
            Way(
                "classify/",
                ADD_REMOVE,
                _LOOSE,
                note="simulated",
                given=(("relation", ADD_REMOVE), ("seeded", True)),
            ),
            Way("speed/", ADD_REMOVE, _EXACT, given=(("relation", ADD_REMOVE), ("seeded", False))),
            Way(
                "speed/",
                ADD_REMOVE,
                _LOOSE,
                note="simulated",
                given=(("relation", ADD_REMOVE), ("seeded", True)),
            ),
            Way("mean/age", REPLACE_ONE, _LAPLACE),
            Way("mean/image", REPLACE_ONE, _EXACT),
            Way("frequencies/", REPLACE_ONE, _ANSWERS),
            Way("price/gaussian", ADD_REMOVE, "closed form, rounded up"),
            Way(
                "price/sampled", ADD_REMOVE, "connect-the-dots, rounded up", given=(("relation", ADD_REMOVE),)
            ),
            Way(
                "price/sampled",
                REPLACE_ONE,
                "connect-the-dots, rounded up",
                given=(("relation", REPLACE_ONE),),
            ),
            Way("price/shuffled", REPLACE_ONE, "connect-the-dots, rounded up; the shuffler is honest"),
        ),
        "answers all of them",
    ),
    Library(
        "opacus",
        (
            Way("classify/", ADD_REMOVE, _DPSGD),
            Way("speed/", ADD_REMOVE, _DPSGD, note="hooks", given=(("mode", "hooks"),)),
            Way("speed/", ADD_REMOVE, _DPSGD, note="ghost clipping", given=(("mode", "ghost"),)),
            Way("price/sampled", ADD_REMOVE, "PRV, upper end of its interval of width .01 (default)"),
        ),
        "no means, no replace-one, no shuffler",
    ),
    Library(
        "diffprivlib",
        (
            Way("classify/", REPLACE_ONE, _CMS, given=(("C", 1.0),)),
            Way("classify/", REPLACE_ONE, _CMS, note="C = 0.1", given=(("C", 0.1),)),
            Way("mean/age", REPLACE_ONE, "Laplace noise in floating point, truncated; n is public"),
            Way("mean/image", REPLACE_ONE, "Laplace noise for each pixel at epsilon / 784; delta = 0"),
        ),
        "no delta in these functions, no add-remove, no accountant of composed noise",
    ),
    Library(
        "opendp",
        (
            Way(
                "mean/age",
                REPLACE_ONE,
                "exact discrete Laplace noise; the sum's rounding is in its proof; n is public",
            ),
            Way(
                "mean/image",
                REPLACE_ONE,
                "exact discrete Gaussian noise, priced by zCDP; the mean's sensitivity is the user's claim",
                function="mean_of_rows",
            ),
        ),
        "no classifiers; it composes measurements, and prices no list of releases",
    ),
    Library(
        "dp-accounting",
        (
            Way("price/gaussian", ADD_REMOVE, "PLD accountant, connect-the-dots, grid 1e-4 (default)"),
            Way("price/sampled", ADD_REMOVE, "as above", given=(("relation", ADD_REMOVE),)),
            Way("price/sampled", REPLACE_ONE, "as above", given=(("relation", REPLACE_ONE),)),
        ),
        "prices only; no shuffler",
    ),
    Library(
        "pure-ldp",
        tuple(
            Way(f"frequencies/{name}", REPLACE_ONE, _MERSENNE.format("the generators of Python and NumPy"))
            for name in ("krr", "oue", "rappor", "hr", "short")
        ),
        "frequencies under local trust only; no subset selection",
    ),
    Library(
        "multi-freq-ldpy",
        tuple(
            Way(f"frequencies/{name}", REPLACE_ONE, _MERSENNE.format("NumPy's generator"))
            for name in ("krr", "oue", "rappor", "ss", "short")
        ),
        "frequencies under local trust only; no Hadamard response",
    ),
    Library(
        "pfl",
        (),
        "protects users of a simulated federation, add-remove over users; no task here has such users",
    ),
    Library(
        "flwr",
        (),
        "protects clients, not records: clips their updates, adds noise of a multiplier that one gives and "
        "states no epsilon, so nothing here can be asked at the same epsilon",
    ),
    Library(
        "fairlearn",
        (),
        "fair classifiers without privacy: beside ours in `python -m benchmarks fairness-curves`",
    ),
)


def lines_of(module: str, function: str) -> int:
    """Return how many lines a user writes: those of a function and of all that it needs of its file.

    Blank lines, comments and the line that a function starts with do not count; an import counts as one line.
    """
    source = (HERE / f"{module}.py").read_text(encoding="utf-8")
    text = source.splitlines()
    named: dict[str, ast.stmt] = {}
    needed: set[ast.stmt] = set()
    for one in ast.parse(source).body:
        named |= dict.fromkeys(_defines(one), one)
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            needed.add(one)
    todo = [named[function], *needed]
    while todo:
        one = todo.pop()
        needed.add(one)
        used = {node.id for node in ast.walk(one) if isinstance(node, ast.Name)} & set(named)
        todo += [named[name] for name in used if named[name] not in needed]
    return sum(_lines(one, text) for one in needed)


def _defines(one: ast.stmt) -> list[str]:
    """Return the names that a statement of a file gives."""
    match one:
        case ast.FunctionDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [name.asname or name.name.split(".")[0] for name in names]
        case ast.Assign(targets=targets):
            return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


def _lines(one: ast.stmt, text: list[str]) -> int:
    """Return how many lines of a statement count."""
    if isinstance(one, ast.Import | ast.ImportFrom):
        return 1
    first = one.body[0].lineno if isinstance(one, ast.FunctionDef) else one.lineno
    written = (line.strip() for line in text[first - 1 : one.end_lineno])
    return sum(bool(line) and not line.startswith("#") for line in written)
