"""No accepted plan makes a silo write an answer that it cannot hold, store or send."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Fixed, Measure, Plan, Poisson, Server, Silo, Step
from tacit.federation.answers import answer_bytes
from tacit.federation.limits import MOST_ANSWERED, MOST_HELD, MOST_NUMBERS, MOST_POOLED
from tacit.means import (
    AdditiveMean,
    BinomialMean,
    BitplaneMean,
    DiscreteGaussianNoise,
    LaplaceNoise,
    NoisyMinimum,
    PrivUnitMean,
    RandProjSpatial,
    RotatedMean,
    SampledBinaryMean,
)
from tacit.privacy import PrivacyBudget, TrustModel
from tests.contract.mean_cases import ESTIMATORS
from tests.federation import bounded_worker
from tests.federation.world import Rows, ledger_at, rows

ROOT = Path(__file__).parents[2]
SHUFFLE, CENTRAL = TrustModel.SHUFFLE, TrustModel.CENTRAL
N = 20


def plan(estimator: Any, *, batch: Any = None, rounds: int = 1, measures: int = 1) -> Plan:
    shuffled, mixed = estimator.trust is SHUFFLE, estimator.trust in (SHUFFLE, TrustModel.AGGREGATE)
    one = Measure(statistic="row", estimator=estimator, max_radius=1.0)
    kind = Step(
        measures=(one,) * measures,
        **({} if batch is None else {"batch": batch}),
        honest=20 if shuffled else 0,
    )
    return Plan(
        steps=((kind, rounds),), parties=2, trust=estimator.trust, delta=1e-6, n_min=2 if mixed else 0
    )


def silo(**fields: Any) -> Silo:
    return Silo(Rows(rows(1, N)), {"row": lambda units, _: units.values}, trusts_shuffler=True, **fields)


BYTES = f"must have at most {MOST_ANSWERED} bytes"
POOLED = f"must have at most {MOST_POOLED} bytes"
HELD = f"must take at most {MOST_HELD} numbers"
ROWS = f"batch x dim must be at most {MOST_NUMBERS}"
LEVELS = (1.0,) * 16

TOO_LARGE: dict[str, tuple[Any, dict[str, Any], str]] = {
    "noise bits": (BinomialMean(dim=3, noise_bits=2**31 - 1, resolution=1), {}, BYTES),
    "grid steps": (BinomialMean(dim=3, noise_bits=1, resolution=2**31 - 1), {}, BYTES),
    "coordinates of ones": (BinomialMean(dim=2**25, noise_bits=20, resolution=1), {}, BYTES),
    "bits of a count": (BinomialMean(dim=1, noise_bits=2**31 - 1, resolution=2**31 - 1), {}, BYTES),
    "bits of a small batch": (
        BinomialMean(dim=3, noise_bits=2**31 - 1, resolution=1),
        {"batch": Fixed(size=2)},
        BYTES,
    ),
    "many statistics": (
        BinomialMean(dim=3, noise_bits=2**20, resolution=1),
        {"measures": 100},
        BYTES,
    ),
    "reports of floats": (
        PrivUnitMean.calibrated(dim=2**23, budget=PrivacyBudget(1.0), n=N),
        {},
        BYTES,
    ),
    "symbols of planes": (
        BitplaneMean(dim=2**23, samples=2**16, local_epsilons=LEVELS),
        {"measures": 10},
        HELD,
    ),
    "shuffled symbols of planes": (
        BitplaneMean(dim=2**23, samples=2**16, local_epsilons=LEVELS, trust=SHUFFLE),
        {"measures": 10},
        BYTES,
    ),
    "a map that is a matrix": (
        RandProjSpatial(dim=2**16, k=2**16, projection="haar", noise=DiscreteGaussianNoise(5.0)),
        {},
        HELD,
    ),
    "a sum": (AdditiveMean(dim=2**31, noise=DiscreteGaussianNoise(5.0)), {}, BYTES),
    "copies of a sum": (AdditiveMean(dim=2**26, noise=DiscreteGaussianNoise(5.0, steps=8)), {}, HELD),
    "a sample": (AdditiveMean(dim=2**31, noise=DiscreteGaussianNoise(5.0)), {"batch": Poisson(0.1)}, BYTES),
    "rows in an L1 ball": (AdditiveMean(dim=2**28, noise=LaplaceNoise(5.0)), {}, "must"),
    "exact rows": (NoisyMinimum(dim=2**26, strength=5.0, tolerance=1e-3, trust=CENTRAL), {}, POOLED),
    "one symbol of very long rows": (
        SampledBinaryMean(dim=2**28, samples=1, local_epsilon=1.0),
        {},
        "must",
    ),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_an_answer_that_is_too_large_is_refused_before_anything_is_spent(case: str, tmp_path: Path) -> None:
    mean, fields, message = TOO_LARGE[case]
    made = plan(mean, **fields)
    central = made.trust is CENTRAL
    with ledger_at(tmp_path / "l", epsilon=1e9) as ledger:
        one = silo(ledger=None if central else ledger, trusts_server=True)
        for asked in (one.consider, one.accept):
            with pytest.raises(ParameterError, match=message) as error:
                asked(made)
            assert str(error.value).isprintable()
        assert not ledger.entries()
    with pytest.raises(ParameterError, match=message):
        Server(made, (N, N), rng=np.random.default_rng(0))


def test_the_bits_behind_a_count_stay_below_what_a_message_can_say() -> None:
    """The largest count that is allowed: of one coordinate, just below 2**32 bits."""
    rows_bits = 8 * (MOST_ANSWERED - 15) // N

    def mean(per_row: int) -> BinomialMean:
        return BinomialMean(dim=1, noise_bits=per_row - 2**20, resolution=2**20)

    made = plan(mean(rows_bits))
    made.kinds[0][0].check_answer(N)
    assert N * rows_bits < 2**32
    with pytest.raises(ParameterError, match=BYTES):
        plan(mean(rows_bits + 1)).kinds[0][0].check_answer(N)


def test_a_dense_rotation_that_no_silo_could_draw_is_no_estimator() -> None:
    with pytest.raises(
        ParameterError, match="dim with the orthogonal encoder must be a whole number from 1 to 2048"
    ):
        RotatedMean(dim=4096, samples=1, local_epsilons=(1.0,), encoder="orthogonal")


def _worker(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", bounded_worker.__name__, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own code


def test_a_thousand_changed_plans_are_refused_or_answered_in_little_memory() -> None:
    """Of every estimator under every trust, in a process that has hardly more memory than limits allow."""
    done = _worker(3, 1200, "limited")
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    made = [case.make(4, 1.0) for case in ESTIMATORS]
    kinds = {f"{type(one).__struct_config__.tag} {one.trust.value}" for one in made}
    answered = {name.removesuffix(" answered") for name in told["found"] if name.endswith(" answered")}
    refused = {name.removesuffix(" refused") for name in told["found"] if name.endswith(" refused")}
    assert answered == refused == kinds
    assert bounded_worker.ANSWERED / 3 < told["longest"] <= bounded_worker.ANSWERED + 2**16  # msgpack's own


def test_the_same_plans_exhaust_that_memory_without_limits() -> None:
    done = _worker(3, 1200, "unlimited")
    assert done.returncode != 0
    assert "MemoryError" in done.stderr


@pytest.mark.parametrize("case", ESTIMATORS, ids=str)
@pytest.mark.parametrize(("units", "dim"), [(1, 4), (3, 300)])
def test_the_length_of_an_answer_is_known_before_it_is_written(case: Any, units: int, dim: int) -> None:
    """The bytes that are bounded are those that a shuffler expects, but for a few of their envelope."""
    mean = bounded_worker.as_planned(case.make(dim, 1.0), parties=2)
    (step, _), *_ = plan(mean).kinds
    bits = mean.bits_per_party(units)
    messages = max(units, 3)
    envelope = 16 + (
        0 if step.trust in (TrustModel.LOCAL, CENTRAL) else 33
    )  # what it is bound to, and the version
    assert 0 < answer_bytes(step, units) - bits / 8 < envelope + 6 * messages


def test_large_honest_silos_are_not_refused() -> None:
    """A million records of 785 features, ten classes added up unseen; 60,000 of them behind a shuffler."""
    noise = DiscreteGaussianNoise(5.0)
    plan(AdditiveMean(dim=7850, noise=noise)).kinds[0][0].check_answer(10**6)
    plan(AdditiveMean(dim=4 * 10**7, noise=noise)).kinds[0][0].check_answer(10**4)
    plan(BinomialMean(dim=785, noise_bits=11, resolution=29)).kinds[0][0].check_answer(60_000)
    plan(PrivUnitMean.calibrated(dim=785, budget=PrivacyBudget(1.0), n=N)).kinds[0][0].check_answer(60_000)
