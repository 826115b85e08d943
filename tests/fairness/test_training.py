"""How long and how fast batches are trained on, where nobody says."""

from __future__ import annotations

import pytest

from tacit.fairness import Training


def test_larger_batches_take_more_passes_and_short_data_takes_more_still() -> None:
    how = Training(solver="sgda")
    assert [how.passes(b, 32_561) for b in (1, 512)] == [2, 29]
    steps = how.steps(16, 0.0).of_dual * how.passes(16, 400) * 400 / 16
    assert steps >= 100  # fewer would end before the model is where it is going
    assert how.passes(16, 400) > how.passes(16, 32_561)
    assert Training(solver="sgda", one_pass=True).passes(16, 400) == 1


def test_steps_grow_with_batches_and_those_of_the_model_shrink_with_weights() -> None:
    how = Training(solver="sgda")
    small, large, fair = how.steps(1, 0.0), how.steps(10_000, 0.0), how.steps(1, 5.0)
    assert (small.model, large.model) == pytest.approx((0.002, 0.2))
    assert (fair.model, fair.of_dual) == pytest.approx((0.001, 0.002))
    said = Training(solver="sgda", step=0.3, dual_step=0.4).steps(1, 5.0)
    assert (said.model, said.of_dual) == (0.3, 0.4)
