"""What the paper says of public records in training, held against rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tacit.experiments.report import number

__all__ = ["digit_statements", "local_statements", "statements"]

Row = dict[str, object]

_OURS, _RAW = "semi-dp, public metric", "semi-ldp, raw"

_REPRINT = {(1.0, 0.03): 0.351, (1.0, 0.04): 0.293, (1.0, 0.1): 0.284,
            (4.0, 0.03): 0.269, (4.0, 0.04): 0.263, (4.0, 0.1): 0.262}  # fmt: skip
"""Errors of an earlier run of Algorithm 11 at this size, by epsilon and share."""


def _cells(rows: Sequence[Row]) -> dict[tuple[float, float], dict[str, Row]]:
    """Return the rows of every epsilon and share by method."""
    found: dict[tuple[float, float], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((number(row["epsilon"]), number(row["share"])), {})[str(row["method"])] = row
    return found


def _shown(value: object) -> float:
    """Return a number as tables print it: what is said must follow from what is shown."""
    return float(f"{number(value):.4g}")


def _error(row: Row) -> float:
    return _shown(row["error"])


def _best(found: dict[str, Row], *, left_out: str = "") -> str:
    """Return the method of a cell that errs least."""
    return min((name for name in found if name != left_out), key=lambda name: _error(found[name]))


def _least(
    rows: Sequence[Row], ours: str, *, without: float | None = None, left_out: str = ""
) -> tuple[int, int, list[str]]:
    """Return at how many cells a method errs least, of how many, and where it does not."""
    held, where = 0, []
    cells = {key: one for key, one in _cells(rows).items() if key[0] != without}
    for (epsilon, share), found in cells.items():
        best = _best(found, left_out=left_out)
        if _error(found[ours]) <= _error(found[best]):
            held += 1
        else:
            where.append(f"{share:g} at epsilon {epsilon:g} ({best})")
    return held, len(cells), where


def _verdict(what: str, held: int, total: int, where: Sequence[str]) -> str:
    if held == total:
        return f"{what}: held, at {held} of {total} cells."
    return f"{what}: held at {held} of {total} cells, not at share {', '.join(where)}."


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield verdicts on what is printed about central trust."""
    cells = _cells(rows)
    thrown = [found["throw-away"] for found in cells.values()]
    off = [
        abs(_error(row) - _shown(row["exact"])) / max(_shown(row["standard error"]), 1e-12) for row in thrown
    ]
    yield (
        f"Throwing private records away errs by its exact expectation: within {max(off):.1f} standard errors."
    )
    what = "Algorithm 11 errs least of the paper's methods, but at epsilon 0.1"
    yield _verdict(what, *_least(rows, "semi-dp", without=0.1, left_out=_OURS))
    for (epsilon, share), found in cells.items():
        if epsilon == 0.1:
            yield f"At epsilon 0.1 and share {share:g}, {_best(found, left_out=_OURS)} errs least of them."
    yield _verdict("In the public metric it errs least of all", *_least(rows, _OURS))
    near = [
        key for key, found in cells.items() if _error(found["semi-dp"]) <= 1.02 * _error(found[_best(found)])
    ]
    yield f"Algorithm 11 is within 2 % of the least error at {len(near)} of {len(cells)} cells."
    for name in ("throw-away", "private only"):
        wins = [key for key, found in cells.items() if _error(found["semi-dp"]) < _error(found[name])]
        lost = [f"{s:g} at epsilon {e:g}" for e, s in cells if (e, s) not in wins]
        yield _verdict(f"Algorithm 11 errs less than {name}", len(wins), len(cells), lost)
    for epsilon in sorted({key[0] for key in cells}):
        gains = {
            share: _error(found["throw-away"]) / _error(found["semi-dp"])
            for (one, share), found in cells.items()
            if one == epsilon
        }
        if max(gains) >= 0.5:
            held = list(gains.values()) == sorted(gains.values(), reverse=True)
            yield (
                f"What Algorithm 11 wins over throwing away falls with the share, epsilon {epsilon:g}: "
                f"{'held' if held else 'did not hold'} (errors {gains[min(gains)]:.2f} times as large at "
                f"{min(gains):g}, {gains[max(gains)]:.3f} at {max(gains):g})."
            )
    for (epsilon, share), printed in _REPRINT.items():
        if (epsilon, share) in cells:
            error = _error(cells[epsilon, share]["semi-dp"])
            word = "reproduced or beaten" if error <= printed * 1.02 else "not reached"
            yield f"Earlier run, share {share:g}, epsilon {epsilon:g}: {printed:g} {word} ({error:.3f})."


def local_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield verdicts on what is printed about local trust."""
    what = "Algorithm 13 errs less than LDP-SGD and throwing away"
    yield _verdict(what, *_least(rows, "semi-ldp", left_out=_RAW))
    yield _verdict("With public gradients as they are it errs least of all", *_least(rows, _RAW))


def digit_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield verdicts on what is printed about classification."""
    yield _verdict("Algorithm 11 errs least of all methods on digits", *_least(rows, "semi-dp"))
