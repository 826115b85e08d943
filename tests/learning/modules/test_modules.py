"""Modules of PyTorch: sums are those of explicitly clipped rows, and no record moves them further."""

from __future__ import annotations

import importlib
import math
import pickle
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError, TacitError
from tacit.federation import FusedStatistic
from tacit.learning import (
    Logistic,
    ModuleObjective,
    Multinomial,
    NetworkObjective,
    NoisyMinibatchSGD,
    PrivateNeuralClassifier,
    PrivateNeuralRegressor,
    RecordDifference,
    RecordGradient,
    Records,
    Settings,
    Squared,
    in_process,
    make_silos,
    torch_objective,
    train,
)
from tacit.learning.difference import FusedDifference
from tacit.numerics import Array, clip_rows
from tacit.privacy import PrivacyBudget, TrustModel

torch = pytest.importorskip("torch")
from tacit.learning.modules.architectures import imported  # noqa: E402 - needs torch
from tacit.learning.modules.parts import Product  # noqa: E402
from tacit.learning.modules.plain import PlainSequence  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

nn = torch.nn
functional = nn.functional
CROSS_ENTROPY = partial(functional.cross_entropy, reduction="none")
CLASSES = 3


class Tied(nn.Module):  # type: ignore[misc, name-defined]
    """An embedding that is the last layer, too; one layer called twice; a parameter of no layer."""

    def __init__(self, tokens: int = 7, width: int = 4) -> None:
        super().__init__()
        self.read, self.say = nn.Embedding(tokens, width, padding_idx=1), nn.Linear(width, tokens)
        self.say.weight, self.twice = self.read.weight, nn.Linear(width, width)
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, ids: Any) -> Any:
        first = self.twice(self.read(ids))
        return self.say(self.twice(torch.tanh(first) * self.gain)).mean(1)[:, :CLASSES]


class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
    """A layer that has no rule of vectorised differentiation in every version."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.say = nn.GRU(4, 3, batch_first=True), nn.Linear(3, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.say(self.cells(x)[0][:, -1])


class Shared(nn.Module):  # type: ignore[misc, name-defined]
    """Layers of vectors: one is called several times, and two have one weight and a bias each."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.twice, self.one, self.other = (nn.Linear(4, 4) for _ in range(3))
        self.other.weight, self.say = self.one.weight, nn.Linear(4, CLASSES)

    def forward(self, x: Any) -> Any:
        for layer in (*[self.twice] * self.times, self.one, self.other):
            x = torch.tanh(layer(x))
        return self.say(x)


def mlp() -> Any:
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(5, CLASSES))


def smooth() -> Any:
    inner = nn.Sequential(nn.Linear(4, 3, bias=False), nn.Softplus(), nn.Dropout(0.5), nn.Linear(3, CLASSES))
    layers = [nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), nn.Sigmoid(), nn.Identity()]
    return nn.Sequential(nn.Flatten(), *layers, inner)


def cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3, padding="same", padding_mode="circular"),
        nn.InstanceNorm2d(6, affine=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LayerNorm(24),
        nn.Linear(24, CLASSES),
    )


def series() -> Any:
    return nn.Sequential(
        nn.Conv1d(2, 4, 3, dilation=2), nn.Tanh(), nn.Flatten(), nn.Linear(24, CLASSES, bias=False)
    )


def attention() -> Any:
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
    return nn.Sequential(layer, nn.Linear(4, 2), nn.Flatten(), nn.Linear(10, CLASSES))


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "mlp": (mlp, {}),
    "smooth": (smooth, {"shape": (2, 3)}),
    "cnn": (cnn, {"shape": (2, 8, 8)}),
    "series": (series, {"shape": (2, 10)}),
    "tied": (Tied, {"shape": (5,), "tokens": 7}),
    "shared": (partial(Shared, 1), {"shape": (4,)}),
    "twice": (partial(Shared, 2), {"shape": (4,)}),
    "recurrent": (Recurrent, {"shape": (3, 4)}),
    "attention": (attention, {"shape": (5, 4)}),
}


def made(kind: str, *, seed: int = 0, dtype: Any = None, **changes: Any) -> ModuleObjective:
    torch.manual_seed(seed)
    make, facts = KINDS[kind]
    return torch_objective(make().to(dtype or torch.float64), CROSS_ENTROPY, **{**facts, **changes})


def some_records(objective: ModuleObjective, n: int, seed: int, *, dtype: Any = np.float64) -> Records:
    rng = np.random.default_rng(seed)
    if objective.tokens is not None:
        X = rng.integers(objective.tokens, size=(n, objective.features)).astype(np.float64)
    else:
        X = rng.standard_normal((n, objective.features)) * rng.choice([0.1, 1.0, 10.0], size=(n, 1))
    return Records.of(X.astype(dtype), rng.integers(CLASSES, size=n).astype(dtype))


def one_by_one(objective: ModuleObjective, w: Array, records: Records) -> Array:
    """One gradient per record by plain differentiation."""
    module, rows = objective.module(w), []
    parameters = [one for one in module.parameters() if one.requires_grad]
    for x, y in zip(records.X, records.y, strict=True):
        record = torch.tensor(x[None]).to(torch.int64 if objective.tokens else parameters[0].dtype)
        said = module(record.reshape(1, *objective.shape))
        found = torch.autograd.grad(CROSS_ENTROPY(said, torch.tensor([int(y)])).sum(), parameters)
        rows.append(np.concatenate([one.double().numpy().ravel() for one in found]))
    return np.stack(rows)


# Gradients and sums


@settings(max_examples=10, deadline=None, derandomize=True, database=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    seed=st.integers(0, 2**20),
    n=st.integers(1, 9),
    chunk=st.sampled_from([2, 4, 16]),
    share=st.sampled_from([0.2, 1.0, 3.0]),
)
def test_sums_are_those_of_explicit_rows(kind: str, seed: int, n: int, chunk: int, share: float) -> None:
    objective = made(kind, seed=seed, chunk=chunk)
    records = some_records(objective, n, seed)
    w = objective.start() + 0.1 * np.random.default_rng(seed).standard_normal(objective.size)
    v = w + 0.03 * np.random.default_rng(seed + 1).standard_normal(objective.size)
    rows, others = (one_by_one(objective, point, records) for point in (w, v))
    np.testing.assert_allclose(objective.gradients(w, records), rows, rtol=0, atol=1e-10 * np.abs(rows).max())
    radius = share * float(np.median(np.linalg.norm(rows, axis=1)))
    for dtype in (np.float64, np.float32):
        expected = clip_rows(rows, radius).sum(axis=0)
        found = objective.clipped_sum(w, records, radius, dtype)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * n * radius)
        for clip in (None, radius):
            one, other = (rows, others) if clip is None else (clip_rows(k, clip) for k in (rows, others))
            expected = clip_rows(one - other, radius / 4).sum(axis=0)
            found = objective.clipped_difference(w, v, records, radius / 4, dtype, clip=clip)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * n * radius)


@pytest.mark.parametrize("kind", ["mlp", "cnn", "tied", "shared", "twice", "attention"])
def test_single_precision_is_near(kind: str) -> None:
    objective = made(kind, dtype=torch.float32)
    records, w = some_records(objective, 20, 1, dtype=np.float32), objective.start()
    rows = one_by_one(objective, w, records)
    radius = float(np.median(np.linalg.norm(rows, axis=1)))
    expected = clip_rows(rows, radius).sum(axis=0)
    for dtype in (np.float64, np.float32):
        found = objective.clipped_sum(w, records, radius, dtype)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * 20 * radius)


def test_sequences_of_known_layers_go_back_by_their_rules() -> None:
    """And others do not: what may compute something else, or has positions, or is watched."""

    class Odd(nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return 2 * super().forward(x)

    watched, changed = nn.Sequential(nn.Linear(4, 3)), nn.Linear(4, 3)
    watched[0].register_forward_hook(lambda _layer, _inputs, said: 2 * said)
    changed.forward = lambda x: x[:, :3]
    assert PlainSequence.of(changed, (4,), {id(one): "" for one in changed.parameters()}) is None
    shared = nn.Linear(4, 4)
    frozen = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3))
    frozen[0].requires_grad_(False)
    for module, shape in (
        (nn.Sequential(Odd(4, 3)), (4,)),
        (watched, (4,)),
        (frozen, (4,)),
        (nn.Sequential(shared, shared), (4,)),
        (nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 3)), (4,)),
        (nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(6, 3)), (2, 4)),
    ):
        objective = torch_objective(module.double(), CROSS_ENTROPY, shape=shape)
        assert objective._network.sequence is None
        records, w = some_records(objective, 5, 1), objective.start()
        rows = one_by_one(objective, w, records)
        np.testing.assert_allclose(objective.gradients(w, records), rows, atol=1e-12)
    for kind in KINDS:
        assert (made(kind)._network.sequence is not None) == (kind in ("mlp", "smooth"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_records_begin_in_memory_changes_no_bit(dtype: str) -> None:
    """Records that begin as memory of PyTorch does are not copied, and not written."""
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(31, 9), nn.ReLU(inplace=True), nn.Linear(9, CLASSES))
    objective = torch_objective(module.to(getattr(torch, dtype)), CROSS_ENTROPY, chunk=8)
    plain, w = some_records(objective, 40, 3, dtype=np.dtype(dtype)), objective.start()
    rows, given = objective.gradients(w, plain), plain.X.copy()
    memory = torch.empty(32 * 41, dtype=getattr(torch, dtype)).numpy()
    for begin in (0, 1, 4, 16):
        X = memory[begin : begin + 31 * 40].reshape(40, 31)
        X[:] = given
        records = Records.of(X, plain.y)
        assert (objective.gradients(w, records) == rows).all()
        objective.predictions(w, X)
        np.testing.assert_array_equal(X, given)
    assert (objective.gradients(w, plain.take(np.arange(7, 40))) == rows[7:]).all()


def test_ghosts_are_taken_where_rows_are_dear() -> None:
    """A wide layer at few positions: norms from pairs of positions, sums in one product."""
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(40, 30), nn.Tanh(), nn.Flatten(), nn.Linear(90, CLASSES)).double()
    objective = torch_objective(module, CROSS_ENTROPY, shape=(3, 40))
    records, w = some_records(objective, 11, 2), objective.start()
    rows = one_by_one(objective, w, records)
    ((_, (parts,)),) = list(objective._passes.through(records, [w]))
    folded: Any = parts["0.weight"]
    assert folded._ghost
    radius = 0.8 * float(np.median(np.linalg.norm(rows, axis=1)))
    expected = clip_rows(rows, radius).sum(axis=0)
    for dtype in (np.float64, np.float32):
        found = objective.clipped_sum(w, records, radius, dtype)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * radius)


class Doubles(nn.Module):  # type: ignore[misc, name-defined]
    """Changes what it is given."""

    def forward(self, x: Any) -> Any:
        return x.mul_(2.0)


def test_a_module_may_change_its_input_in_place() -> None:
    """Lengths of records are not those of what the first layer gets then."""
    torch.manual_seed(12)
    objective = torch_objective(
        nn.Sequential(Doubles(), nn.Linear(4, CLASSES)).double(), CROSS_ENTROPY, shape=(4,)
    )
    records, w = some_records(objective, 7, 12), objective.start()
    rows = one_by_one(objective, w, records)
    np.testing.assert_allclose(objective.gradients(w, records), rows, atol=1e-12)
    expected = clip_rows(rows, 0.1).sum(axis=0)
    np.testing.assert_allclose(objective.clipped_sum(w, records, 0.1), expected, atol=1e-12)


def test_rows_in_slices_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = made("cnn")
    records, w = some_records(objective, 23, 3), objective.start()
    whole = objective.clipped_sum(w, records, 0.5)
    monkeypatch.setattr("tacit.learning.modules.folded._AT_ONCE", 300)
    np.testing.assert_allclose(objective.clipped_sum(w, records, 0.5), whole, rtol=0, atol=1e-12)


def test_a_perceptron_is_the_one_of_this_room() -> None:
    """Other code for the same network: equal predictions, losses and clipped sums."""
    own = NetworkObjective(loss=Logistic(), features=5, hidden=4, activation="tanh")
    module = nn.Sequential(nn.Linear(5, 4, bias=False), nn.Tanh(), nn.Linear(4, 1)).double()
    objective, rng = torch_objective(module, Logistic()), np.random.default_rng(4)
    w = rng.standard_normal(own.size)
    moved = np.concatenate([w[:20].reshape(5, 4).T.ravel(), w[20:]])
    X = rng.standard_normal((30, 5))
    records = Records.of(X, rng.integers(2, size=30).astype(np.float64))
    np.testing.assert_allclose(objective.predictions(moved, X), own.predictions(w, X), atol=1e-12)
    np.testing.assert_allclose(objective.value(moved, records), own.value(w, records), atol=1e-12)
    expected = own.clipped_sum(w, records, 0.3)
    expected = np.concatenate([expected[:20].reshape(5, 4).T.ravel(), expected[20:]])
    np.testing.assert_allclose(objective.clipped_sum(moved, records, 0.3), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_silos_together_are_silos_one_by_one_to_the_last_bit(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.learning.modules.folded._AT_ONCE", 300)  # few rows are formed at once
    objective = made(kind, chunk=16)
    silos = [some_records(objective, n, n) for n in (5, 0, 17, 1, 9, 2, 5)]
    w = objective.start()
    there = w + 0.1 * np.random.default_rng(0).standard_normal(objective.size)
    for dtype in (np.float64, np.float32):
        alone = [objective.clipped_sum(w, one, 0.4, dtype) for one in silos]
        np.testing.assert_array_equal(objective.clipped_sums(w, silos, 0.4, dtype), alone)
        alone = [objective.clipped_difference(w, there, one, 0.4, dtype, clip=1.0) for one in silos]
        together = objective.clipped_differences(w, there, silos, 0.4, dtype, clip=1.0)
        np.testing.assert_array_equal(together, alone)
    assert not objective.clipped_sums(w, [one.take(np.arange(0)) for one in silos], 0.4, np.float32).any()


# Privacy


def length(numbers: Array) -> float:
    """A norm in exact arithmetic, but for its root."""
    return math.sqrt(sum(Fraction(float(each)) ** 2 for each in numbers))


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["mlp", "cnn", "tied"])
def test_no_row_is_longer_than_the_radius(kind: str, dtype: str, autocast: bool) -> None:
    """Each record alone, at points near and far, in bfloat16 too: what is added up is inside the ball."""
    objective = made(kind, dtype=getattr(torch, dtype), autocast=autocast, chunk=4)
    assert (objective._network.others == []) == (kind != "tied")
    records, rng = some_records(objective, 6, 5), np.random.default_rng(5)
    longest = 0.0
    for scale in (1.0, 30.0):
        w = scale * (objective.start() + 0.1 * rng.standard_normal(objective.size))
        for i in range(len(records)):
            one = records.take(np.array([i]))
            for radius in (1e-3, 0.7):
                found = length(objective.clipped_sum(w, one, radius))
                assert found <= radius
                longest = max(longest, found / radius)
    assert longest > 1 - 1e-6


def test_a_factor_whose_square_is_no_normal_number_makes_no_long_row() -> None:
    """1e-162 squared is zero: beside a factor of 1e154 the row is 1e-8 long, at a radius of 1e-20."""
    objective = torch_objective(nn.Linear(1, 1).double(), Logistic())
    one = Records.of(np.array([[1.3e154]]), np.zeros(1))
    w = np.array([-373.0 / 1.3e154, 0.0])  # a derivative of e^-373
    assert 0 < length(objective.clipped_sum(w, one, 1e-20)) <= 1e-20
    small, large = torch.from_numpy(np.full((1, 2, 1), 1.4e-162)), torch.from_numpy(np.full((1, 2, 3), 3e153))
    squared = 6 * (Fraction(1.4e-162) * Fraction(3e153)) ** 2
    for left, right in ((small, large), (large, small)):
        for shape in ((1, 2, -1), (1, 1, -1)):
            row = Product(left.reshape(shape), right.reshape(shape))
            assert float(row.squared(exact=True)) >= squared
    row = Product(large.reshape(1, 1, 6), small.reshape(1, 1, 2), lengths=2 * small[:, 0, 0])
    assert float(row.squared(exact=True)) >= 2 * squared  # twice as many


@pytest.mark.parametrize("how", ["autocast", "medium", "backend"])
def test_a_caller_that_asks_for_coarse_products_gets_no_longer_rows(how: str) -> None:
    """Numbers just above one of bfloat16: measured in it, their rows would be longer by 0.4 %."""
    torch.manual_seed(6)  # of some seeds, no gradient is longer than the radius
    module = nn.Sequential(nn.Linear(1024, 2), nn.Tanh(), nn.Linear(2, 1))
    objective, before = torch_objective(module, Logistic(), chunk=64), torch.get_float32_matmul_precision()
    one = Records.of(np.full((1, 1024), 1.0038), np.zeros(1))
    w = 0.1 * objective.start()
    plain = objective.clipped_sum(w, one, 0.7)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how == "autocast"):
        try:
            if how == "medium":
                torch.set_float32_matmul_precision("medium")
            if how == "backend" and hasattr(torch.backends.mkldnn, "matmul"):
                torch.backends.mkldnn.matmul.fp32_precision = "bf16"
            found = objective.clipped_sum(w, one, 0.7)
        finally:
            torch.set_float32_matmul_precision(before)
    assert 0.7 * (1 - 2e-6) < length(found) <= 0.7
    if how == "autocast":  # of a caller, which changes nothing here
        np.testing.assert_array_equal(found, plain)


class _Rewriting(nn.Module):  # type: ignore[misc, name-defined]
    """Multiplies what it is given behind the back of PyTorch, where it is above a bound."""

    def __init__(self, above: float) -> None:
        super().__init__()
        self.first, self.last, self.above = nn.Linear(64, 8), nn.Linear(8, 1), above

    def forward(self, x: Any) -> Any:
        x.data[x > self.above] *= 100
        return self.last(torch.tanh(1e-3 * self.first(x)))


@pytest.mark.parametrize("above", [-9.0, 9.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_module_that_rewrites_records_unseen_gets_no_longer_rows(dtype: str, above: float) -> None:
    """Records that are rewritten are measured where public ones were, too; else they count as zero."""
    objective = torch_objective(_Rewriting(above).to(getattr(torch, dtype)), Logistic(), chunk=4)
    X = np.random.default_rng(8).standard_normal((2, 64)).astype(dtype)
    X[0, 0] = 10.0
    records = Records.of(X, np.ones(2, dtype=dtype))
    sums = [objective.clipped_sum(objective.start(), records.take(np.array([i])), 1e-3) for i in range(2)]
    assert max(map(length, sums)) <= 1e-3
    assert (length(sums[0]) == 0) == (above > 0)
    assert length(sums[1]) > 0.99e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_record_that_comes_or_goes_moves_no_other_at_a_hostile_point(dtype: str) -> None:
    """At long points at right angles to all records, hidden sums are rounding and no more."""
    rng, kind = np.random.default_rng(6), np.dtype(dtype)
    torch.manual_seed(6)
    module = nn.Sequential(nn.Linear(300, 9), nn.ReLU(), nn.Linear(9, 1)).to(getattr(torch, dtype))
    objective = torch_objective(module, Logistic(), chunk=16)
    assert objective.chunk == 16
    x, away = rng.standard_normal((2, 300))
    x -= away * (x @ away) / (away @ away)
    X = np.tile((x / np.linalg.norm(x)).astype(dtype), (48, 1))
    w = objective.start()
    w[:2700] = np.outer(rng.choice([-1.0, 1.0], 9), away / np.finfo(kind).eps).ravel()
    gradient, change = RecordGradient(objective), RecordDifference(objective)
    at, radius = {"w": w, "previous": w * 0.5}, 0.01
    for statistic in (gradient, change):
        sums = [
            statistic.clipped_sum(Records.of(X[:k], np.zeros(k)), at, radius, np.float64) for k in range(49)
        ]
        assert (np.linalg.norm(np.diff(sums, axis=0), axis=1) <= radius * (1 + 1e-10)).all()
        rows = statistic(Records.of(X, np.zeros(48)), at)
        assert (rows == rows[0]).all()
        assert rows.any()


def test_where_places_are_not_alike_records_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that rounds the last records of a chunk in another way is found out."""
    objective = made("mlp")
    records, w = some_records(objective, 9, 7), objective.start()
    expected = objective.clipped_sum(w, records, 0.3)
    plain = functional.linear

    def places(*arguments: Any) -> Any:
        found = plain(*arguments).clone()
        return torch.cat([found[:-1], found[-1:] * (1 + 1e-15)]) if len(found) > 1 else found

    fresh = made("mlp")
    monkeypatch.setattr(functional, "linear", places)
    with pytest.warns(RuntimeWarning, match=r"one by one, .* MKL_CBWR=AUTO"):
        assert fresh.chunk == 1
    np.testing.assert_allclose(fresh.clipped_sum(w, records, 0.3), expected, atol=1e-12)


def test_places_are_tried_for_every_way_to_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a caller asks for other products, or other threads, other code runs: it is tried, too."""
    objective, before = made("mlp", chunk=4), torch.get_float32_matmul_precision()
    tried: list[int] = []

    def alike(chunk: int) -> bool:
        tried.append(chunk)
        return len(tried) == 1

    monkeypatch.setattr(objective._passes.sizes, "_alike", alike)
    assert (objective.chunk, objective.chunk, len(tried)) == (4, 4, 1)
    try:
        torch.set_float32_matmul_precision("medium")
        assert (objective.chunk, len(tried)) == (1, 3)
    finally:
        torch.set_float32_matmul_precision(before)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert (objective.chunk, len(tried)) == (1, 5)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("outputs", "chunk"), [(CLASSES, None), (CLASSES, 100), (1, None), (1, 7)])
def test_a_place_in_a_chunk_changes_no_bit(outputs: int, chunk: int | None, threads: int) -> None:
    """Functions of single numbers have other code for the last ones of a chunk, or of a thread's part."""
    torch.manual_seed(4)
    head = [nn.Flatten(0)] if outputs == 1 else []
    hidden = 301 if outputs == 1 else 5
    module = nn.Sequential(nn.Linear(6, hidden), nn.GELU(), nn.Linear(hidden, outputs), *head)
    logits = functional.binary_cross_entropy_with_logits
    loss = CROSS_ENTROPY if outputs > 1 else partial(logits, reduction="none")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        objective = torch_objective(module.double(), loss, chunk=chunk)
        records, w = some_records(objective, 256, 5), 3 * objective.start()
        records = Records.of(records.X, records.y % max(outputs, 2))
        rows = objective.gradients(w, records)
        for shift in (1, 2, 5):
            moved = np.roll(np.arange(256), shift)
            assert (objective.gradients(w, records.take(moved)) == rows[moved]).all()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("odd", [False, True])
def test_of_which_chunk_a_record_is_changes_no_bit(odd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of several sizes are taken, unless their shape is rounded in another way."""
    torch.manual_seed(9)
    module = nn.Sequential(nn.Linear(50, 7), nn.ReLU(), nn.Linear(7, CLASSES))
    objective, plain, shapes = torch_objective(module, CROSS_ENTROPY), functional.linear, []

    def watched(x: Any, *weights: Any) -> Any:
        shapes.append(len(x))
        return plain(x, *weights) * (1 + 2e-7 if odd and len(x) != 256 else 1)

    monkeypatch.setattr(functional, "linear", watched)
    records, w = some_records(objective, 1330, 9, dtype=np.float32), 3 * objective.start()
    objective.gradients(w, records)  # tries it out
    shapes.clear()
    rows = objective.gradients(w, records)
    assert shapes == ([256] * 12 if odd else [1024, 1024, 256, 256, 64, 64])
    for first, last in ((307, 1330), (1, 1025), (510, 1330), (1290, 1330)):
        some = objective.gradients(w, records.take(np.arange(first, last)))
        assert (some == rows[first:last]).all()
    whole, (part, rest) = objective.clipped_sum(w, records, 0.3), np.split(np.arange(1330), [500])
    halves = [objective.clipped_sum(w, records.take(each), 0.3) for each in (part, rest)]
    np.testing.assert_allclose(whole, sum(halves), atol=1e-9)
    v = 1.1 * w
    change = objective.clipped_difference(w, v, records, 0.1)
    halves = [objective.clipped_difference(w, v, records.take(each), 0.1) for each in (part, rest)]
    np.testing.assert_allclose(change, sum(halves), atol=1e-9)


def test_single_precision_rounds_nothing_below_the_normal_numbers() -> None:
    """A record of 1e35 with slopes of 1e-40, which have five digits: its row was up to twice the radius."""
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, CLASSES))
    objective = torch_objective(module, CROSS_ENTROPY)
    w = 1e-20 * objective.start()
    for power in range(20, 38):
        records = Records.of(np.full((1, 6), 10.0**power, dtype=np.float32), np.zeros(1, dtype=np.float32))
        for radius in (1e-3, 1e-10, 1e-20):
            total = objective.clipped_sum(w, records, radius, np.float32)
            assert np.linalg.norm(total / radius) <= 1 + 1e-6


def test_bad_records_count_as_zero() -> None:
    objective = made("mlp", dtype=torch.float32)
    X = np.random.default_rng(8).standard_normal((6, 6))
    X[1], X[2, 0], X[3] = np.nan, np.inf, 1e200  # the last is infinite in single precision
    X, y = np.vstack([X, X[4]]), np.array([0.0, 1.0, 2.0, 1.0, 7.0, 1.0, 0.5])  # no class is 7, or 0.5
    records, good = Records.of(X, y), Records.of(X[[0, 5]], y[[0, 5]])
    zeros = Records.of(np.zeros((2, 6)), np.zeros(2))  # a hole makes a record of zeros
    w, v = objective.start(), 1.1 * objective.start()
    for dtype in (np.float64, np.float32):
        expected = objective.clipped_sum(w, good, 0.2, dtype) + objective.clipped_sum(w, zeros, 0.2, dtype)
        np.testing.assert_allclose(objective.clipped_sum(w, records, 0.2, dtype), expected, atol=1e-6)
        for clip in (None, 0.3):
            each = [objective.clipped_difference(w, v, k, 0.1, dtype, clip=clip) for k in (good, zeros)]
            expected = each[0] + each[1]
            found = objective.clipped_difference(w, v, records, 0.1, dtype, clip=clip)
            np.testing.assert_allclose(found, expected, atol=1e-6)
    huge = objective.clipped_sum(1e30 * w, records, 0.2)
    assert np.isfinite(huge).all()


def test_numbers_that_no_embedding_has_count_as_zero() -> None:
    objective = made("tied")
    X = np.array([[0, 1, 2, 3, 4], [0, 1, 2, 3, 7], [0, -1, 2, 3, 4], [0, 1, 2.5, 3, 4]], dtype=np.float64)
    w = objective.start()
    found = objective.clipped_sum(w, Records.of(X, np.zeros(4)), 0.5)
    np.testing.assert_allclose(found, objective.clipped_sum(w, Records.of(X[:1], np.zeros(1)), 0.5))
    assert objective.gradients(w, Records.of(X, np.zeros(4)))[1:].any() == 0


# In a run


def test_no_records_and_what_statistics_ask_for() -> None:
    objective = made("cnn")
    assert isinstance(RecordGradient(objective), FusedStatistic)
    assert isinstance(objective, FusedDifference)
    empty, w = some_records(objective, 0, 9), objective.start()
    assert objective.gradients(w, empty).shape == (0, objective.size)
    assert not objective.clipped_sum(w, empty, 1.0).any()
    assert objective.value(w, empty).shape == (0,)
    assert objective.predictions(w, empty.X).shape == (0, CLASSES)
    assert objective.lipschitz == objective.smoothness == math.inf
    assert not objective.clip_safe
    with pytest.raises(ParameterError, match="w must have shape"):
        objective.clipped_sum(w[:-1], some_records(objective, 1, 9), 1.0)


@pytest.mark.parametrize("trust", [None, TrustModel.CENTRAL, TrustModel.LOCAL])
def test_a_module_trains_as_every_objective(trust: TrustModel | None) -> None:
    objective = made("mlp")
    silos = [some_records(objective, n, n) for n in (30, 20)]
    settings_ = Settings(
        objective=objective,
        algorithm=NoisyMinibatchSGD(rounds=8, step_size=0.5, average=0.1),
        trust=trust,
        budget=None if trust is None else PrivacyBudget(2.0, 1e-5),
        clip=0.6,
        start=objective.start(),
    )
    parties = make_silos(silos, objective, trusts_server=settings_.trusts_server, seed=1)
    found = train(in_process(parties, seed=1), settings_)
    assert np.isfinite(found.w).all()
    if trust is not None:
        assert found.guarantee.epsilon <= 2.0
        return
    points, pooled = (
        [objective.start()],
        Records.of(np.concatenate([one.X for one in silos]), np.concatenate([one.y for one in silos])),
    )
    for _ in range(3):
        points.append(points[-1] - 0.5 * objective.clipped_sum(points[-1], pooled, 0.6) / 50)
    assert min(np.abs(found.w - each).max() for each in points[2:]) < 1e-9 or found.w.any()


# What is refused


class Averages(nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x - x.mean(0, keepdim=True)


class Looks(nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x if x[0, 0] > 0 else -x


class Draws(nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x + torch.rand_like(x)


class Detached(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.say = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.say(x).detach()


@pytest.mark.parametrize(
    ("module", "changes", "message"),
    [
        (lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), {}, r"layer '1' \(BatchNorm1d\)"),
        (lambda: nn.Sequential(nn.Linear(3, 3), Averages()), {}, r"layer '1' \(Averages\) mixes"),
        (lambda: nn.Sequential(nn.Linear(3, 3), Looks()), {}, r"\(Looks\) mixes"),
        (lambda: nn.LSTM(3, 3), {"shape": (5, 3)}, "wrap it in a module that returns one tensor"),
        (lambda: nn.Sequential(nn.Linear(3, 3), Draws()), {}, "it draws random numbers"),
        (lambda: nn.Sequential(nn.Linear(3, 3), nn.Flatten(0)), {}, "one row per record"),
        (nn.ReLU, {"shape": (3,)}, "must have parameters that need a gradient"),
        (lambda: "net", {}, "must be a torch.nn.Module"),
        (lambda: nn.Linear(3, 3).half(), {}, "all float32 or all float64, got torch.float16"),
        (lambda: nn.LazyLinear(3), {"shape": (3,)}, "has no shape yet"),
        (lambda: nn.Linear(3, 3), {"device": "cuda:77"}, "device must be one of"),
        (lambda: nn.Linear(3, 3), {"device": "warp"}, "device must be one of"),
        (lambda: nn.Linear(3, 3), {"shape": (4,)}, r"does not run on records of shape \(4,\)"),
        (lambda: nn.Linear(3, 3), {"shape": 3}, "shape must be whole numbers, such as"),
        (lambda: nn.Embedding(3, 3), {"shape": (1,)}, "give tokens="),
        (lambda: nn.Linear(3, 3), {"shape": (0,)}, "shape must be a whole number >= 1"),
        (lambda: nn.Linear(3, 3), {"chunk": 0}, "chunk must be a whole number >= 1"),
        (lambda: nn.Linear(3, 3), {"tokens": 0}, "tokens must be a whole number >= 1"),
        (lambda: nn.Conv2d(1, 1, 1), {}, "shape must be given"),
        (lambda: nn.Embedding(3, 3, max_norm=1.0), {"shape": (1,), "tokens": 3}, "changes its weights"),
        (lambda: nn.Embedding(3, 3, scale_grad_by_freq=True), {"shape": (1,)}, "counts over a batch"),
        (lambda: nn.Linear(4, 3, device="meta"), {}, "the parameter 'weight' has no numbers yet"),
        (Detached, {"shape": (4,)}, "must have a derivative in its parameters: leave detach"),
        (lambda: nn.Linear(4, 3), {"autocast": "fp16"}, "autocast must be True or False, got 'fp16'"),
        (
            lambda: nn.Sequential(nn.TransformerEncoderLayer(4, 2, 6), nn.Flatten(), nn.Linear(12, 3)),
            {"shape": (3, 4)},
            r"the layer '0.self_attn' \(MultiheadAttention without batch_first=True\) mixes",
        ),
    ],
)  # fmt: skip
def test_modules_that_are_no_objective_are_refused(
    module: Any, changes: dict[str, Any], message: str
) -> None:
    torch.manual_seed(0)  # of 300 draws of its weights, 2 make one that never looks at these few records
    with pytest.raises(ParameterError, match=message):
        torch_objective(module(), CROSS_ENTROPY, **changes)


@pytest.mark.parametrize(
    ("loss", "outputs", "message"),
    [
        (functional.cross_entropy, 3, "reduction='none'"),
        (lambda p, y: CROSS_ENTROPY(p * p.mean(), y), 3, "loss mixes records"),
        (lambda p, y: p.nothing, 3, "loss <lambda> does not run on predictions"),
        (functional.binary_cross_entropy_with_logits, 1, r"end the module in torch.nn.Flatten\(0\)"),
        (nn.CrossEntropyLoss, 3, "loss must be a loss of tacit"),
        (Multinomial, 3, "loss must be a loss of tacit"),
        ("logistic", 1, "loss must be a loss of tacit"),
        (Logistic(), 3, r"\(n,\) or \(n, 1\) for the loss Logistic"),
        (Squared(), 2, r"\(n,\) or \(n, 1\) for the loss Squared"),
        (Multinomial(), 1, "2 or more for the loss Multinomial"),
        (Multinomial(classes=4), 3, "the 4 classes of the loss"),
    ],
)
def test_losses_that_do_not_fit_are_refused(loss: Any, outputs: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        torch_objective(nn.Linear(3, outputs), loss)


def test_estimators_take_modules_of_ones_own_and_are_copied() -> None:
    X = np.random.default_rng(11).uniform(-1, 1, (60, 4))
    own = partial(PrivateNeuralClassifier, trust="none", bounds=(-1, 1), rounds=2, random_state=0)
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    model = own(module=module, classes=[False, True]).fit(X, X[:, 0] > 0)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert own(module=lambda: nn.Linear(4, 3)).fit(X, np.arange(60) % 3).model_.w.size == 15
    number = PrivateNeuralRegressor(trust="none", bounds=(-1, 1), module=module, rounds=2, random_state=0)
    assert number.fit(X, X[:, 0]).predict(X).shape == (60,)
    for changes, message in (
        ({"module": nn.Linear(4, 2)}, "for the loss Logistic, got"),
        ({"module": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))}, r"the layer '1' \(BatchNorm1d\)"),
        ({"module": nn.Linear(5, 1)}, r"does not run on records of shape \(4,\)"),
        ({"module": nn.Sequential(nn.Linear(4, 1), nn.Sigmoid(), nn.Flatten(0))}, "ends in a sigmoid"),
        ({"module": module, "shape": (5,)}, r"of the 4 features of a record, got \(5,\)"),
        ({"module": nn.Linear}, "module must be made without arguments: TypeError"),
        ({"module": "resnet"}, "module must look like one of"),
        ({"hidden": ()}, "hidden must be units"),
    ):
        with pytest.raises(ParameterError, match=message):
            own(classes=[False, True], **changes).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise RuntimeError('top\\nlevel')", "does not load: RuntimeError: top level."),
        ("raise SystemExit(3)", "does not load: SystemExit: 3."),
        ("def (:", "does not load: SyntaxError: "),
        ("Net = exit", "must name a class of torch.nn.Module, and 'raising_networks:Net' is none."),
        (
            "from torch import nn\nclass Net(nn.Linear):\n"
            "    def __init__(self): raise ValueError('no\\nweights')",
            "without arguments: ValueError: no weights.",
        ),
    ],
)
def test_code_that_raises_is_named_in_one_line(
    code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raising_networks.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "raising_networks", raising=False)
    importlib.invalidate_caches()
    with pytest.raises(ParameterError) as found:
        imported("raising_networks:Net", seed=0)
    assert message in str(found.value)
    assert "\n" not in str(found.value)


def test_losses_of_numbers_and_of_classes() -> None:
    """A loss of this room and one of PyTorch are the same numbers."""
    rng = np.random.default_rng(10)
    records = Records.of(rng.standard_normal((8, 3)), rng.integers(CLASSES, size=8).astype(np.float64))
    three, one = (nn.Linear(3, k).double() for k in (CLASSES, 1))

    def half_squares(p: Any, y: Any) -> Any:
        return (p[:, 0] - y) ** 2 / 2

    for module, own, other in ((three, Multinomial(), CROSS_ENTROPY), (one, Squared(), half_squares)):
        first, second = (torch_objective(module, loss) for loss in (own, other))
        w = first.start()
        np.testing.assert_allclose(first.value(w, records), second.value(w, records), atol=1e-12)
        np.testing.assert_allclose(first.gradients(w, records), second.gradients(w, records), atol=1e-12)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TacitError, match="tacit\\[torch\\]"):
        torch_objective(None, Logistic())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no accelerator")
@pytest.mark.parametrize("kind", ["mlp", "cnn", "tied", "attention"])
def test_an_accelerator_says_the_same(kind: str) -> None:
    here, there = made(kind), made(kind, device="cuda")
    records, w = some_records(here, 20, 11), here.start()
    found, expected = (each.clipped_sum(w, records, 0.5) for each in (there, here))
    np.testing.assert_allclose(found, expected, atol=1e-9)
