"""Rounds whose levels add up to far more than the whole: Lowy (2023), Appendix B.1.5.3, mended."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from tacit.privacy import Compose, PureDP, pure_epsilon_of
from tacit.privacy.curves import Array


def transcripts(d: int, eps0: float) -> Array:
    """Return the law of all d bits for x = e_1 .. e_d, shape (d, 2^d): bit r likes 1 where x = e_r."""
    yes = math.exp(eps0 / 2) / (1 + math.exp(eps0 / 2))
    one = np.where(np.eye(d, dtype=bool), yes, 1 - yes)  # P(bit r = 1 | x)
    bits = np.array(list(product((0, 1), repeat=d)), dtype=bool)
    chances: Array = np.where(bits[None], one[:, None], 1 - one[:, None])
    law: Array = chances.prod(axis=-1)
    return law


def largest_log_ratio(laws: Array) -> float:
    """Return the largest privacy loss over all pairs of inputs and all outputs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = laws[:, None] / laws[None]
    return float(np.log(np.nanmax(ratios)))


@pytest.mark.parametrize("eps0", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("d", [2, 3, 8])
def test_the_transcript_costs_eps0_and_its_rounds_add_up_to_more(d: int, eps0: float) -> None:
    laws = transcripts(d, eps0)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-12)
    assert largest_log_ratio(laws) == pytest.approx(eps0, rel=1e-12)
    # Each round alone, over its two laws.
    yes = math.exp(eps0 / 2) / (1 + math.exp(eps0 / 2))
    rounds = [largest_log_ratio(np.array([[yes, 1 - yes], [1 - yes, yes]]))] * d
    assert rounds == pytest.approx([eps0 / 2] * d, rel=1e-12)
    together = math.sqrt(sum(level**2 for level in rounds))
    assert together == pytest.approx(eps0 * math.sqrt(d) / 2, rel=1e-12)
    # So the constant sqrt(d) / 2 has no bound, and a price of round by round is sound but loose.
    priced = pure_epsilon_of(Compose(tuple(PureDP(level) for level in rounds)))
    assert priced >= largest_log_ratio(laws) - 1e-12


def test_the_printed_form_tells_everything() -> None:
    # Round r: a randomized response over e_1 .. e_d (1 .. d here) if x = e_r, else 0.
    d, eps0 = 3, 1.0
    right = math.exp(eps0) / (math.exp(eps0) + d - 1)
    laws = np.zeros((d, (d + 1) ** d))
    for x, answer in product(range(d), repeat=2):
        messages = [0] * d
        messages[x] = answer + 1
        at = int(np.ravel_multi_index(messages, (d + 1,) * d))
        laws[x, at] = right if answer == x else (1 - right) / (d - 1)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-12)
    for x, other in product(range(d), repeat=2):
        if x != other:
            # No output in common: delta is 1 whatever epsilon is.
            assert np.minimum(laws[x], laws[other]).sum() == 0
    assert math.isinf(largest_log_ratio(laws))
