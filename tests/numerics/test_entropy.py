from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.numerics import binary_entropy, binary_entropy_inv, hadamard_blocks


@pytest.mark.parametrize(
    ("bits", "p"),
    [
        (0.001, 6.5153e-5),
        (0.01, 0.000860208),
        (0.1, 0.012986862),
        (0.3, 0.053239041),
        (0.5, 0.110027864),
        (0.6, 0.146102403),
        (0.7, 0.189297705),
        (0.8, 0.243003854),
        (0.9, 0.316019346),
        (1.0, 0.5),
        (0.0, 0.0),
    ],
)
def test_the_coin_of_an_entropy(bits: float, p: float) -> None:
    assert binary_entropy_inv(bits) == pytest.approx(p, rel=1e-5)
    assert binary_entropy(binary_entropy_inv(bits)) == pytest.approx(bits, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "bits"),
    [
        (0.1, 0.998198883),
        (0.5, 0.956286539),
        (0.8, 0.893202913),
        (1, 0.839941538),
        (2, 0.527065341),
        (3, 0.275359947),
        (5, 0.057966914),
        # Where the entropy of randomized response is a given number of bits.
        (1.765503507, 0.6),
        (1.454579966, 0.7),
        (0.772126199, 0.9),
    ],
)
def test_the_entropy_of_randomized_response(epsilon: float, bits: float) -> None:
    assert binary_entropy(1 / (1 + math.exp(-epsilon))) == pytest.approx(bits, abs=6e-10)


@pytest.mark.parametrize("bits", [1e-300, 1e-30, 1e-12])
def test_tiny_entropies(bits: float) -> None:
    assert binary_entropy(binary_entropy_inv(bits)) == pytest.approx(bits, rel=1e-9)


def test_ends_and_bad_input() -> None:
    assert binary_entropy(0) == binary_entropy(1) == 0
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="p must be in"):
            binary_entropy(wrong)
        with pytest.raises(ParameterError, match="bits must be in"):
            binary_entropy_inv(wrong)


@pytest.mark.parametrize(
    ("symbols", "epsilon", "shape"),
    [
        (3, math.log(3), (2, 4)),
        (7, 1.0, (2, 8)),
        (10, 1.0, (2, 8)),
        (10, 3.0, (16, 2)),
        (100, 1.0, (2, 64)),
        (100, 4.0, (32, 8)),
        (1000, 1.0, (2, 512)),
        (1000, 5.0, (128, 16)),
        (7, 0.5, (1, 8)),
        (2, 1e6, (2, 2)),
    ],
)
def test_blocks_of_hadamard_response(symbols: int, epsilon: float, shape: tuple[int, int]) -> None:
    assert hadamard_blocks(symbols, epsilon) == shape
    blocks, dim = shape
    assert blocks * (dim - 1) >= symbols > blocks * (dim // 2 - 1)


def test_blocks_refuse_bad_input() -> None:
    with pytest.raises(ParameterError, match="symbols must be a whole number from 2"):
        hadamard_blocks(1, 1.0)
    with pytest.raises(ParameterError, match="epsilon must be a finite number > 0"):
        hadamard_blocks(4, 0.0)
