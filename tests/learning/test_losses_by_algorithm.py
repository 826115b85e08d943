"""Every algorithm with every loss: it trains, or refuses in one clear line before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import ALGORITHMS, LOSSES, FederatedLinearRegression, FederatedLogisticRegression, about
from tacit.learning.loss_choice import CLASS_LOSSES, NUMBER_LOSSES
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget
from tests.loops import each

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (120, 2))
SCORE = X @ [1.0, -0.5] + 0.2 + 0.1 * RNG.normal(size=120)
BUDGET = PrivacyBudget(8.0, 1e-4)
KINKED = ("hinge", "absolute", "quantile")

OTHER_THAN = {
    "whitened": (NUMBER_LOSSES, "the algorithm 'whitened' needs a loss of classes, got {loss!r}"),
    "objective-perturbation": (
        ("hinge", *NUMBER_LOSSES),
        "needs the logistic loss of two classes, got {loss!r}",
    ),
    "output-perturbation": (
        ("hinge", *NUMBER_LOSSES),
        "needs the logistic loss of two classes, got {loss!r}",
    ),
    "sufficient-statistics": (
        ("hinge", *NUMBER_LOSSES[1:]),
        "the algorithm 'sufficient-statistics' needs the squared loss, or the logistic, got {loss!r}",
    ),
    "pda": (
        tuple(loss for loss in LOSSES if loss != "squared"),
        "the algorithm 'pda' needs the squared loss, got {loss!r}",
    ),
    "adaped": (("hinge", *NUMBER_LOSSES), "the algorithm 'adaped' needs the loss 'logistic', got {loss!r}"),
}
"""Losses that an algorithm refuses, and what it says."""

NEED_PUBLIC = {name for name, kind in ALGORITHMS.items() if getattr(kind, "needs_public", False)}
NEED_NO_SMOOTHNESS = (
    *("p-sgd", "ftrl", "semi-ldp", "clipped-subgradient", "localized", "localized-phases"),
    *("cldp-sgd", "dss-sgd"),
)
ROUNDS: dict[str, int | str] = {
    # A hidden run is 20 passes by itself.
    **{name: 1 if kind.hidden else 8 for name, kind in ALGORITHMS.items()},
    "multistage": 900,
    "objective-perturbation": "auto",
    "output-perturbation": "auto",
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    path = tmp_path_factory.mktemp("accounts") / "t.ledger"
    with Ledger.create(path, limit=PrivacyBudget(50.0, 1e-2), neighbours=Neighbours()) as made:
        yield made
        assert made.spent().epsilon == 0


def model(algorithm: str, loss: str, **changes: Any) -> Any:
    facts: dict[str, Any] = {
        "loss": loss, "algorithm": algorithm, "bounds": (-1, 1), "random_state": 0,
        "rounds": ROUNDS[algorithm],
        "trust": next(one for one in ("central", "local", "shuffle") if one in about(algorithm).trusts),
        "budget": BUDGET,
    }  # fmt: skip
    facts |= changes
    if loss in CLASS_LOSSES:
        return FederatedLogisticRegression(classes=[0, 1], **facts)
    return FederatedLinearRegression(target_bounds=(0, 20), **facts)


def fit(made: Any) -> Any:
    y = (SCORE > 0).astype(int) if made.loss in CLASS_LOSSES else 3 * np.exp(SCORE)
    if made.algorithm in NEED_PUBLIC:
        made.set_params(public=(X * 0.9, y))
    return made.fit(X, y, silos=np.arange(len(X)) % 4 if made.trust == "shuffle" else None)


@each("loss", LOSSES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_pair_trains_or_says_why_not(algorithm: str, loss: str, ledger: Ledger) -> None:
    losses, says = OTHER_THAN.get(algorithm, ((), ""))
    if loss not in losses:
        # Without privacy clips and noise are left out, and nothing else: one loss of each task tells.
        without: tuple[dict[str, Any], ...] = ({"trust": "none", "budget": None},)
        for changes in ({}, *(without if loss in ("logistic", "absolute") else ())):
            fitted = fit(model(algorithm, loss, **changes))
            assert np.isfinite(fitted.model_.w).all()
            assert fitted.model_.w.any()
        return
    private: dict[str, Any] = {"random_state": None, "ledger": ledger}
    for changes in (private, {"trust": "none", "budget": None}):
        with pytest.raises(ParameterError) as caught:
            fit(model(algorithm, loss, **changes))
        said = str(caught.value)
        assert says.format(loss=loss) in said
        assert said.endswith("the algorithm 'auto' takes every loss.")
        assert "\n" not in said


@pytest.mark.parametrize("loss", KINKED)
@each("algorithm", ALGORITHMS)
def test_a_kink_is_refused_by_all_that_need_smoothness(algorithm: str, loss: str, ledger: Ledger) -> None:
    if algorithm in NEED_NO_SMOOTHNESS:
        assert fit(model(algorithm, loss, smoothing=0.0)).model_.w.any()
        return
    with pytest.raises(ParameterError) as caught:
        fit(model(algorithm, loss, smoothing=0.0, random_state=None, ledger=ledger))
    said = str(caught.value)
    assert f"{loss!r} has a kink" in said or f"got {loss!r}" in said
    assert "'p-sgd'" in said or "'auto'" in said


@pytest.mark.parametrize(
    ("loss", "trust"),
    [
        (loss, trust)
        for loss in LOSSES
        # A smooth loss of each task, and one with a kink: what a trust model asks of an algorithm.
        for trust in ("central", "local", "aggregate", "shuffle", "none")
        if trust == "central" or loss in ("logistic", "quantile", "poisson")
    ],
)
def test_auto_takes_every_loss_under_every_trust(loss: str, trust: str) -> None:
    silos = np.arange(len(X)) % 2
    for smoothing in (None, 0.0) if loss in KINKED else (None,):
        kinked: dict[str, Any] = {} if smoothing is None else {"smoothing": smoothing}
        made = model("minibatch", loss, trust=trust, budget=None if trust == "none" else BUDGET, **kinked)
        made.set_params(algorithm="auto", rounds=12)
        y = (SCORE > 0).astype(int) if loss in CLASS_LOSSES else 3 * np.exp(SCORE)
        fitted = made.fit(X, y, silos=silos)
        assert fitted.trained_.algorithm in NEED_NO_SMOOTHNESS or smoothing is None
        assert np.isfinite(fitted.predict(X)).all()
