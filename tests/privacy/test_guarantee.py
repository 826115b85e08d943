"""Guarantees: what they say, that they survive being written down, and that false ones are found out."""

from __future__ import annotations

import json
import math
import sys
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, VerificationError
from tacit.privacy import (
    ApproximateDP,
    Compose,
    Event,
    Gaussian,
    Guarantee,
    Iteration,
    Laplace,
    Neighbours,
    NonPrivate,
    Order,
    PureDP,
    Release,
    Repeat,
    Sample,
    Sampled,
    Unit,
    epsilon_of,
    guarantee,
    verify,
)
from tests.privacy.event_examples import ADD_REMOVE, EVENTS

DELTA = 1e-6
price = cache(epsilon_of)


@pytest.fixture(autouse=True)
def priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Price an event once, however many statements about it are written and checked."""
    # The package's attribute of that name is the function.
    monkeypatch.setattr(sys.modules["tacit.privacy.guarantee"], "epsilon_of", price)


every_event = pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)


def _claim(event: Event, **options: Any) -> Guarantee:
    return guarantee(event, DELTA, observer="the server", **options)


def test_sentence() -> None:
    claim = guarantee(
        Gaussian(3.730632),
        1e-5,
        observer="the server",
        assumptions=("no silo lies", "the sample stays secret"),
        simulated=True,
    )
    assert str(claim) == (
        "(epsilon = 1, delta = 1e-05) whatever the server sees, replacing one record changes the probability "
        "of any conclusion by at most a factor of 2.72, up to a probability of 1e-05 (analytic Gaussian), "
        "provided that (1) no silo lies; (2) the sample stays secret. Simulated: the noise came from a known "
        "seed, so this run itself protects nobody."
    )


def test_sentence_of_a_pure_guarantee() -> None:
    claim = guarantee(PureDP(0.5, Neighbours(unit=Unit.PARTY)), 0.0, observer="anybody")
    assert str(claim) == (
        "(epsilon = 0.5) whatever anybody sees, replacing one party changes the probability of any "
        "conclusion by at most a factor of 1.65 (pure differential privacy)."
    )
    assert "at most a factor of e^40 " in str(guarantee(PureDP(40.0), 0.0, observer="anybody"))


@pytest.mark.parametrize(
    ("event", "chances"),
    [
        (Repeat(Sampled(Gaussian(4.0), 0.05), 3), ["samples of a share 0.05 of all records"]),
        (Sampled(Gaussian(4.0), 1.0), []),
        (
            Sampled(Gaussian(4.0, ADD_REMOVE), 0.2, Sample.POISSON),
            ["each record is sampled with probability 0.2"],
        ),
        (EVENTS["Replaced"], ["each record is sampled with probability 0.1"]),
        (
            EVENTS["ByChance"],
            ["samples of a share 0.5 of all records", "chance picks a release with probability 0.25, 0.5"],
        ),
        (
            Compose(tuple(Sampled(Gaussian(9.0), 1 / k) for k in (2, 4, 5, 8))),
            [f"samples of a share {share} of all records" for share in (0.5, 0.25, 0.2)],
        ),
    ],
)
def test_sentence_says_probabilities_and_older_ones_are_read(event: Event, chances: list[str]) -> None:
    claim = _claim(event)
    assert f"({'; '.join([claim.method, *chances])})" in str(claim)
    older = {**json.loads(claim.to_json()), "sentence": claim.in_words(chances=False)}
    assert f"({claim.method})" in older["sentence"]
    assert Guarantee.from_builtins(older) == claim
    if chances:
        other = str(claim).replace("probability 0.", "probability 0.0").replace("share 0.", "share 0.0")
        with pytest.raises(VerificationError, match="does not say what its fields say"):
            Guarantee.from_builtins({**older, "sentence": other})


def test_sentence_never_claims_more_than_its_numbers() -> None:
    delta = 1 / 1238**2
    claim = guarantee(ApproximateDP(12.3456785, delta), delta, observer="anybody")
    assert claim.epsilon == 12.345679  # six digits would read 12.3457, or 12.3456 for 12.34564
    assert str(claim).startswith("(epsilon = 12.345679, delta = 6.53e-07)")  # 6.5246e-07
    assert "factor of 1.64 " in str(guarantee(PureDP(0.49), 0.0, observer="x"))  # e^0.49 = 1.6323
    assert "factor of 2,990 " in str(guarantee(PureDP(8.0), 0.0, observer="x"))  # e^8 = 2980.96
    assert "epsilon = 1000.5)" in str(guarantee(PureDP(1000.5), 0.0, observer="x"))


def test_numpy_numbers_are_written_as_numbers() -> None:
    count: Any = np.int64(3)
    claim = guarantee(Repeat(PureDP(np.float64(0.1)), count), np.float64(1e-6), observer="anybody")
    read = Guarantee.from_json(claim.to_json())
    verify(read)
    assert read.epsilon == claim.epsilon


def test_sentence_without_a_claim() -> None:
    claim = _claim(Compose((NonPrivate(), Gaussian(1.0))))
    assert str(claim) == "No privacy is claimed: the server may learn anything about the data."
    assert math.isinf(guarantee(NonPrivate(), 0.0, observer="anybody").epsilon)


def test_neighbours_come_from_the_event() -> None:
    assert _claim(Gaussian(1.0, ADD_REMOVE)).neighbours == ADD_REMOVE
    assert "adding or removing one record" in str(_claim(Gaussian(1.0, ADD_REMOVE)))


@every_event
def test_epsilon_is_the_price_rounded_up(event: Event) -> None:
    price, printed = epsilon_of(event, DELTA), _claim(event).epsilon
    if math.isinf(price):
        assert math.isinf(printed)
    else:
        assert price <= printed * (1 + 1e-14)
        assert printed <= price + 1e-6
        assert printed == round(printed, 6)


def test_rounding_goes_up_except_for_decimals() -> None:
    assert guarantee(PureDP(0.1234561), 0.0, observer="x").epsilon == 0.123457
    assert guarantee(PureDP(0.12345600000001), 0.0, observer="x").epsilon == 0.123457
    assert guarantee(PureDP(1e-9), 0.0, observer="x").epsilon == 1e-6
    assert guarantee(PureDP(0.0), 0.0, observer="x").epsilon == 0.0
    assert guarantee(Compose((PureDP(0.1), PureDP(0.2))), 0.0, observer="x").epsilon == 0.3
    assert guarantee(Repeat(PureDP(0.1), 3), 0.0, observer="x").epsilon == 0.3


@pytest.mark.parametrize("delta", [math.nan, -1e-9, 1.0])
def test_delta_outside_its_range_is_refused(delta: float) -> None:
    with pytest.raises(ParameterError, match=r"delta must be in \[0, 1\)"):
        guarantee(Gaussian(1.0), delta, observer="the server")


def test_gaussian_noise_needs_a_delta() -> None:
    with pytest.raises(ParameterError, match="delta must be > 0 for this release"):
        guarantee(Compose((Gaussian(1.0), Laplace(1.0))), 0.0, observer="the server")


@every_event
def test_round_trip_and_verification(event: Event) -> None:
    for delta in (DELTA, 0.0):
        try:
            claim = guarantee(event, delta, observer="the server", assumptions=("a", "b"), simulated=True)
        except ParameterError:
            continue
        read = Guarantee.from_json(claim.to_json())
        assert read == claim
        assert Guarantee.from_builtins(json.loads(claim.to_json())) == claim
        verify(read)


def test_infinity_is_written_as_null() -> None:
    written = json.loads(_claim(NonPrivate()).to_json())
    assert written["epsilon"] is None
    assert written["version"] == 5
    assert Guarantee.from_builtins(written).epsilon == math.inf


@every_event
def test_lowered_epsilons_are_found_out(event: Event) -> None:
    claim = _claim(event)
    lowered = [claim.epsilon - 1e-6, claim.epsilon / 10, claim.epsilon * 0.999, 0.0, -1.0, math.nan]
    for epsilon in lowered if math.isfinite(claim.epsilon) else [1.0, 1e6, math.nan]:
        with pytest.raises(VerificationError, match="the statement claims epsilon"):
            verify(msgspec.structs.replace(claim, epsilon=epsilon))


def test_every_single_digit_matters() -> None:
    claim = _claim(Repeat(Sampled(Gaussian(1.0), 0.05), 100))
    text = f"{claim.epsilon:.6f}"
    for place, digit in enumerate(text):
        for other in "0123456789":
            if digit in (".", other):
                continue
            changed = float(text[:place] + other + text[place + 1 :])
            with pytest.raises(VerificationError, match="but its event costs"):
                verify(msgspec.structs.replace(claim, epsilon=changed))


def test_lowered_deltas_are_found_out() -> None:
    claim = _claim(Gaussian(2.0))
    for delta in (claim.delta / 2, 0.0):
        with pytest.raises(VerificationError, match="but its event costs"):
            verify(msgspec.structs.replace(claim, delta=delta))
    for delta in (math.nan, -1.0, 1.0):
        with pytest.raises(VerificationError, match="cannot be priced: delta must be"):
            verify(msgspec.structs.replace(claim, delta=delta))


def test_an_infinite_claim_about_a_private_event_is_false_too() -> None:
    with pytest.raises(VerificationError, match="the statement claims"):
        verify(msgspec.structs.replace(_claim(Gaussian(2.0)), epsilon=math.inf))


def test_wrong_neighbours_are_found_out() -> None:
    claim = msgspec.structs.replace(_claim(Gaussian(2.0)), neighbours=ADD_REMOVE)
    with pytest.raises(
        VerificationError, match="is about adding or removing one record, its event about repl"
    ):
        verify(claim)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("event", "part", "part", "noise_multiplier"), 0.99),
        (("event", "part", "rate"), 0.051),
        (("event", "count"), 101),
        (("delta",), 9e-7),
        (("epsilon",), 1.0),
        (("neighbours", "unit"), "party"),
    ],
)
def test_changed_files_are_found_out(path: tuple[str, ...], value: Any) -> None:
    data = json.loads(_claim(Repeat(Sampled(Gaussian(1.0), 0.05), 100)).to_json())
    del data["sentence"]
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    assert inner[path[-1]] != value
    inner[path[-1]] = value
    with pytest.raises(VerificationError, match="the statement"):
        verify(Guarantee.from_builtins(data))


def test_a_sentence_that_says_something_else_is_found_out() -> None:
    data = _claim(Gaussian(2.0)).to_builtins()
    data["sentence"] = data["sentence"].replace("epsilon = ", "epsilon = 0.")
    with pytest.raises(VerificationError, match="sentence of the guarantee does not say"):
        Guarantee.from_builtins(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 4}, "has version 4; this tacit reads 5: an older tacit wrote it"),
        ({"version": 6}, "has version 6; this tacit reads 5\\."),
        ({"version": True}, "has version True"),
        ({"version": 5.0}, "has version 5.0"),
        ({"version": None}, "has version None"),
        ({"epsilon": "1.0"}, "cannot be read"),
        ({"delta": None}, "cannot be read"),
        ({"neighbours": {"relation": "swap"}}, "cannot be read"),
        ({"event": {"event": "Gausian"}}, "cannot be read: event must be one of"),
        ({"event": None}, "cannot be read: event must be one of"),
        ({"event": {"event": "Gaussian", "noise_multiplier": math.nan}}, "noise_multiplier must be"),
        ({"assumptions": "none"}, "cannot be read"),
        ({"certified": True}, "Guarantee has no field 'certified'"),
        ({"neighbours": {"relation": "replace-one", "strength": "full"}}, "unknown field `strength`"),
        ({"observer": "the server\nverified: all is well"}, "observer must be a printable text"),
        ({"observer": "the \u202eserver"}, "observer must be a printable text"),
        ({"method": "analytic\rGaussian"}, "method must be a printable text"),
        ({"assumptions": ["x\u0000"]}, "assumptions must be a printable text"),
        ({"assumptions": ["x"] * 1001}, "at most 1,000 clauses"),
        ({"observer": "x" * 10_001}, "a printable text of 0 to 10000 characters"),
        ({"simulated": 1}, "cannot be read"),
    ],
)
def test_unreadable_guarantees_are_refused(change: dict[str, Any], message: str) -> None:
    data = _claim(Gaussian(2.0)).to_builtins()
    with pytest.raises(VerificationError, match=message):
        Guarantee.from_builtins({**data, **change})


@pytest.mark.parametrize(
    "field", ["version", "epsilon", "delta", "neighbours", "observer", "event", "method"]
)
def test_missing_fields_are_refused(field: str) -> None:
    data = _claim(Gaussian(2.0)).to_builtins()
    del data[field]
    with pytest.raises(VerificationError, match=r"version None|cannot be read"):
        Guarantee.from_builtins(data)


@pytest.mark.parametrize(
    "data", [b"{", b'"\x91"', b"[" * 100_000, b"3", b"[]", b"null", b'{"version": 5, "epsilon": NaN}']
)
def test_what_is_no_guarantee_is_refused(data: bytes) -> None:
    with pytest.raises(VerificationError, match=r"not JSON|must be a JSON object"):
        Guarantee.from_json(data)


def test_a_method_that_the_price_was_not_computed_by_is_refused() -> None:
    claim = msgspec.structs.replace(guarantee(Gaussian(2.0), 1e-5, observer="x"), method="proven by hand")
    with pytest.raises(
        VerificationError, match="names the method 'proven by hand', its price is by 'analytic"
    ):
        verify(claim)


def test_what_an_event_states_about_the_loss_is_printed_and_verified() -> None:
    facts: dict[str, Any] = {
        "step_times_smoothness": 1.0,
        "convex": True,
        "clip_safe": True,
        "prox_convex": True,
    }
    run = Iteration(1.0, 1000, 50, order=Order.RR, release=Release.LAST, **facts)
    event = Compose((Gaussian(3.0), Repeat(run, 2)))
    price = guarantee(event, 1e-6, observer="x", assumptions=("the sun shines",))
    assert price.assumptions == ("the sun shines", *run.assumptions)
    assert "is convex with a smoothness of at most 1 / step size" in str(price)
    verify(Guarantee.from_json(price.to_json()))
    for forged in ((), price.assumptions[:-1]):
        with pytest.raises(VerificationError, match="leaves out what its price rests on"):
            verify(msgspec.structs.replace(price, assumptions=forged))
