"""Whatever stands for a number at a door of the accountant is read, or refused in one line."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.literature import compare
from tacit.privacy import (
    AnyOf,
    Gaussian,
    Laplace,
    PrivacyBudget,
    basic_composition,
    calibrate,
    curve_of,
    delta_of,
    epsilon_of,
    hockey_stick,
    renyi_divergence,
    renyi_of,
    renyi_to_delta,
    renyi_to_epsilon,
    work_of,
)
from tacit.privacy.curves import gaussian_curve
from tacit.privacy.pricing import method_of

DOORS: dict[str, Any] = {
    "delta_of": lambda x: delta_of(Gaussian(2.0), x),
    "epsilon_of": lambda x: epsilon_of(Gaussian(2.0), x),
    "method_of": lambda x: method_of(AnyOf((Gaussian(2.0), Laplace(2.0))), x),
    "curve_of": lambda x: curve_of(Gaussian(2.0), accuracy=x),
    "Curve.delta": lambda x: gaussian_curve(0.5).delta(x),
    "renyi_of": lambda x: renyi_of(Gaussian(2.0), x),
    "an order": lambda x: renyi_of(Gaussian(2.0), [2.0, x]),
    "hockey_stick": lambda x: hockey_stick(np.log([0.5, 0.5]), np.log([0.4, 0.6]), x),
    "a law": lambda x: hockey_stick([x], [0.0], 0.0),
    "renyi_divergence": lambda x: renyi_divergence(np.log([0.5, 0.5]), np.log([0.4, 0.6]), x),
    "renyi_to_epsilon": lambda x: renyi_to_epsilon([2.0], [x], 1e-6),
    "renyi_to_delta": lambda x: renyi_to_delta([2.0], [1.0], x),
    "compare": lambda x: compare(Gaussian(2.0), x),
    "calibrate, low": lambda x: calibrate(Gaussian, PrivacyBudget(1.0, 1e-6), low=x),
    "calibrate, high": lambda x: calibrate(Gaussian, PrivacyBudget(1.0, 1e-6), high=x),
    "work_of": lambda x: work_of(Gaussian(2.0), most=x),
    "basic_composition": lambda x: basic_composition(x, 0.0, 2),
}


@pytest.mark.parametrize(
    "bad", [10**400, -(10**400), "1", "2.0", b"2", None, True, 2j, {}, "\ud800"], ids=ascii
)
@pytest.mark.parametrize("call", DOORS.values(), ids=DOORS)
def test_what_is_no_number_is_refused_in_one_line(call: Any, bad: Any) -> None:
    with pytest.raises(ParameterError) as error:
        call(bad)
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()


def test_numbers_of_every_kind_pass_the_door() -> None:
    exact = delta_of(Gaussian(2.0), 1.0)
    kinds: list[Any] = [1, np.float32(1.0), np.int8(1), Fraction(1)]
    for one in kinds:
        assert delta_of(Gaussian(2.0), one) == exact
    orders: Any = [2, Fraction(5, 2), 2**70]
    assert renyi_of(Gaussian(2.0), orders) == pytest.approx([0.25, 0.3125, 2**67], rel=1e-9)
    with pytest.raises(ParameterError, match="orders must be an array of numbers"):
        renyi_of(Gaussian(2.0), [[2.0], [2.0, 3.0]])
