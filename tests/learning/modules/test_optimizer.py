"""The private optimiser: noiseless steps are PyTorch's, prices are those of the plan, and runs go on."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError, ParameterError, PrivacyWarning
from tacit.federation import Fixed, Poisson
from tacit.learning import Logistic, NoisyMinibatchSGD, PrivateOptimizer, Settings, Squared, torch_objective
from tacit.learning.preparation import prepare
from tacit.learning.spending import Fits
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel

torch = pytest.importorskip("torch")


def smooth(said: Any, y: Any, beta: float) -> Any:
    return torch.nn.functional.smooth_l1_loss(said[:, 0], y, beta=beta, reduction="none")


N = 60
X = np.random.default_rng(0).normal(size=(N, 1, 3, 3)).astype(np.float32)
Y = (X.sum(axis=(1, 2, 3)) > 0).astype(float)
BUDGET = PrivacyBudget(2.0, 1e-4)
SMOOTH = partial(smooth, beta=2.0)


def network() -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return torch.nn.Sequential(
            torch.nn.Conv2d(1, 2, 2), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(8, 1)
        )


def private(
    module: Any = None,
    optimizer: Any = None,
    loss: Any = Logistic(),  # noqa: B008 - immutable
    **changes: Any,
) -> PrivateOptimizer:
    module = network() if module is None else module
    facts: dict[str, Any] = {"steps": 6, "budget": BUDGET, "clip": 0.7, "batch": 20, "random_state": 0}
    facts |= changes
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.9) if optimizer is None else optimizer
    return PrivateOptimizer(optimizer, module, loss, X, Y, **facts)


def flat(module: Any) -> Any:
    return torch.cat([one.detach().reshape(-1) for one in module.parameters()]).numpy()


def test_without_noise_a_step_is_that_of_pytorch_along_clipped_gradients() -> None:
    """Adam and a schedule too: all records, each clipped by an explicit loop over all parameters together."""
    ours, theirs = network(), network()
    makes = [torch.optim.Adam(one.parameters(), lr=0.1) for one in (ours, theirs)]
    schedules = [torch.optim.lr_scheduler.StepLR(one, 2, 0.1) for one in makes]
    stepped = private(ours, makes[0], budget=None, batch="full")
    for _ in stepped:
        stepped.step()
        schedules[0].step()
        total = [torch.zeros_like(one) for one in theirs.parameters()]
        for x, y in zip(torch.tensor(X), torch.tensor(Y, dtype=torch.float32), strict=True):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(theirs(x[None])[0, 0], y)
            rows = torch.autograd.grad(loss, list(theirs.parameters()))
            size = math.sqrt(sum(float((row**2).sum()) for row in rows))
            total = [held + row * min(1, 0.7 / size) for held, row in zip(total, rows, strict=True)]
        for one, held in zip(theirs.parameters(), total, strict=True):
            one.grad = held / N
        makes[1].step()
        schedules[1].step()
        np.testing.assert_allclose(flat(ours), flat(theirs), atol=2e-6)
    assert math.isinf(stepped.guarantee_.epsilon)


@pytest.mark.parametrize(
    ("neighbours", "batch", "drawn"),
    [
        ("replace-one", 20, Fixed(size=20)),
        ("zero-out", 20, Poisson(size=20)),
        ("add-remove", 0.25, Poisson(rate=0.25)),
    ],
)
def test_all_steps_are_priced_as_the_plan_of_the_library(neighbours: str, batch: Any, drawn: Any) -> None:
    found = private(neighbours=neighbours, batch=batch)
    settings = Settings(
        objective=torch_objective(network(), Logistic(), shape=(1, 3, 3)),
        algorithm=NoisyMinibatchSGD(rounds=6, batch=drawn, step_size=1.0),
        trust=TrustModel.LOCAL,
        budget=BUDGET,
        relation=Relation(neighbours),
        clip=0.7,
    )
    assert found.noise_multiplier == prepare(settings, [N]).noise_multiplier
    assert found.guarantee_.epsilon == BUDGET.epsilon
    assert found.guarantee_.neighbours.relation is Relation(neighbours)
    assert found.guarantee_.simulated


def test_the_noise_of_a_step_is_what_the_price_says() -> None:
    """Gradients of zero (records that are not finite) leave noise alone: z times twice the clip over n.

    Each of 1,200 entries is a normal draw: the sum of squares is within 6 standard deviations, 2e-9.
    """
    module = torch.nn.Linear(200, 1)
    bad = np.full((N, 200), np.nan)
    before = flat(module)
    stepped = PrivateOptimizer(
        torch.optim.SGD(module.parameters(), lr=1.0), module, Logistic(), bad, Y, steps=6, budget=BUDGET,
        clip=0.7, random_state=1,
    )  # fmt: skip
    moves = []
    for _ in stepped:
        stepped.step()
        moves.append(flat(module) - before)
        before = flat(module)
    std = stepped.noise_multiplier * 2 * 0.7 / N
    assert np.mean(np.square(moves)) == pytest.approx(std**2, rel=6 * math.sqrt(2 / 1206))


def test_no_step_is_taken_that_was_not_paid_for() -> None:
    stepped = private(steps=2)
    assert len(stepped) == 2
    for _ in stepped:
        stepped.step()
    assert stepped.taken == 2
    with pytest.raises(ParameterError, match="steps must be more than 2 to take another"):
        stepped.step()


def test_threads_take_each_step_once() -> None:
    stepped = private(steps=4)
    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(stepped.step) for _ in range(8)]
    assert sum(one.exception() is None for one in done) == stepped.taken == 4


def account(folder: Path, epsilon: float) -> Path:
    path = folder / "data.ledger"
    Ledger.create(path, limit=PrivacyBudget(epsilon, 1e-3), neighbours=Neighbours()).close()
    return path


def test_a_run_goes_on_after_a_crash_and_is_paid_for_once(tmp_path: Path) -> None:
    """Steps after the last saved state are taken again with the same answers, to the last bit."""
    path, module = account(tmp_path, 3.0), network()
    facts: dict[str, Any] = {"random_state": None, "ledger": path, "run": "night"}
    with private(module, **facts) as first:
        for _ in range(3):
            first.step()
        torch.save(first.state_dict(), tmp_path / "state.pt")
        first.step()
        lost = flat(module)
    again = network()
    with private(again, **facts) as second:
        second.load_state_dict(torch.load(tmp_path / "state.pt"))
        assert second.taken == 3
        second.step()
        np.testing.assert_array_equal(flat(again), lost)
        for _ in second:
            second.step()
        assert second.taken == 6
        assert not second.guarantee_.simulated
    with Ledger.open(path) as ledger:
        assert ledger.spent().epsilon == pytest.approx(2.0, rel=1e-6)
    with pytest.raises(LedgerError, match="another plan"):
        private(**facts | {"steps": 7})
    other = network()
    other[1] = torch.nn.ReLU()  # as many parameters, another function
    with pytest.raises(LedgerError, match="another plan"):
        private(other, **facts)
    for loss in (Squared(), SMOOTH):
        with pytest.raises(LedgerError, match="another plan"):
            private(loss=loss, **facts)
    with pytest.raises(BudgetError):
        private(**facts | {"run": "another"})


def test_a_run_is_of_one_loss_with_its_options(tmp_path: Path) -> None:
    """By what is bound to a function, and not by where the function lies in memory."""
    facts: dict[str, Any] = {"random_state": None, "ledger": account(tmp_path, 3.0), "run": "night"}
    private(loss=SMOOTH, **facts).close()
    private(loss=partial(SMOOTH.func, **SMOOTH.keywords), **facts).close()
    with pytest.raises(LedgerError, match="another plan"):
        private(loss=partial(SMOOTH, beta=0.5), **facts)


def test_optimisers_without_a_ledger_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.learning.modules.optimizer.fits_of_this_process", Fits())
    private(random_state=None)
    private()  # seeded noise protects nobody, so there is nothing to add up
    with pytest.warns(PrivacyWarning, match=r"this is private fit 2 on the same records .* epsilon 4 "):
        private(random_state=None)


@pytest.mark.filterwarnings("ignore:this is private fit")
def test_a_state_is_of_its_run() -> None:
    seeded = private()
    seeded.step()
    state = seeded.state_dict()
    seeded.load_state_dict(state)
    with pytest.raises(ParameterError, match="state must be of the run"):
        private(run="other").load_state_dict(state)
    with pytest.raises(ParameterError, match="state must be of the `state_dict`"):
        seeded.load_state_dict({"model": {}})
    with pytest.raises(ParameterError, match="state must be of parameters of the same shapes"):
        seeded.load_state_dict({**state, "parameters": state["parameters"][1:]})
    secret = private(random_state=None)
    with pytest.raises(ParameterError, match="ledger must be given to go on with a run"):
        secret.load_state_dict(secret.state_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be a whole number >= 1"),
        ({"clip": 0.0}, "clip must be a finite number > 0"),
        ({"batch": 61}, "61"),
        ({"batch": 1.5}, "batch must be"),
        ({"neighbours": "swap"}, "swap"),
        ({"budget": PrivacyBudget(1.0)}, "delta must be > 0"),
        ({"optimizer": object()}, "optimizer must be a torch.optim.Optimizer"),
        ({"optimizer": torch.optim.SGD(network().parameters(), lr=1.0)}, "optimizer must be of parameters"),
        ({"ledger": "x.ledger"}, "ledger needs a budget and no random_state"),
    ],
)
def test_what_cannot_be_stepped_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        private(**changes)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (PrivacyBudget(1.0, 0.1), "delta 0.1 is not below 1 / 60, one over the number of records"),
        (PrivacyBudget(30.0, 1e-5), "epsilon 30 promises next to nothing"),
    ],
)
def test_a_budget_that_promises_nothing_is_said_to(budget: PrivacyBudget, message: str) -> None:
    with pytest.warns(PrivacyWarning, match=message) as said:
        private(budget=budget)
    assert said[0].filename == __file__


def test_an_optimizer_that_wants_the_loss_is_refused_before_the_ledger_pays(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "x", limit=PrivacyBudget(9.0, 1e-3), neighbours=Neighbours()).close()
    module = network()
    optimizer = torch.optim.LBFGS(module.parameters())
    with pytest.raises(ParameterError, match="optimizer must step along one gradient, and LBFGS asks"):
        private(module=module, optimizer=optimizer, ledger=tmp_path / "x", random_state=None)
    with Ledger.open(tmp_path / "x") as ledger:
        assert ledger.spent().epsilon == 0


def test_a_loader_is_not_needed() -> None:
    module, rows = network(), torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for given in (rows, torch.utils.data.DataLoader(rows)):
        with pytest.raises(ParameterError, match="X must be an array or a tensor of all records, got a "):
            PrivateOptimizer(optimizer, module, Logistic(), given, Y, steps=6, budget=BUDGET, clip=0.7)


def test_options_of_a_loss_are_told_apart_and_hold_no_address() -> None:
    """Options of a loss object, entries that a printed tensor leaves out, functions by their names."""
    entropy, other = torch.nn.functional.cross_entropy, torch.ones(2000)
    other[1000] = 5
    kinds = [
        torch.nn.CrossEntropyLoss(reduction="none"),
        torch.nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1),
        torch.nn.CrossEntropyLoss(reduction="none", weight=other),
        partial(entropy, weight=torch.ones(2000)),
        partial(entropy, weight=other),
        partial(sorted, key=entropy),
        partial(entropy, np.arange(3)),
        partial(entropy, np.arange(3) + 1),
        partial(entropy, [np.float32(2)]),
    ]
    from tacit.learning.modules.optimizer import _called

    called = [_called(one) for one in kinds]
    assert len(set(called)) == len(kinds)
    assert "0x" not in "".join(called)
