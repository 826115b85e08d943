"""Earlier bounds: printed values, and refusal of what their theorems do not cover."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.literature.shuffling import baselines, lemmas
from tacit.literature.shuffling.closed_forms import simplified_renyi
from tacit.literature.shuffling.lower import shuffle_delta_lower, shuffle_epsilon_lower
from tacit.literature.shuffling.upper import shuffle_renyi
from tacit.privacy import Compose, Repeat, Sampled, Shuffled, epsilon_of, renyi_to_epsilon
from tacit.privacy.shuffling.pair import ShuffledPair


@pytest.mark.parametrize(
    ("e", "n", "wanted"),
    [
        (0.5, 10**3, (0.0582675, 0.0705235, 0.0909475)),
        (0.5, 10**4, (0.0162053, 0.0204015, 0.0272378)),
        (0.5, 10**6, (0.00110517, 0.00161909, 0.00240034)),
        (1.0, 10**3, (0.154047, 0.182412, 0.230556)),
        (1.0, 10**4, (0.0434403, 0.0530053, 0.0688804)),
        (1.0, 10**6, (0.00319289, 0.00433452, 0.00612548)),
        (2.0, 10**3, (0.467369, 0.545498, 0.683988)),
        (2.0, 10**4, (0.130479, 0.155045, 0.196624)),
        (2.0, 10**6, (0.0101067, 0.0129584, 0.0175589)),
        (4.0, 10**5, (0.143138, 0.169770, 0.214928)),
        (4.0, 10**6, (0.0403245, 0.0493071, 0.0641968)),
    ],
)
def test_clones_epsilons_agree_with_the_spec(e: float, n: int, wanted: tuple[float, ...]) -> None:
    for delta, value in zip((1e-5, 1e-6, 1e-8), wanted, strict=True):
        found = baselines.clones_epsilon(e, n, delta)
        # six digits; from a million parties on, groups move epsilon by up to 1e-5 of itself
        assert found == pytest.approx(value, rel=6e-6 if n < 10**6 else 2e-5)
        pair = ShuffledPair.randomized_response(e, n, blanket=math.exp(-e))
        assert float(pair.delta(found)) <= delta  # the safe end
        assert shuffle_epsilon_lower(e, n, delta) < found


def test_clones_epsilon_is_inside_the_bracket_of_the_public_reference() -> None:
    assert 0.167539 < baselines.clones_epsilon(4.0, 10**5, 1e-6) < 0.172791


def test_efm19() -> None:
    assert baselines.efm19_epsilon(0.4, 1000, 1e-5) == pytest.approx(0.515032, abs=5e-7)
    for bad in ((0.5, 1000, 1e-5), (0.4, 999, 1e-5), (0.4, 1000, 0.01)):
        with pytest.raises(ParameterError, match="proven for local_epsilon < 1/2"):
            baselines.efm19_epsilon(*bad)
    wanted = {0.5: 0.0124384204, 1: 0.644802501, 2: 486.731271, 3: 237138.757}
    for e, value in wanted.items():
        assert baselines.efm19_renyi(e, 1000, 2.0).item() == pytest.approx(value, rel=6e-9)
        assert baselines.efm19_renyi(e, 10_000, 20.0).item() == pytest.approx(value, rel=6e-9)
        assert np.all(baselines.efm19_renyi(e, 1000, [2.0, 9.0]) > shuffle_renyi(e, 1000, [2.0, 9.0]))


@pytest.mark.parametrize(
    ("n", "e", "delta", "wanted"),
    [
        (1000, 0.5, 1e-6, 0.2726376092),
        (10**4, 1.0, 1e-6, 0.2140256519),
        (10**6, 1.0, 1e-6, 0.0234967749),
        (10**6, 3.0, 1e-6, 0.1192726321),
        (1000, 0.5, 1e-5, 0.253842),
        (1000, 1.0, 1e-5, 0.531987),
    ],
)
def test_fmt22_closed_form(n: int, e: float, delta: float, wanted: float) -> None:
    assert baselines.fmt22_epsilon(e, n, delta) == pytest.approx(wanted, abs=6e-7 if delta == 1e-5 else 6e-11)
    assert baselines.fmt22_epsilon(e, n, delta) > baselines.clones_epsilon(e, n, delta)


@pytest.mark.parametrize(
    ("n", "e", "wanted", "cap"),
    [
        (1000, 0.5, 0.1554089143, 2.152568),
        (10**4, 1.0, 0.1189648555, 4.456053),
        (10**6, 1.0, 0.0118826146, 9.061322),
        (10**6, 3.0, 0.0632869156, 9.061322),
    ],
)
def test_artanh_form_is_half_the_closed_form_and_reaches_further(
    n: int, e: float, wanted: float, cap: float
) -> None:
    delta = 1e-6
    found = baselines.clones_artanh_epsilon(e, n, delta)
    assert found == pytest.approx(wanted, abs=6e-11)
    assert baselines.clones_epsilon(e, n, delta) < found < 0.6 * baselines.fmt22_epsilon(e, n, delta)
    assert cap > baselines.fmt22_largest_level(n, delta) + 0.69
    last = baselines.fmt22_largest_level(n, delta) * (1 - 1e-9)
    assert baselines.clones_artanh_epsilon(last, n, delta) < 1.07 * baselines.fmt22_epsilon(last, n, delta)
    with pytest.raises(ParameterError, match="parties"):
        baselines.clones_artanh_epsilon(cap + 2e-6, n, delta)
    for level in np.linspace(0.1, cap - 1e-6, 9).tolist():
        # Near the cap an argument of 1 or more proves nothing, and neither does more than the level.
        try:
            proven = baselines.clones_artanh_epsilon(level, n, delta)
        except ParameterError as refused:
            assert "< 1, E = e^local_epsilon" in str(refused)  # noqa: PT017 - either is right
            continue
        assert baselines.clones_epsilon(level, n, delta) < proven <= level


@pytest.mark.parametrize(
    "bound", [baselines.clones_artanh_epsilon, baselines.fmt22_epsilon, baselines.efm19_epsilon]
)
def test_parties_are_no_more_than_one_can_count(bound: Callable[[float, int, float], float]) -> None:
    with pytest.raises(ParameterError, match="parties must be"):
        bound(0.3, 10**400, 1e-6)


def test_fmt22_refuses_what_is_not_proven_and_never_exceeds_the_local_level() -> None:
    with pytest.raises(ParameterError, match=r"= 1\.63"):
        baselines.fmt22_epsilon(2.0, 1000, 1e-5)
    limit = baselines.fmt22_largest_level(1000, 1e-5)
    assert baselines.fmt22_epsilon(limit, 1000, 1e-5) <= limit
    assert baselines.fmt22_epsilon(0.0, 1000, 1e-5) == 0.0


@pytest.mark.parametrize(
    ("e", "records", "silos", "epsilon", "limit", "delta"),
    [
        (1.0, 1, 1000, 0.56620149, 1.460421, 1.005523e-6),
        (0.1, 10, 1000, 0.079116814, 0.1460421, 1.102434e-6),
        (0.01, 100, 1000, 0.0082061034, 0.01460421, 2.080929e-6),
    ],
)
def test_silo_form(e: float, records: int, silos: int, epsilon: float, limit: float, delta: float) -> None:
    price = baselines.fmt22_silo_epsilon(e, silos, records, 1e-6, local_delta=1e-12)
    assert price.epsilon == pytest.approx(epsilon, rel=1e-8)
    assert price.delta == pytest.approx(delta, rel=1e-6)
    assert baselines.fmt22_largest_level(silos, 1e-6, records=records) == pytest.approx(limit, rel=1e-6)
    with pytest.raises(ParameterError, match="proven for local_epsilon <="):
        baselines.fmt22_silo_epsilon(limit * 1.0001, silos, records, 1e-6)


def test_silo_form_is_the_classical_one_for_one_record() -> None:
    price = baselines.fmt22_silo_epsilon(0.5, 10_000, 1, 1e-6)
    assert price.epsilon == pytest.approx(0.093868162, rel=1e-8)
    assert price.epsilon == pytest.approx(baselines.fmt22_epsilon(0.5, 10_000, 1e-6))
    assert price.delta == pytest.approx(1e-6)
    # Without amplification, shuffling is post-processing.
    assert baselines.fmt22_silo_epsilon(1e-3, 300, 1, 0.1, local_delta=1e-9).epsilon <= 1e-3
    with pytest.raises(ParameterError, match="local_delta"):
        baselines.fmt22_silo_epsilon(0.1, 1000, 10, 1e-6, local_delta=1e-4)
    with pytest.raises(ParameterError, match="local_epsilon <="):
        baselines.fmt22_silo_epsilon(10.0, 1000, 100, 1e-6)


def test_blanket_with_hoeffding_bounds_randomized_response() -> None:
    for e, n in ((0.5, 1000), (1.0, 1000), (1.0, 10_000), (2.0, 10_000)):
        for delta in (1e-5, 1e-8):
            found = baselines.bbg19_epsilon(e, n, delta)
            assert shuffle_epsilon_lower(e, n, delta) < found <= e
            pair = ShuffledPair.randomized_response(e, n)
            assert float(pair.delta(found)) <= delta
    assert baselines.bbg19_epsilon(0.0, 10, 1e-5) == 0.0
    assert "O(" in baselines.BBG19_ORDER


def test_fmt23_is_loose_but_above_the_proofs_wherever_it_applies() -> None:
    for e in (0.05, 0.5, 1.0, 3.0, 8.0):
        for n in (200, 10_000, 10**6):
            limit = n / (16 * e * math.exp(e))
            orders = np.array([a for a in (1.5, 2, 5, 30, 300) if a <= limit])
            if orders.size:
                printed = baselines.fmt23_renyi(e, n, orders)
                assert np.all(shuffle_renyi(e, n, orders) <= 0.05 * printed)
            if limit > 1.5:
                with pytest.raises(ParameterError, match="orders <= parties"):
                    baselines.fmt23_renyi(e, n, limit * 1.001)
    # 48 a (E - 1)^2 / (n E), Girgis (2023), Lemma 3.3.2
    assert baselines.fmt23_renyi(1.0, 1000, 2.0).item() == pytest.approx(0.104271, rel=1e-5)
    assert baselines.fmt23_renyi(1.0, 1000, 22.0).item() == pytest.approx(1.146986, rel=1e-6)


def test_the_simplified_bound_of_lemma_3_3_1() -> None:
    a, e, n = 2.0, 0.5, 10**4
    found = simplified_renyi(e, n, a).item()
    assert found == pytest.approx(math.log1p(2 * a * (a - 1) * math.expm1(e) ** 2 / n), rel=1e-9)
    assert found <= 2 * a * math.expm1(e) ** 2 / n


def test_lemmas_print_what_they_prove() -> None:
    # Above what is true, by far (rho = 0.252863 against 4.80903e-5 at 16512 messages).
    assert lemmas.shuffle_bound(1.0, 16512, 2.0).item() / 2 == pytest.approx(0.252863, rel=1e-5)
    true = ShuffledPair.randomized_response(1.0, 16512).renyi([2.0]).item()
    assert true / 2 == pytest.approx(4.80903e-5, rel=1e-3)


@pytest.mark.parametrize(
    ("e", "each", "all_of"), [(0.5, 2.27783e-4, 3.0247), (1.0, 5.14452e-4, 4.8037), (2.0, 2.90872e-3, 13.503)]
)
def test_lemma_a8_with_the_constant_that_its_proof_needs(e: float, each: float, all_of: float) -> None:
    n = 16512
    orders = np.linspace(1.1, n / (32 * e) * math.exp(-e), 2000)
    found = lemmas.shuffle_bound(e, n, orders, variant="derived")
    assert found / orders == pytest.approx(np.where(orders < 2, 2 * each, each), rel=1e-5)
    clones = ShuffledPair.randomized_response(e, n, blanket=math.exp(-e))
    assert (found[::40] >= 5 * clones.renyi(orders[::40])).all()
    assert renyi_to_epsilon(orders, 999 * found, 1e-5).epsilon == pytest.approx(all_of, rel=1e-3)
    with pytest.raises(ParameterError, match="orders up to"):
        lemmas.shuffle_bound(e, n, 1.01 * orders[-1], variant="derived")
    with pytest.raises(ParameterError, match=r"from 0\.1 to 36"):
        lemmas.shuffle_bound(36.1, 10**20, 2.0, variant="derived")
    with pytest.raises(ParameterError, match="must be 2 or more"):  # where that of order 2 is not proven
        lemmas.shuffle_bound(e, math.floor(1.9 * 32 * e * math.exp(e)), 1.5, variant="derived")


@pytest.mark.parametrize(("rate", "constant", "all_of"), [(0.01, 36.8414, 0.4799), (0.1, 18.4207, 4.127)])
def test_lemma_a9_with_the_constant_that_its_proof_needs(rate: float, constant: float, all_of: float) -> None:
    n, rho = 16512, constant * math.e / 16512
    orders = np.arange(2.0, -math.log(rate) / (8 * rho))
    found = lemmas.subsampled_shuffle_bound(1.0, n, rate, orders, variant="derived")
    assert found / orders == pytest.approx(26 * rate**2 * rho, rel=1e-5)
    assert renyi_to_epsilon(orders, 500 * found, 1e-5).epsilon == pytest.approx(all_of, rel=1e-3)
    pair = Sampled(Compose((Shuffled(1.0, n, "2rr"),) * 2), rate)
    assert epsilon_of(Repeat(pair, 500), 1e-5) < all_of / 3  # at far fewer messages than the print needs
    with pytest.raises(ParameterError, match="orders up to"):
        lemmas.subsampled_shuffle_bound(1.0, n, rate, -1.01 * math.log(rate) / (8 * rho), variant="derived")
    for messages, level in ((math.floor(constant * math.e / 0.05), 1.0), (n, 0.05)):
        with pytest.raises(ParameterError, match=r"messages <= 0\.05|from 0\.1"):
            lemmas.subsampled_shuffle_bound(level, messages, rate, 2.0, variant="derived")


@pytest.mark.parametrize(("e", "n", "order"), [(0.99, 10**6, 2.0), (1.0, 100, 2.0), (1.0, 10**6, 1.9)])
def test_lemma_a8_refuses(e: float, n: int, order: float) -> None:
    with pytest.raises(ParameterError, match="local_epsilon >= 1 and orders from 2"):
        lemmas.shuffle_bound(e, n, order)


def test_conditions_of_the_subsampled_lemma() -> None:
    e, rate, messages = 1.0, 0.01, 200_000
    rho = 1536 * math.e / messages
    log_rate = math.log(100)
    found = lemmas.subsampled_shuffle_bound(e, messages, rate, 2.0).item()
    assert found == pytest.approx(26 * rate**2 * 2 * rho)
    # One sample for both shuffles halves the range of orders and of rho.
    half, full = log_rate / (8 * rho), log_rate / (4 * rho)
    lemmas.subsampled_shuffle_bound(e, messages, rate, half * 0.999)
    lemmas.subsampled_shuffle_bound(e, messages, rate, full * 0.999, variant="printed")
    with pytest.raises(ParameterError, match="orders from 2 to"):
        lemmas.subsampled_shuffle_bound(e, messages, rate, half * 1.001)
    between = math.ceil(1536 * math.e / 0.07)
    lemmas.subsampled_shuffle_bound(e, between, rate, 2.0, variant="printed")
    with pytest.raises(ParameterError, match=r"<= 0\.05"):
        lemmas.subsampled_shuffle_bound(e, between, rate, 2.0)
    # rho <= .1 needs 41753 messages at epsilon0 = 1: the paper's own experiment has 16512.
    lemmas.subsampled_shuffle_bound(e, 41753, rate, 2.0, variant="printed")
    with pytest.raises(ParameterError, match=r"<= 0\.1"):
        lemmas.subsampled_shuffle_bound(e, 41752, rate, 2.0, variant="printed")
    with pytest.raises(ParameterError, match=r"rate <= 0\.1"):
        lemmas.subsampled_shuffle_bound(e, messages, 0.2, 2.0)
    with pytest.raises(ParameterError, match="local_epsilon >= 1"):
        lemmas.subsampled_shuffle_bound(0.9, messages, rate, 2.0)
    with pytest.raises(ParameterError, match="local_epsilon log"):
        lemmas.subsampled_shuffle_bound(9.0, 10**9, 1e-12, 2.0)


def test_conditions_of_the_subsampled_gaussian_lemma() -> None:
    found = lemmas.subsampled_gaussian_bound(3.0, 0.05, 4.0).item()
    assert found == pytest.approx(6.5 * 0.0025 * 4 / 9)
    printed = lemmas.subsampled_gaussian_bound(3.0, 0.05, 4.0, variant="printed").item()
    assert printed == pytest.approx(found * 12 / 13)
    for std, rate, order in ((2.2, 0.05, 2.0), (3.0, 0.11, 2.0), (3.0, 0.05, 14.0)):
        with pytest.raises(ParameterError, match=r"rate <= 0\.1, std / sensitivity"):
            lemmas.subsampled_gaussian_bound(std, rate, order)


@pytest.mark.parametrize(
    ("n", "e", "claimed", "delta"),
    [
        (1000, 4.4604, 2.3648, 8.963e-6),
        (10_000, 6.7630, 2.3836, 1.498e-5),
        (100_000, 9.0656, 2.3855, 1.605e-5),
    ],
)
def test_fmt22_is_false_beyond_its_condition(n: int, e: float, claimed: float, delta: float) -> None:
    # Binary randomised response, all others hold 0, delta = 1e-6. Girgis (2023), (6.10) inverts the closed
    # form at every level; it holds up to ln(n / (16 ln(2 / delta))) only.
    assert e > baselines.fmt22_largest_level(n, 1e-6) + 2.9
    grown = math.exp(e)
    spread = 8 * math.sqrt(grown * math.log(4e6) / n) + 8 * grown / n
    there = math.log1p((grown - 1) / (grown + 1) * spread)
    assert there == pytest.approx(claimed, abs=1e-4)
    found = shuffle_delta_lower(e, n, there)
    assert found == pytest.approx(delta, rel=2e-3)
    assert found > 8e-6
    assert baselines.clones_epsilon(e, n, 1e-6) > there


@pytest.mark.parametrize(
    ("e", "bits", "any_randomizer"),
    [(0.5, 0.06269, 0.0705235), (1.0, 0.14867, 0.1824123), (2.0, 0.39709, 0.5454980)],
)
def test_one_randomized_bit_costs_less_than_is_proven_for_any_message(
    e: float, bits: float, any_randomizer: float
) -> None:
    # At n = 1000, delta = 1e-6. Some tools print the first number, blanket 2 / (E + 1), for every randomizer.
    assert epsilon_of(Shuffled(e, 1000, "2rr"), 1e-6) == pytest.approx(bits, abs=6e-6)
    assert epsilon_of(Shuffled(e, 1000), 1e-6) == pytest.approx(any_randomizer, rel=1e-5)


def test_the_orders_of_a_sampled_gaussian_count_its_sensitivity() -> None:
    # Anonymous, proof of Theorem 4.1: means of B_2 gradients, S = 2 / B_2, so orders end at
    # (sigma B_2)^2 ln(1 / gamma) / 8, not / 2.
    batch, std, rate = 4.0, 1.5, 0.05
    limit = (std * batch) ** 2 * math.log(1 / rate) / 8
    lemmas.subsampled_gaussian_bound(std, rate, 0.999 * limit, sensitivity=2 / batch)
    for order in (1.001 * limit, 4 * limit):
        with pytest.raises(ParameterError, match=f"orders up to {limit:.6g}"):
            lemmas.subsampled_gaussian_bound(std, rate, order, sensitivity=2 / batch)


def test_lemma_a8_holds_up_to_its_largest_order() -> None:
    limit = 10**6 / 32 * math.exp(-1.0)
    assert lemmas.shuffle_bound(1.0, 10**6, limit).item() == pytest.approx(1536 / 32)
    with pytest.raises(ParameterError, match="orders from 2"):
        lemmas.shuffle_bound(1.0, 10**6, math.nextafter(limit, math.inf))
