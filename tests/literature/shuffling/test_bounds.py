"""The registry of bounds: the settings of Girgis (2023), Section 5.5, and proofs above what is true."""

from __future__ import annotations

import pytest

from tacit.errors import ParameterError
from tacit.literature.shuffling.bounds import BOUNDS

NAMED = {bound.name: bound for bound in BOUNDS}


@pytest.mark.parametrize(
    ("name", "at", "wanted"),
    [
        ("thesis bound 1", (0.5, 10**6, 1e-8, 10**5, 1.0), 1.63983),
        ("clones, optimal composition", (0.5, 10**6, 1e-8, 10**5, 1.0), 7.32916),
        ("clones, strong composition", (0.5, 10**6, 1e-8, 10**5, 1.0), 8.9877),
        ("Erlingsson et al. (2019), Rényi", (0.5, 10**6, 1e-8, 10**5, 1.0), 6.8962),
        ("randomized response on equal data, Rényi", (0.5, 10**6, 1e-8, 10**5, 1.0), 0.85542),
        ("thesis bound 1", (0.5, 10**6, 1e-8, 10**4, 1.0), 0.511164),
        ("clones, optimal composition", (0.5, 10**6, 1e-8, 10**4, 1.0), 1.953933),
        ("Erlingsson et al. (2019), Rényi", (0.5, 10**6, 1e-8, 10**4, 1.0), 1.97447),
        ("thesis bound 1", (2.0, 10**6, 1e-8, 10**4, 1.0), 6.423584),
        ("clones, optimal composition", (2.0, 10**6, 1e-8, 10**4, 1.0), 16.943511),
        ("Erlingsson et al. (2019), Rényi", (2.0, 10**6, 1e-8, 10**4, 1.0), 2853.7),
        ("thesis bound 1", (2.0, 10**6, 1e-8, 5, 1.0), 0.218602),
        ("clones, optimal composition", (2.0, 10**6, 1e-8, 5, 1.0), 0.095165),
        ("thesis subsampled bound", (2.0, 1000, 1e-8, 10**5, 1e-3), 1.040219),
        ("clones, optimal composition", (2.0, 1000, 1e-8, 10**5, 1e-3), 2.213715),
        ("thesis bound 1, general subsampling", (2.0, 1000, 1e-8, 10**5, 1e-3), 1.023663),
        ("thesis subsampled bound", (1.0, 10_000, 1e-8, 10**5, 1e-3), 0.076399),
        ("clones, optimal composition", (1.0, 10_000, 1e-8, 10**5, 1e-3), 0.132392),
        ("thesis bound 1, general subsampling", (1.0, 10_000, 1e-8, 10**5, 1e-3), 0.350993),
    ],
)
def test_recomputed_columns(name: str, at: tuple[float, int, float, int, float], wanted: float) -> None:
    assert NAMED[name].epsilon(*at) == pytest.approx(wanted, rel=0.01)


CASES = [
    (0.4, 2000, 1e-6, 1, 1.0),
    (1.0, 10**4, 1e-6, 1, 1.0),
    (1.0, 10**4, 1e-6, 50, 0.05),
    (4.0, 500, 1e-5, 3, 1.0),
]


@pytest.mark.parametrize("at", CASES)
def test_no_proof_is_below_the_lower_bound(at: tuple[float, int, float, int, float]) -> None:
    lower = NAMED["randomized response on equal data, one round"].epsilon(*at)
    proofs = 0
    for bound in BOUNDS:
        try:
            epsilon = bound.epsilon(*at)
        except ParameterError:
            continue
        assert epsilon >= 0
        if bound.status == "proof":
            proofs += 1
            assert epsilon >= lower, bound.name
    assert proofs >= 4


def test_conditions_are_refused() -> None:
    for name, at, said in (
        ("Erlingsson et al. (2019)", (0.5, 2000, 1e-6, 1, 1.0), "local_epsilon < 1/2"),
        ("thesis bound 1, simplified", (3.0, 2000, 1e-6, 1, 1.0), "parties / 9"),
        ("clones closed form, optimal composition", (3.0, 2000, 1e-6, 1, 1.0), "local_epsilon <="),
        ("clones artanh form, optimal composition", (3.0, 2000, 1e-6, 1, 1.0), "local_epsilon <="),
        ("Feldman et al. (2023)", (5.0, 100, 1e-6, 1, 1.0), "orders <="),
        ("printed lemma, constant 1536", (0.9, 10**6, 1e-6, 1, 1.0), "local_epsilon >= 1"),
        ("printed lemma, two shuffles of a sample", (1.0, 100, 1e-6, 1, 0.05), "1536"),
        ("thesis bound 1", (1.0, 100, 1e-6, 1, 0.5), "sample_rate must be 1"),
        ("thesis subsampled bound", (1.0, 100, 1e-6, 1, 1.0), "sample_rate must be below 1"),
    ):
        with pytest.raises(ParameterError, match=said):
            NAMED[name].epsilon(*at)


def test_names_and_arguments_are_checked() -> None:
    names = [bound.name for bound in BOUNDS]
    assert len(set(names)) == len(names)
    assert {bound.status for bound in BOUNDS} == {"proof", "lower bound", "paper only"}
    assert all(bound.note for bound in BOUNDS)
    for changed, message in (((-1.0, 10, 1e-5, 1, 1.0), "local_epsilon"), ((1.0, 0, 1e-5, 1, 1.0), "parties"),
                             ((1.0, 10, 0.0, 1, 1.0), "delta"), ((1.0, 10, 1e-5, 0, 1.0), "rounds"),
                             ((1.0, 10, 1e-5, 1, 0.0), "sample_rate")):  # fmt: skip
        with pytest.raises(ParameterError, match=message):
            BOUNDS[0].epsilon(*changed)
