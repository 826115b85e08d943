"""The default against a search: what is searched, how cells are compared, verdicts that follow the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.data import load
from tacit.experiments import Report, defaults
from tacit.experiments.defaults import Cell, Point, compute, points, statements
from tacit.learning import make_algorithm

SEEN: list[tuple[int, int]] = []
BAD = Point(make_algorithm("minibatch", rounds=5, step_size=1e-9), 0.1, "minibatch: hardly moves")
GOOD = Point(make_algorithm("whitened", rounds=20), 0.2, "whitened: 20 rounds")


@pytest.fixture(scope="module")
def report() -> Report:
    cell = Cell(load("breast-cancer"), 3.0)
    return compute([cell], [BAD, GOOD], seeds=(100, 101), progress=lambda *told: SEEN.append(told))


def test_the_winner_is_scored_again_beside_the_default(report: Report) -> None:
    default, winner, best = report.rows
    assert SEEN == [(0, 1), (1, 1)]
    assert [row["line"] for row in report.rows] == list(defaults._LINES)
    assert all(row.keys() == default.keys() for row in report.rows)
    assert (default["setting"], winner["setting"], best["setting"]) == ("", GOOD.said, GOOD.said)
    cell = Cell(load("breast-cancer"), 3.0)
    own, again = cell.scores(Point(), (100, 101)), cell.scores(GOOD, (100, 101))
    assert default["accuracy"] == own.mean()
    assert winner["accuracy"] == again.mean()
    # The search goes by other divisions.
    assert best["accuracy"] == cell.scores(GOOD, range(cell.searched)).mean()
    differences = 100 * (again - own)
    assert default["behind"] == pytest.approx(differences.mean())
    assert default["error of behind"] == pytest.approx(differences.std(ddof=1) / math.sqrt(2))
    assert not set(range(cell.searched)) & set(range(defaults._FIRST_FRESH, defaults._FIRST_FRESH + 50))


def test_small_test_parts_are_scored_on_more_divisions() -> None:
    assert [Cell(load(name), 1.0).searched for name in ("breast-cancer", "digits-odd-even")] == [4, 1]


def test_a_division_is_dealt_by_its_seed_and_trained_on_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    data = load("breast-cancer")

    class Stub:
        def __init__(self, **given: object) -> None:
            held.append(int(str(given["random_state"])))

        def fit(self, X: np.ndarray, y: np.ndarray) -> None:
            held.extend([len(X), len(y)])

        def score(self, X: np.ndarray, y: np.ndarray) -> float:
            return len(X) + float(y.sum())

    monkeypatch.setattr(defaults, "FederatedLogisticRegression", Stub)
    first, again, other = (Cell(data, 1.0).score(Point(), seed) for seed in (1, 1, 2))
    assert held[:3] == [1, 456, 456]
    assert first == again != other


def test_a_single_score_has_the_error_of_its_test_records() -> None:
    assert defaults._error(np.array([0.8]), 400) == pytest.approx(0.02)
    assert defaults._error(np.array([0.8, 0.9]), 400) == pytest.approx(0.05)


def test_the_search_draws_every_algorithm_and_only_what_it_has() -> None:
    found = points(200)
    assert len({one.said for one in found}) == 200
    assert points(5) == found[:5]
    for name in defaults._SEARCHED:
        some = [one for one in found if one.said.startswith(f"{name}: clip ")]
        assert len(some) > 25
        assert all("rounds" in one.said for one in some)
    for one in found:
        assert one.clip is not None
        assert 0.05 <= one.clip <= 1
        assert one.algorithm is not None
        assert one.algorithm.rounds is not None
        assert 5 <= one.algorithm.rounds <= 320


def test_verdicts_follow_the_rows() -> None:
    def cell(data: str, behind: float, again: float) -> list[dict[str, object]]:
        values = (0.9, None, behind, 0.25), (again, None, None, None), (0.95, None, None, None)
        keys = ("accuracy", "standard error", "behind", "error of behind")
        return [
            {"data": data, "epsilon": 1.0, "line": line} | dict(zip(keys, row, strict=True))
            for line, row in zip(defaults._LINES, values, strict=True)
        ]

    said = list(statements(cell("a", 0.5, 0.94) + cell("b", 1.25, 0.92)))
    assert said[0] == "a, epsilon 1: the default is within 1 point of the winner: yes, 0.50 ± 0.25 behind."
    assert said[1] == "b, epsilon 1: the default is within 1 point of the winner: no, 1.25 ± 0.25 behind."
    assert said[2] == "Within 1 point of the winner in 1 of 2 cells."
    assert said[3].endswith("by 2.00 points on average, 3.00 at most.")


def test_quick_is_a_few_small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(
        defaults, "compute", lambda cells, searched, **given: asked.extend([cells, searched, given["seeds"]])
    )
    monkeypatch.setattr(defaults, "load", lambda name: load("breast-cancer") if name else None)
    defaults.run(True, lambda *_: None)
    cells, searched, seeds = asked
    assert (len(cells), len(searched), len(seeds)) == (4, 12, 5)  # type: ignore[arg-type]
    asked.clear()
    defaults.run(False, lambda *_: None)
    cells, searched, seeds = asked
    assert (len(cells), len(searched), len(seeds)) == (8, 200, 20)  # type: ignore[arg-type]
