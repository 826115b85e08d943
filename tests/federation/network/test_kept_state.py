"""What a silo keeps of its units, between machines: it survives restarts, never leaves, and is missed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.federation import Disjoint, Plan
from tacit.federation.network.accepted_runs import AcceptedRuns
from tacit.means import AdditiveMean, DiscreteGaussianNoise
from tacit.numerics import Array
from tacit.privacy import TrustModel
from tests.federation.network.silo_world import SIZE, Lab, code, words
from tests.federation.world import DIM, Rows, ask_at, mean_of, plan_of


@dataclass
class Walking:
    """Every unit keeps the sum of the points that it was shown; its row is that sum times its values."""

    state_size: int = DIM
    state_version: int = 1

    def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
        kept = state + at["w"]
        return kept * units.values, kept


PLAN: Plan = plan_of(statistics=("walking",), estimator=AdditiveMean(dim=DIM, on_violation="clip"), parties=3)
POINTS = [np.full(DIM, value) for value in (0.5, -0.25, 1.0, 0.125)]
KEPT = np.cumsum(POINTS, axis=0)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Lab]]:
    made: list[Lab] = []

    def lab(name: str) -> Lab:
        made.append(Lab(tmp_path / name, keeps=False, trusts_server=True, statistics={"walking": Walking()}))
        made[-1].agree(PLAN, limit=None)
        return made[-1]

    yield lab
    for one in made:
        one.close()


def answers(lab: Lab, steps: range, *, anew: bool) -> list[bytes]:
    """What the silo answers; where asked, each step by another process."""
    found = []
    for step in steps:
        if anew or not lab.made:
            if lab.made:
                lab.made[-1].close()
            service = lab.service()
            if step == 0:
                lab.accept(service, PLAN)
        found.append(lab.answer(lab.made[-1], ask_at(step, POINTS[step])))
    return found


def test_a_silo_without_a_ledger_goes_on_with_its_state_after_every_restart(
    make: Callable[[str], Lab],
) -> None:
    whole, killed = make("whole"), make("killed")
    told: list[str] = []
    assert answers(whole, range(4), anew=False) == answers(killed, range(4), anew=True)
    for lab in (whole, killed):
        np.testing.assert_array_equal(lab.silos[-1].kept("walking")[0], KEPT[-1])
    # Also an answer that never arrived: a repeated query, after a restart, changes nothing.
    killed.made[-1].close()
    again = killed.service()
    assert killed.answer(again, ask_at(3, POINTS[3])) == killed.answer(again, ask_at(3, POINTS[3]))
    np.testing.assert_array_equal(killed.silos[-1].kept("walking")[0], KEPT[-1])
    assert code(killed.ask(again, ask_at(3, POINTS[0]))) == "answered"
    again._after = told.append
    killed.end(again)
    assert told == ["trial"]  # for whom the disk was full after the last answer


def kept_file(lab: Lab) -> Path:
    (path,) = (lab.state / "runs").glob("*.kept")
    return path


def lose(lab: Lab) -> None:
    kept_file(lab).unlink()


def damage(lab: Lab) -> None:
    kept_file(lab).write_bytes(kept_file(lab).read_bytes()[:-3])


def put_back(lab: Lab) -> None:
    shutil.copy(lab.state / "older", kept_file(lab))


def flip(lab: Lab) -> None:
    """One bit, of a number that a unit keeps."""
    data = bytearray(kept_file(lab).read_bytes())
    data[200] ^= 1
    kept_file(lab).write_bytes(data)


def exchange(lab: Lab) -> None:
    """What another run has kept, which is as long and was asked as often."""
    lab.agree(PLAN, run="another", limit=None)
    (mine,), service = (lab.state / "runs").glob("*.kept"), lab.service()
    lab.accept(service, PLAN, run="another")
    for step in range(3):
        lab.answer(service, ask_at(step, -POINTS[step]), run="another")
    service.close()
    (other,) = {*(lab.state / "runs").glob("*.kept")} - {mine}
    other.replace(mine)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lose, "has lost what it kept of its units in run 'trial': line"),
        (put_back, "step 2 was answered, and what is kept ends with step 1"),
        (damage, "cannot be read: what the silo has kept is lost"),
        (flip, "cannot be read: what the silo has kept is lost"),
        (exchange, "is of another run"),
    ],
)
def test_a_silo_that_lost_its_state_says_so_and_answers_nothing(
    spoil: Callable[[Lab], Any], said: str, make: Callable[[str], Lab]
) -> None:
    lab = make("lab")
    answers(lab, range(2), anew=False)
    shutil.copy(kept_file(lab), lab.state / "older")
    answers(lab, range(2, 3), anew=False)
    lab.made[-1].close()
    spoil(lab)
    service = lab.service()
    assert code(lab.ask(service, ask_at(3, POINTS[3]))) == "failed"
    assert code(lab.accept(service, PLAN)) == "failed"  # nor is the run begun anew
    assert said in words(lab.lines("refused"))
    assert sum(line.facts["run"] == "trial" for line in lab.lines("answered")) == 3


def test_an_answer_that_cannot_be_stored_does_not_leave(
    make: Callable[[str], Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make("lab")
    answers(lab, range(1), anew=False)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("tacit.federation.network.accepted_runs.replace_private", full)
        assert code(lab.ask(lab.made[-1], ask_at(1, POINTS[1]))) == "failed"
    np.testing.assert_array_equal(lab.silos[-1].kept("walking")[0], KEPT[0])
    lab.answer(lab.made[-1], ask_at(1, POINTS[1]))
    np.testing.assert_array_equal(lab.silos[-1].kept("walking")[0], KEPT[1])


ORDERED: Plan = plan_of(
    estimator=mean_of(DiscreteGaussianNoise(9.0), trust=TrustModel.CENTRAL),
    batch=Disjoint(size=10),
    parties=3,
)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (None, "has lost the secret order of its units in run 'trial': line"),
        (bytes(8 * SIZE), "cannot be read: what the silo has kept is lost"),  # ten times the same unit
    ],
)
def test_an_order_of_disjoint_batches_is_drawn_once(order: bytes | None, said: str, tmp_path: Path) -> None:
    """Under central trust the server counts on it: another order would use a unit again, unpaid."""
    lab = Lab(tmp_path / "lab", keeps=False, trusts_server=True)
    lab.agree(ORDERED, limit=None)
    service = lab.service()
    lab.accept(service, ORDERED)
    lab.answer(service, ask_at(0))
    service.close()
    (path,) = (lab.state / "runs").glob("*.secret")
    path.unlink() if order is None else path.write_bytes(order)
    service = lab.service()
    assert code(lab.ask(service, ask_at(1))) == "failed"
    assert said in words(lab.lines("refused"))
    service.close()


def test_a_request_of_another_run_is_none(make: Callable[[str], Lab]) -> None:
    """The silo would answer one run as if it were the other; as it is, the server proposes the plan again."""
    lab = make("lab")
    lab.agree(PLAN, run="another", limit=None)
    service, runs = lab.service(), AcceptedRuns(lab.state / "runs")
    for run in ("trial", "another"):
        lab.accept(service, PLAN, run=run)
    mine, other = (runs._file(run, "accepted") for run in ("trial", "another"))
    other.replace(mine)
    service.close()
    assert code(lab.ask(lab.service(), ask_at(0))) == "plan"
