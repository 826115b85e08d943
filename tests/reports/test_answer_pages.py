"""Pages about single answers: bandits and frequencies, as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest

from tacit.bandits import (
    BanditPlan,
    BanditResult,
    LinearEnvironment,
    RewardPrivacy,
    begin,
    decide,
    next_batch,
    random_circle,
    simulate_bandit,
)
from tacit.frequencies import Frequencies, FrequenciesQuery, estimate_frequencies
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.reports import (
    AnswerPage,
    draw_frequencies,
    draw_regret,
    frequency_page,
    render_answer,
    run_page,
    simulation_page,
)
from tacit.reports.drawing import house_figure, label_ends
from tests.reports.runs import NASTY
from tests.reports.test_html import parsed

NOW = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
TRUSTS = (TrustModel.CENTRAL, TrustModel.SHUFFLE, TrustModel.LOCAL)
ACTIONS, THETA = random_circle(6, 2, np.random.default_rng(1))


def _privacy(trust: TrustModel | None) -> RewardPrivacy:
    delta = 1e-6 if trust in (TrustModel.SHUFFLE, TrustModel.AGGREGATE) else 0.0
    parties = 4 if trust is TrustModel.AGGREGATE else 0
    epsilon = math.inf if trust is None else 0.5
    return RewardPrivacy(trust=trust, epsilon=epsilon, delta=delta, parties=parties)


def _runs(trust: TrustModel | None, count: int = 3) -> tuple[BanditPlan, list[BanditResult]]:
    plan = BanditPlan(actions=ACTIONS, horizon=20_000, privacy=_privacy(trust))
    world = LinearEnvironment(actions=ACTIONS, theta=THETA)
    seeds = [np.random.default_rng(k) for k in range(2 * count)]
    return plan, [
        simulate_bandit(plan, world, rng_world=a, rng_privacy=b)
        for a, b in zip(seeds[::2], seeds[1::2], strict=True)
    ]


def _simulated(trust: TrustModel | None, count: int = 3) -> AnswerPage:
    plan, found = _runs(trust, count)
    return simulation_page(plan, found, _runs(None, count)[1], seed=0)


def _frequencies(trust: TrustModel = TrustModel.LOCAL) -> Frequencies:
    budget = PrivacyBudget(1.0, 1e-6 if trust is TrustModel.SHUFFLE else 0.0)
    query = FrequenciesQuery.calibrated(k=4, n=5000, budget=budget, trust=trust)
    values = np.repeat([0, 1, 2, 3], [3000, 1500, 500, 0])
    return estimate_frequencies(values, query, rng=np.random.default_rng(0))


def _counted(trust: TrustModel = TrustModel.LOCAL, threshold: float | None = None) -> AnswerPage:
    names = [*NASTY[:3], "dear at $5 or $6"]
    order = np.arange(4) if threshold is None else np.arange(1)
    return frequency_page(
        names,
        _frequencies(trust),
        order,
        table="t.csv",
        column="<b>",
        confidence=0.95,
        projection="none",
        threshold=threshold,
    )


PAGES = [
    *(pytest.param(_simulated, (trust,), id=f"bandit, {trust}") for trust in (None, *TrustModel)),
    pytest.param(_simulated, (TrustModel.CENTRAL, 1), id="bandit, one run"),
    *(pytest.param(_counted, (trust,), id=f"frequencies, {trust}") for trust in TRUSTS),
    pytest.param(_counted, (TrustModel.LOCAL, 0.2), id="heavy hitters"),
]


@pytest.mark.parametrize(("make", "given"), PAGES)
def test_pages_are_well_formed_load_nothing_and_say_every_guarantee(
    make: Callable[..., AnswerPage], given: tuple[object, ...]
) -> None:
    page = make(*given)
    html = render_answer(page, created=NOW)
    checker = parsed(html)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(checker.tags)
    assert not re.search(r"https?:|//\w|@import|url\((?!#)|javascript:", html)
    text = " ".join(checker.text.split())
    assert page.claim in text
    for one in page.guarantees:
        assert str(one) in text
        assert all(clause in text for clause in one.assumptions)
    private = math.isfinite(page.guarantees[0].epsilon)
    assert ("Put to the test" in text) == private
    assert ("A rehearsal." in text) == private
    assert ("Nothing is protected" in text) != private
    assert len({name for name, _ in checker.attributes} & {"src", "href", "onload"}) == 0


def test_names_of_values_are_text_and_never_markup() -> None:
    html = render_answer(_counted(), created=NOW)
    text = parsed(html).text
    for name in NASTY[:3]:
        assert name in text
    assert "How often each <b> is held" in text
    assert "dear at $5 or $6" in text
    assert "<script" not in html


def test_the_line_of_regret_ends_at_the_regret_and_the_band_is_of_the_mean() -> None:
    _, found = _runs(TrustModel.CENTRAL)
    without = _runs(None)[1]
    axes = draw_regret(found, without, trust="central").axes[0]
    free, private = (line.get_ydata() for line in axes.lines[:2])
    regrets = [[run.regret for run in runs] for runs in (without, found)]
    assert float(free[-1]) == pytest.approx(np.mean(regrets[0]))  # type: ignore[arg-type, index]
    assert float(private[-1]) == pytest.approx(np.mean(regrets[1]))  # type: ignore[arg-type, index]
    edges = axes.collections[1].get_paths()[0].vertices
    ends = np.asarray(edges)[np.asarray(edges)[:, 0] == 20_000][:, 1]
    half = 2 * np.std(regrets[1], ddof=1) / math.sqrt(3)
    assert float(np.ptp(ends)) == pytest.approx(2 * half)
    assert len(draw_regret(without, without, trust="none").axes[0].lines) == 1


def test_a_run_shows_who_is_left_and_its_best_action() -> None:
    plan, _ = _runs(TrustModel.CENTRAL, 1)
    state, decisions = begin(plan), []
    for _ in range(4):
        batch = next_batch(plan, state)
        assert batch is not None
        decision = decide(plan, state, batch, batch.counts * (ACTIONS[batch.actions] @ THETA))
        decisions.append((state.alive, decision))
        state = decision.state
    claims = plan.privacy.guarantees([(np.array([2]), 0.5)], simulated=False)
    for given in (decisions, []):
        page = run_page(plan, given, claims, best=state.best, finished=False)
        text = " ".join(parsed(render_answer(page, created=NOW)).text.split())
        assert f"best action so far{state.best}" in text
        assert "A rehearsal" not in text
        assert ("Estimates of batch 4" in text) == bool(given)
        assert f"{len(given)} batches" in text
        assert "tacit account verify" in text


def test_every_share_has_its_interval_and_what_may_be_nobody_is_grey() -> None:
    found = _frequencies()
    figure = draw_frequencies(list("abcd"), found, np.array([0, 1, 2, 3]), confidence=0.95, threshold=0.1)
    bars = figure.axes[0].lines[:8:2]
    for k, bar in enumerate(bars):
        assert np.array_equal(np.asarray(bar.get_xdata()), found.band.intervals[k])
    assert bars[0].get_color() != bars[3].get_color()
    assert found.band.lower[3] <= 0 < found.band.lower[0]


def test_names_of_lines_stay_apart_on_a_logarithmic_axis() -> None:
    figure, axes = house_figure(percent=False)
    axes.set_yscale("log")
    axes.plot([1, 2], [1e-3, 100.0])
    label_ends(axes, [("central", 2, 0.0100), ("none", 2, 0.0101)])
    figure.draw_without_rendering()
    low, high = sorted(text.get_window_extent().y0 for text in axes.texts)
    assert high - low > 5
