"""A plan asks every registered estimator; one that cannot answer is left out, and said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from tacit.errors import ParameterError, PlanWarning
from tacit.means import ESTIMATORS, Error, Facts, HadamardMean
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.symbols import Symbols
from tacit.planning import MeanProblem, plan_mean
from tacit.privacy import Event, Leaf, PrivacyBudget, TrustModel

ASKED = MeanProblem(n=50, dim=3, budget=PrivacyBudget(2.0))
COST = ComputeCost("d", 3.0)


class Own(HadamardMean, frozen=True, kw_only=True, tag="own"):
    """An estimator that says nothing of plans: a level is all that is to be chosen."""

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        return cls._one_message(problem)


class NoLevel(Own, frozen=True, kw_only=True, tag="no-level"):
    """Refuses to be built."""

    @property
    def randomizer(self) -> Symbols:
        raise ParameterError("local_epsilon must be in a range.")


class Unknown(Leaf, frozen=True):
    """An event that no curve is known of."""


class NoPrice(Own, frozen=True, kw_only=True, tag="no-price"):
    """Is priced by an event that nobody knows, once it is calibrated."""

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        found = cls(dim=problem.dim, local_epsilon=1.0)
        return (
            Proposal(
                name="x", family="x", make=lambda: found, norm="l1", encode=COST, decode=COST, guess=found
            ),
        )

    def event(self, n: int, trust: TrustModel) -> Event:
        return Unknown()


class NoError(Own, frozen=True, kw_only=True, tag="no-error"):
    """A family of two, of which the first has no error."""

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        (one,) = cls._one_message(problem)
        return replace(one, name="bad", guess=cls(dim=3, local_epsilon=9.0)), replace(one, name="good")

    def error(self, n: int, facts: Facts = Facts()) -> Error:  # noqa: B008 - immutable
        if self.local_epsilon == 9.0:
            raise ParameterError("the error is out of range.")
        return Error(variance=1.0)


def planned(kind: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Candidates of a plan with their reasons, an estimator more being registered."""
    monkeypatch.setitem(ESTIMATORS, kind.__struct_config__.tag, kind)
    return {one.name: one.reason for one in plan_mean(ASKED, infeasible=True)}


def test_a_registered_estimator_is_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {one.name: one for one in plan_mean(ASKED, infeasible=True)}
    found = planned(Own, monkeypatch)
    assert found.keys() == {*before, "own"}
    assert found["own"] == ""
    (own,) = (one for one in plan_mean(ASKED) if one.name == "own")
    assert (own.mse, own.guarantee) == (before["hadamard"].mse, before["hadamard"].guarantee)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (NoLevel, "no-level", "local_epsilon must be in a range"),
        (NoPrice, "x", "Unknown has no privacy curve"),
    ],
)
def test_one_that_fails_is_left_out_and_said(
    kind: Any, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {one.name for one in plan_mean(ASKED, infeasible=True)}
    with pytest.warns(PlanWarning, match=f"{name} is left out of the plan: {said}"):
        found = planned(kind, monkeypatch)
    assert found.keys() == {*before, name}
    assert said in found[name]


def test_a_guess_that_fails_does_not_hide_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planned(NoError, monkeypatch)
    assert found["good"] == found["bad"] == ""  # calibrated, both have an error


def test_tags_are_those_of_the_wire() -> None:
    tags: Iterable[str] = ESTIMATORS
    assert all(ESTIMATORS[tag].__struct_config__.tag == tag for tag in tags)  # type: ignore[attr-defined]
