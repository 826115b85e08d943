"""Orders of methods without convexity at round numbers, and what is wrong with them in print."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError, PlanWarning
from tacit.literature import (
    NONCONVEX_METHODS,
    NonconvexProblem,
    nonconvex_first_batch,
    nonconvex_momentum,
    nonconvex_rate,
    nonconvex_rate_table,
    nonconvex_step_size,
)
from tacit.mechanisms import hemisphere_scale

ROUND: dict[str, Any] = {"silos": 10, "n": 100, "dim": 1000, "epsilon": 1.0, "rounds": 64}
ROUND |= {"local_steps": 4, "local_batch": 25, "heterogeneity": 0.5}
"""M n epsilon = M K b = 1000, ell = 1/8, P1 = 1/100 and P2 = 1/1000."""
ODD = {"gap": 3.0, "smoothness": 0.7, "lipschitz": 1.9, "epsilon": 0.3, "heterogeneity": 0.4}


def facts(**changes: Any) -> NonconvexProblem:
    return NonconvexProblem(**{**ROUND, **changes})


def test_the_table_at_round_numbers() -> None:
    root = math.sqrt(1000)
    walks = 0.5 / 64 + 1 / (64 * 4) + 1 / 640 + 0.0125 + 0.01
    expected = {
        "diff2-gd": 1 / 64 + root / 8000 + 0.01,
        "mb-psgm-fg": 1 / 64 + 0.011,
        "mb-psgm": 1 / 64 + 1 / 1600 + 1 / 64_000 + 0.01625 + 0.001,
        "diff2-bvr-lsgd": walks + root / 50,
        "ce-psgm-fg": walks + root / 3200 + 0.001,
        "ce-psgm": walks + root / 3200 + 0.001 + 1 / 1600 + 1 / 64_000 + 0.00625,
    }
    table = nonconvex_rate_table(facts())
    assert {one.method: one.total for one in table} == pytest.approx(expected)
    assert tuple(expected) == NONCONVEX_METHODS
    assert [one.trusted_server for one in table] == [True, False, False, True, False, False]
    assert [one.full_gradients for one in table] == [True, True, False, True, True, False]


def test_local_noise_of_diff2_is_over_epsilon_and_of_walks_over_its_root() -> None:
    """Table 1: sqrt(d) / (sqrt(K) epsilon b), and no R; the proofs: sqrt(d) / (R sqrt(K epsilon) b)."""
    more = {one.method: one.terms.get("local noise") for one in nonconvex_rate_table(facts(epsilon=4.0))}
    assert more["diff2-bvr-lsgd"] == pytest.approx(math.sqrt(1000) / (2 * 4 * 25))
    assert more["ce-psgm"] == more["ce-psgm-fg"] == pytest.approx(math.sqrt(1000) / (64 * 4 * 25))


@pytest.mark.parametrize("changes", [{}, ODD])
def test_terms_have_the_scale_of_a_squared_gradient(changes: dict[str, Any]) -> None:
    """Losses that are c times as large have c^2 times the squared gradients."""
    p = facts(**changes)
    names = {"gap": p.gap, "smoothness": p.smoothness, "lipschitz": p.lipschitz, "heterogeneity": p.tau}
    larger = facts(**{**changes, **{name: 3 * value for name, value in names.items()}})
    for one, other in zip(nonconvex_rate_table(p), nonconvex_rate_table(larger), strict=True):
        assert dict(other.terms) == pytest.approx({name: 9 * value for name, value in one.terms.items()})


@pytest.mark.parametrize("changes", [{}, ODD])
def test_the_privacy_term_of_sampled_gradients_is_that_of_its_momentum(changes: dict[str, Any]) -> None:
    """Delta L / (R sqrt(beta M K b)) of beta_a is ell P1: the printed ell^2 does not come of it."""
    p = facts(**changes)
    known = (p.gap * p.smoothness) ** (2 / 3) / p.lipschitz ** (4 / 3)
    beta_a = 1000 ** (2 / 3) * p.epsilon ** (2 / 3) * known / (10 * p.rounds)
    beta_b = 10 * known / p.rounds ** (2 / 3)
    moved, ell, best = p.gap * p.smoothness, p.ratio, nonconvex_rate("mb-psgm-fg", p).terms["privacy"]
    assert moved / (p.rounds * math.sqrt(beta_a * 1000)) == pytest.approx(ell * best)
    noisy = moved * math.sqrt(p.dim) / (math.sqrt(p.rounds * beta_b) * p.budget)
    assert noisy == pytest.approx(ell ** (1 / 3) * best)
    right, printed = (nonconvex_rate("mb-psgm", p, form=form).terms for form in ("derived", "printed"))
    assert right["privacy"] == pytest.approx((1 + ell + ell ** (1 / 3)) * best)
    assert printed["privacy"] == pytest.approx((1 + ell**2 + ell ** (1 / 3)) * best)
    assert nonconvex_rate("ce-psgm", p, form="printed").terms["privacy"] == pytest.approx(right["privacy"])
    # Of beta_b both errors of sampling are one, over (R M K b)^(2/3); printed without the R.
    assert moved / (p.rounds * math.sqrt(beta_b * 1000)) == pytest.approx(right["sampling"])
    assert beta_b * p.lipschitz**2 / 1000 == pytest.approx(right["sampling"])
    assert printed["sampling"] == pytest.approx(p.rounds ** (2 / 3) * right["sampling"])


def test_the_display_of_theorem_4_2_leaves_out_the_noise_of_walks() -> None:
    """Which the theorem for all records has, of the same walks: no sampling lessens it."""
    right, printed = (nonconvex_rate("ce-psgm", facts(), form=form).terms for form in ("derived", "printed"))
    assert set(right) - set(printed) == {"local noise", "server noise"}
    full = nonconvex_rate("ce-psgm-fg", facts(), form="printed").terms
    assert {name: right[name] for name in ("local noise", "server noise")} == pytest.approx(
        {"local noise": math.sqrt(1000) / 3200, "server noise": 0.0125}
    )
    assert full["local noise"] == right["local noise"]


def test_momentum_at_round_numbers() -> None:
    assert nonconvex_momentum("mb-psgm-fg", facts()) == pytest.approx(10 / 64)
    assert nonconvex_momentum("mb-psgm", facts()) == pytest.approx(10 / 64)  # beta_b is 10 / 16
    assert nonconvex_momentum("ce-psgm", facts(epsilon=1000.0)) == pytest.approx(10 / 16)
    with pytest.warns(PlanWarning, match=r"weight 15\.62 of ce-psgm-fg is above 1 and becomes 1"):
        assert nonconvex_momentum("ce-psgm-fg", facts(epsilon=1000.0)) == 1.0
    assert nonconvex_momentum("mb-psgm", facts(lipschitz=1000.0)) == 1 / 64


def test_the_first_batch_is_as_good_as_what_forgets_it() -> None:
    assert nonconvex_first_batch("mb-psgm", facts()) == 64  # 100 / (64 (10 / 64)^2)
    assert nonconvex_first_batch("mb-psgm-fg", facts()) == 100
    with pytest.warns(PlanWarning, match="needs 6,400 records of a silo and has 100"):
        assert nonconvex_first_batch("ce-psgm", facts(lipschitz=1000.0)) == 100
    with pytest.raises(ParameterError, match="method must be one of"):
        nonconvex_first_batch("diff2-gd", facts())


@pytest.mark.parametrize("steps", [4, 400])
def test_steps_of_one_local_step_are_not_shorter_by_those_of_walks(steps: int) -> None:
    """Delta / (eta R) is the order of the rate; with the printed K below, it would be K times as large."""
    p = facts(local_steps=steps)
    eta, rate = nonconvex_step_size("mb-psgm-fg", p), nonconvex_rate("mb-psgm-fg", p)
    first = p.gap / (eta * p.rounds)
    assert first <= 2 * rate.total
    root = math.sqrt(nonconvex_momentum("mb-psgm-fg", p) / (p.dim * p.rounds))
    printed = min(1.0, root * p.budget / (steps * p.smoothness)) / 2
    assert (p.gap / (printed * p.rounds) > 4 * rate.total) == (steps == 400)


def test_step_sizes_at_round_numbers() -> None:
    # sqrt(beta) M n epsilon / sqrt(d R) = sqrt(10) / 8 x 1000 / sqrt(64,000) is above 1.
    assert nonconvex_step_size("mb-psgm", facts()) == 0.5
    assert nonconvex_step_size("mb-psgm", facts(lipschitz=1000.0, epsilon=0.1)) == pytest.approx(
        0.5 * 100 / (8 * math.sqrt(64_000))
    )
    # sqrt(beta M K b) with beta = 1 / 64 and few samples, over K where there are walks.
    few = facts(lipschitz=1000.0, epsilon=10.0, local_steps=2, local_batch=1)
    assert nonconvex_step_size("mb-psgm", few) == pytest.approx(0.5 * math.sqrt(20 / 64))
    assert nonconvex_step_size("ce-psgm", few) == pytest.approx(0.5 * math.sqrt(20 / 64) / 2)
    assert nonconvex_step_size("ce-psgm", facts(heterogeneity=1.0)) == pytest.approx(0.125)
    assert nonconvex_step_size("ce-psgm-fg", facts(), noise=1.0) == pytest.approx(0.5 / math.sqrt(4000))
    assert nonconvex_step_size("ce-psgm-fg", facts(heterogeneity=0.01)) == pytest.approx(1.5625 / 8)


def test_the_error_of_reports_is_over_the_messages_that_are_sent() -> None:
    """(A.10) divides d C_0 G^2, C_0 = 4 / kappa^2, by M n; of a tenth of the records it is no bound."""
    d, level, messages = 101, 1.0, 1651
    exact = hemisphere_scale(d, level) ** 2 / messages
    scale = 4 * d / math.tanh(level / 2) ** 2
    assert scale / (10 * messages) < exact < scale / messages
    assert exact / (scale / (10 * messages)) == pytest.approx(3.9, abs=0.05)


def test_clips_by_smoothness_leave_differences_alone_and_not_gradients() -> None:
    """f = L w^2 / 2 on |w| <= G / L: C2 = L clips gradients of length G, and L |w - u|^2 differences."""
    smoothness, lipschitz = 0.5, 2.0
    w, u = lipschitz / smoothness, lipschitz / smoothness - 0.1
    assert smoothness * w == lipschitz > smoothness
    difference = smoothness * w - smoothness * u
    assert difference <= smoothness * abs(w - u) * (1 + 1e-12)
    assert difference > 9 * smoothness * abs(w - u) ** 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"silos": 0}, "silos must be a whole number >= 1"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"heterogeneity": 2.1}, "heterogeneity must be at most 2 smoothness = 2.0, got 2.1"),
    ],
)
def test_bad_facts_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        facts(**changes)


def test_what_has_no_momentum_or_no_name_is_refused() -> None:
    with pytest.raises(ParameterError, match="method must be one of"):
        nonconvex_momentum("diff2-gd", facts())
    with pytest.raises(ParameterError, match="method must be one of"):
        nonconvex_rate("sgd", facts())  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="noise must be"):
        nonconvex_step_size("ce-psgm", facts(), noise=-1.0)
