"""A PyTorch optimiser whose gradients are private: for those who keep their own training loop."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from threading import Lock
from typing import Any, Self

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_positive
from tacit.federation import Batch, InProcessRounds, Plan, Poisson
from tacit.federation.batches import read_batch
from tacit.learning.algorithms import NoisyMinibatchSGD
from tacit.learning.losses import Loss
from tacit.learning.modules.objective import ModuleObjective
from tacit.learning.objective import Records
from tacit.learning.preparation import prepare
from tacit.learning.settings import Settings
from tacit.learning.spending import fits_of_this_process
from tacit.learning.training import silos_for
from tacit.ledger import Accounts, Ledger, new_run, place_of
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget, Relation, TrustModel
from tacit.privacy.weak import warn_of_weak

__all__ = ["PrivateOptimizer"]

_NAME = "data"


class PrivateOptimizer:
    """Steps of a PyTorch optimiser along noisy means of clipped gradients, priced as a whole beforehand.

    It is what a loop calls in place of drawing a batch, the backward pass and the optimiser's step; all else
    of the loop stays as it is, schedules of the step size included. Every record's gradient is clipped, over
    all parameters, so a batch may be as large as one likes: records go through the module in chunks, and
    there is nothing to accumulate. What the loop shows of private records besides, such as a loss, is a
    release of its own that nothing here pays for.

    Args:
        optimizer: Of the parameters of `module`; its own noise-free form is what it does with a gradient.
        module: A `torch.nn.Module`, as `torch_objective` takes it. Its parameters are stepped in place.
        loss: As in `torch_objective`.
        X: Records, shape (n, *shape), numbers; arrays or tensors.
        y: Labels, shape (n,), numbers; a record whose label the loss has no use for, such as class 12 of 10,
            counts as zero, silently: an error would tell of it.
        steps: How many steps the budget is for, >= 1.
        budget: What all steps together may cost; None takes the same steps without noise and claims nothing.
        clip: Norm that a record's gradient is clipped to, finite, > 0.
        batch: Records of a step, drawn afresh and in secret: "full", a number, a share below 1, or a `Batch`
            such as `Poisson(rate=0.01)`. A number or a share is drawn as samples of a fixed size under
            "replace-one", else as Poisson samples.
        neighbours: "replace-one", "zero-out" or "add-remove", as in `FederatedLogisticRegression`.
        shape: Shape of one record; None is that of X.
        tokens: As in `torch_objective`.
        device: The same.
        autocast: The same.
        ledger: The account of the records: a `Ledger`, or the path of one. It is charged with all steps at
            once, and remembers every answer, so that a run goes on after a crash. Excludes `random_state`.
        run: Name of the run in the ledger; the same name goes on with the run. None makes one.
        random_state: Seed of a simulation; None takes secret randomness from the operating system, and exact
            noise of whole numbers.

    Attributes:
        taken: Steps so far.
        steps: Steps in all.
        noise_multiplier: Standard deviation of the noise over what a record can change; 0 without budget.
        guarantee_: Of all steps, whoever sees every gradient.
        run: Name of the run.

    Raises:
        TacitError: The extra `tacit[torch]` is not installed.
        ParameterError: An argument is out of range, or `optimizer` is of other parameters; nothing is spent.
        BudgetError: The ledger has less left than the steps cost; nothing is spent.
        LedgerError: The ledger cannot be used, or knows the run with other steps; nothing is spent.

    Example:
        >>> import numpy as np, pytest
        >>> torch = pytest.importorskip("torch")
        >>> from tacit.learning import Logistic, PrivateOptimizer
        >>> from tacit.privacy import PrivacyBudget
        >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
        >>> y = X[:, 0] + X[:, 1] > 0
        >>> module = torch.nn.Linear(2, 1)
        >>> private = PrivateOptimizer(
        ...     torch.optim.SGD(module.parameters(), lr=2.0, momentum=0.5), module, Logistic(), X, y,
        ...     steps=30, budget=PrivacyBudget(1.0, 1e-6), clip=1.0, batch=400, random_state=0,
        ... )
        >>> for _ in private:
        ...     private.step()
        >>> found = module(torch.tensor(X, dtype=torch.float32))[:, 0] > 0
        >>> bool((found.numpy() == y).mean() > 0.95), private.guarantee_.epsilon
        (True, 1.0)

    Reference:
        Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016), Algorithm 1.
    """

    def __init__(
        self,
        optimizer: Any,
        module: Any,
        loss: Loss | Callable[..., Any],
        X: Any,
        y: Any,
        *,
        steps: int,
        budget: PrivacyBudget | None,
        clip: float,
        batch: Batch | float | str = "full",
        neighbours: str = "replace-one",
        shape: Sequence[int] | None = None,
        tokens: int | None = None,
        device: str = "cpu",
        autocast: bool = False,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        run: str | None = None,
        random_state: int | None = None,
    ) -> None:
        rows, labels = _numbers("X", X), _numbers("y", y)
        if rows.ndim < 2 or not rows.size or labels.shape != (len(rows),):
            raise ParameterError(
                f"X must have shape (n, ...) and y (n,), n >= 1, got {rows.shape} and {labels.shape}."
            )
        self.steps, self.taken = check_count("steps", steps), 0
        objective = ModuleObjective(
            module, loss, shape=shape or rows.shape[1:], tokens=tokens, device=device, autocast=autocast
        )
        self._parameters = [one for one in module.parameters() if one.requires_grad]
        self._optimizer = _of(optimizer, self._parameters)
        relation = Relation(check_choice("neighbours", neighbours, [*Relation]))
        if ledger is not None and (random_state is not None or budget is None):
            raise ParameterError(
                "ledger needs a budget and no random_state: seeded noise protects nobody, and what has no "
                "noise has no price."
            )
        simulates = random_state is not None or budget is None
        settings = Settings(
            objective=objective,
            algorithm=NoisyMinibatchSGD(
                rounds=self.steps, batch=_batch(batch, relation), step_size=1.0, average=1.0
            ),
            trust=None if budget is None else TrustModel.LOCAL,
            budget=budget,
            relation=relation,
            clip=check_positive("clip", clip),
            noise="gaussian" if simulates else "discrete-gaussian",
            run=new_run("optimizer") if run is None else run,
            encoding=_fingerprint(module, loss),
        )
        self.run, self._clip, self._keeps = settings.run, float(clip), ledger is not None
        records = Records.of(rows.reshape(len(rows), -1).astype(np.float64), labels.astype(np.float64))
        prepared = prepare(settings, [len(records)])
        self.noise_multiplier, self._one_at_a_time = prepared.noise_multiplier, Lock()
        self._ask, self._open = _opened(settings, prepared.plan, records, ledger=ledger, seed=random_state)
        if budget is not None:
            warn_of_weak(budget.epsilon, budget.delta, units=len(records))
        if budget is not None and ledger is None and random_state is None:
            fits_of_this_process.warn(records.X, budget, stacklevel=2)
        self.guarantee_: Guarantee = self._ask.guarantees[0]

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers of the steps that are left."""
        return iter(range(self.taken, self.steps))

    def step(self) -> None:
        """Ask for the next noisy gradient at the parameters as they are, and let the optimiser step along it.

        Raises:
            ParameterError: All steps that were paid for are taken.
        """
        with self._one_at_a_time:
            self._step()

    def _step(self) -> None:
        """Take a step while no other thread does."""
        if self.taken >= self.steps:
            raise ParameterError(
                f"steps must be more than {self.steps} to take another: all that were paid for are taken."
            )
        import torch

        with torch.no_grad():
            w = torch.cat([one.reshape(-1) for one in self._parameters]).double().cpu().numpy()
        (gradient,) = self._ask(self.taken, {"w": w}, (self._clip,))
        whole, at = torch.as_tensor(gradient), 0
        for one in self._parameters:
            one.grad = whole[at : at + one.numel()].reshape(one.shape).to(one)
            at += one.numel()
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.taken += 1

    def zero_grad(self) -> None:
        """Do nothing: every step sets gradients anew. It is here for loops that call it."""

    def state_dict(self) -> dict[str, Any]:
        """Return what goes on with the run later, with the parameters; `torch.save` keeps it."""
        return {
            "run": self.run,
            "taken": self.taken,
            "steps": self.steps,
            "parameters": [one.detach().cpu().clone() for one in self._parameters],
            "optimizer": self._optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a state was saved, in another process too, at no further cost.

        Steps that were taken after the state was saved are taken again, with the answers that the ledger
        remembers, which show nothing new.

        Args:
            state: Of `state_dict`, of an optimiser with the same arguments and the same `run`.

        Raises:
            ParameterError: There is no ledger, so that nobody knows what was answered since; or the state is
                of another run, or of other parameters.
        """
        if not self._keeps and self.guarantee_.epsilon < float("inf") and not self.guarantee_.simulated:
            raise ParameterError(
                "ledger must be given to go on with a run: without one, nobody knows which answers have been "
                "given since the state was saved."
            )
        if not {"run", "taken", "steps", "parameters", "optimizer"} <= {*state}:
            raise ParameterError("state must be of the `state_dict` of a PrivateOptimizer.")
        if (state["run"], state["steps"]) != (self.run, self.steps):
            raise ParameterError(
                f"state must be of the run {self.run!r} of {self.steps} steps, got {state['run']!r} of "
                f"{state['steps']}: make the optimiser with that run= and steps=."
            )
        given = state["parameters"]
        if [tuple(one.shape) for one in given] != [tuple(one.shape) for one in self._parameters]:
            raise ParameterError("state must be of parameters of the same shapes.")
        import torch

        with torch.no_grad():
            for one, kept in zip(self._parameters, given, strict=True):
                one.copy_(kept)
        self._optimizer.load_state_dict(state["optimizer"])
        self.taken = int(state["taken"])

    def close(self) -> None:
        """Close the ledger; no step can be taken afterwards."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(
    settings: Settings,
    plan: Plan,
    records: Records,
    *,
    ledger: Ledger | str | os.PathLike[str] | None,
    seed: int | None,
) -> tuple[InProcessRounds, ExitStack]:
    """Return a federation of one silo that answers a plan, paid for; and its ledger, still to be closed."""
    with ExitStack() as opened:
        accounts = None
        if ledger is not None:
            accounts = opened.enter_context(Accounts.open(place_of(ledger), [_NAME]))
        federation = silos_for(
            settings,
            [records],
            names=[_NAME],
            seed=seed,
            ledgers=None if accounts is None else accounts.silos,
            data_ledger=None if accounts is None else accounts.data,
        )
        return federation.open(plan, run=settings.run, budget=settings.budget), opened.pop_all()


def _numbers(name: str, values: Any) -> Array:
    """Return an array of numbers, of a tensor too."""
    if hasattr(values, "toarray"):
        raise ParameterError(f"{name} must be dense, got a {type(values).__name__}: give {name}.toarray().")
    try:
        found = np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)
    except (TypeError, ValueError):
        found = np.asarray(None)
    if found.dtype.kind == "O" and not hasattr(values, "shape"):
        raise ParameterError(
            f"{name} must be an array or a tensor of all records, got a {type(values).__name__}: batches are "
            "drawn afresh from all of them, so no loader is needed."
        )
    if found.dtype.kind not in "fiub":
        raise ParameterError(f"{name} must hold numbers, got dtype {found.dtype}.")
    return found


def _fingerprint(module: Any, loss: Any) -> str:
    """Return what tells a module and a loss from others, so that no run goes on with another one."""
    parameters = [(name, tuple(one.shape), one.requires_grad) for name, one in module.named_parameters()]
    return hashlib.sha256(f"{module}{parameters}{_called(loss)}".encode()).hexdigest()


def _called(loss: Any) -> str:
    """Return what a loss or an option of it is called, with its own; the same in every process."""
    if isinstance(loss, partial):
        return f"{_called(loss.func)}{_called(loss.args)}{_called(loss.keywords)}"
    if isinstance(loss, tuple | list):
        return str([_called(one) for one in loss])
    if isinstance(loss, dict):
        return str([(name, _called(one)) for name, one in sorted(loss.items())])
    if hasattr(loss, "state_dict"):  # a loss of PyTorch, or one like it
        options = {k: v for k, v in vars(loss).items() if isinstance(v, str | int | float)}
        return f"{type(loss).__qualname__}{_called(options)}{_called(dict(loss.state_dict()))}"
    if hasattr(loss, "detach"):  # a tensor is printed in parts
        return _called(loss.detach().cpu().double().numpy())
    if isinstance(loss, np.ndarray):
        return f"{loss.shape}{loss.dtype}{hashlib.sha256(loss.tobytes()).hexdigest()}"
    if isinstance(loss, msgspec.Struct | np.generic | str | int | float | None):
        return repr(loss)
    return str(getattr(loss, "__qualname__", type(loss).__qualname__))


def _batch(batch: Batch | float | str, relation: Relation) -> Batch:
    """Return the batch of a step; samples of a fixed size are for records that are replaced."""
    if not isinstance(batch, int | float | str):
        return batch
    if relation is Relation.REPLACE_ONE:
        return read_batch("batch", batch)
    return read_batch("batch", batch, kind=Poisson)


def _of(optimizer: Any, parameters: Sequence[Any]) -> Any:
    """Return the optimiser, or refuse one that steps other parameters than those of the module."""
    groups = getattr(optimizer, "param_groups", None)
    if groups is None:
        raise ParameterError(f"optimizer must be a torch.optim.Optimizer, got {type(optimizer).__name__}.")
    stepped = {id(one) for group in groups for one in group["params"]}
    if not stepped <= {id(one) for one in parameters}:
        raise ParameterError("optimizer must be of parameters of the module that need a gradient.")
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ParameterError(
            f"optimizer must step along one gradient, and {type(optimizer).__name__} asks for the loss "
            "several times a step; take SGD or Adam."
        )
    return optimizer
