"""Sums of clipped gradients of PyTorch modules: beside Opacus, a loop over records, and no clipping at all.

Needs `tacit[torch]`; Opacus is measured where it can be imported, in the same process. All do the same job,
the sum of one batch's gradients, each clipped to norm 1. They take turns, and the least processor time of
each counts: ratios hold on a machine that others use too. On one processor only, and small: the ratios of a
large network on an accelerator are others.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case
from tacit.federation import InProcess, Measure, Plan, Silo, Step
from tacit.learning import Multinomial, NetworkObjective, Records, make_silos, torch_objective
from tacit.means import AdditiveMean, NoNoise

TORCH = importlib.util.find_spec("torch") is not None
OPACUS = TORCH and importlib.util.find_spec("opacus") is not None
CLASSES, SILOS, ROUNDS = 10, 25, 5
_LONGEST = 30
"""Seconds after which no more turns are taken."""


def _attention(nn: Any, torch: Any, width: int, heads: int) -> Any:
    class Block(nn.Module):
        """A layer of a transformer, of linear layers that all libraries know."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            n, at, _ = x.shape
            told = self.first(x)
            q, k, v = (
                one(told).view(n, at, heads, -1).transpose(1, 2) for one in (self.query, self.key, self.value)
            )
            seen = torch.softmax(q @ k.transpose(2, 3) / (width / heads) ** 0.5, dim=3) @ v
            x = x + self.out(seen.transpose(1, 2).reshape(n, at, width))
            return x + self.narrow(torch.relu(self.wide(self.second(x))))

    return Block()


def _residual(nn: Any, torch: Any, inside: int, outside: int, stride: int) -> Any:
    class Block(nn.Module):
        """Two convolutions and a way around them, with group normalisation."""

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            same = stride == 1 and inside == outside
            self.norms = nn.ModuleList([nn.GroupNorm(8, outside) for _ in range(2 if same else 3)])
            self.around = None if same else nn.Conv2d(inside, outside, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            found = self.norms[1](self.second(torch.relu(self.norms[0](self.first(x)))))
            return torch.relu(found + (x if self.around is None else self.norms[2](self.around(x))))

    return Block()


def _module(name: str, smoke: bool) -> tuple[Any, tuple[int, ...]]:
    """Return a module and the shape of a record."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    if name == "logistic":
        return nn.Sequential(nn.Linear(784, CLASSES)), (784,)
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, CLASSES)), (784,)
    if name == "cnn":  # of Opacus' example on MNIST
        layers = [nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)]
        layers += [nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, CLASSES)), (1, 28, 28)
    if name == "resnet18":
        wide = [8, 16] if smoke else [64, 128, 256, 512]
        layers, inside = (
            [nn.Conv2d(3, wide[0], 3, 1, 1, bias=False), nn.GroupNorm(8, wide[0]), nn.ReLU()],
            wide[0],
        )
        for k, outside in enumerate(wide):
            layers += [_residual(nn, torch, inside, outside, 1 if k == 0 else 2)]
            layers += [_residual(nn, torch, outside, outside, 1)]
            inside = outside
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, CLASSES)), (
            3,
            32,
            32,
        )
    width, at = 64, 32
    blocks = [_attention(nn, torch, width, 4) for _ in range(1 if smoke else 4)]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(width * at, CLASSES)), (at, width)


def _opacus(module: Any, x: Any, y: Any) -> dict[str, Callable[[], object]]:
    """Return both modes of Opacus."""
    import torch
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    warnings.filterwarnings("ignore", "Full backward hook is firing")  # said anew in every turn
    loss, facts = torch.nn.CrossEntropyLoss(), {"noise_multiplier": 1.0, "max_grad_norm": 1.0}
    first, second = _copies(module, 2)
    hooked = GradSampleModule(first)
    plain = DPOptimizer(torch.optim.SGD(hooked.parameters(), lr=0.0), expected_batch_size=len(x), **facts)
    ghost = GradSampleModuleFastGradientClipping(second, max_grad_norm=1.0, use_ghost_clipping=True)
    fast = DPOptimizerFastGradientClipping(
        torch.optim.SGD(ghost.parameters(), lr=0.0), expected_batch_size=len(x), **facts
    )
    criterion = DPLossFastGradientClipping(ghost, fast, loss)

    def hooks() -> None:
        plain.zero_grad()
        loss(hooked(x), y).backward()
        plain.clip_and_accumulate()

    def ghosts() -> None:
        fast.zero_grad()
        criterion(ghost(x), y).backward()
        fast.accumulate()

    return {"opacus_hooks": hooks, "opacus_ghost": ghosts}


def _copies(module: Any, n: int) -> list[Any]:
    from copy import deepcopy

    return [deepcopy(module) for _ in range(n)]


def _speed(name: str, batch: int, smoke: bool) -> dict[str, float]:
    if not TORCH:
        return {}
    import torch

    torch.set_num_threads(1)
    batch = min(batch, 8) if smoke else batch
    module, shape = _module(name, smoke)
    x, y = torch.randn(batch, *shape), torch.randint(CLASSES, (batch,))
    each = partial(torch.nn.functional.cross_entropy, reduction="none")
    objective = torch_objective(module, each, shape=shape, chunk=min(batch, 256))
    w, records = objective.start(), Records.of(x.flatten(1).numpy(), y.numpy().astype(np.float32))
    (bare,) = _copies(module, 1)

    def unclipped() -> None:
        bare.zero_grad()
        each(bare(x), y).mean().backward()

    def loop() -> None:
        for i in range(few):
            rows = torch.autograd.grad(each(bare(x[i : i + 1]), y[i : i + 1]).sum(), list(bare.parameters()))
            length = sum(row.square().sum() for row in rows).sqrt()
            for row in rows:
                row.mul_(torch.clamp(1 / length, max=1.0))

    few = min(batch, 16)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "tacit": (lambda: objective.clipped_sum(w, records, 1.0, np.float32), batch),
        "tacit_exact": (lambda: objective.clipped_sum(w, records, 1.0), batch),
        "unclipped": (unclipped, batch),
        "loop": (loop, few),
    }
    if OPACUS:
        ways |= {mode: (way, batch) for mode, way in _opacus(module, x, y).items()}
    return _turns(ways, 1 if smoke else 30)


def _turns(ways: dict[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, float]:
    """Return records a second of processor time of each, and how many times as fast is ours."""
    least = dict.fromkeys(ways, np.inf)
    begun = time.process_time()
    for k in range(rounds + 1):  # the first to warm up
        if k > 2 and time.process_time() - begun > _LONGEST:
            break
        for name, (way, _) in ways.items():
            start = time.process_time()
            way()
            if k > 0:
                least[name] = min(least[name], time.process_time() - start)
    found = {name: records / least[name] for name, (_, records) in ways.items()}
    ratios = {f"over_{name}": found["tacit"] / found[name] for name in found if not name.startswith("tacit")}
    if OPACUS:
        ratios["over_opacus"] = min(ratios["over_opacus_hooks"], ratios["over_opacus_ghost"])
    return found | ratios


_LARGE = r"""
import json, re, sys
from pathlib import Path
from functools import partial
import numpy as np, torch
from tacit.learning import Records, torch_objective
nn, wide, batch = torch.nn, *map(int, sys.argv[1:])
module = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.MaxPool2d(4),
    nn.Conv2d(32, wide // 4, 3, padding=1), nn.ReLU(), nn.Flatten(),
    nn.Linear(16 * wide, wide), nn.ReLU(), nn.Linear(wide, 10))
objective = torch_objective(module, partial(nn.functional.cross_entropy, reduction="none"), shape=(3, 32, 32))
rng = np.random.default_rng(0)
records = Records.of(rng.standard_normal((batch, 3072), dtype=np.float32), rng.integers(10, size=batch))
w = objective.start()
for dtype in (np.float32, np.float64):
    objective.clipped_sum(w, records, 1.0, dtype)
# Of this process alone: what getrusage says starts at what its parent held.
peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps({"parameters": objective.size, "batch": batch, "megabytes": peak}))
"""


def _memory(smoke: bool) -> dict[str, float]:
    if not TORCH:
        return {}
    wide, batch = ("64", "8") if smoke else ("780", "256")
    found = subprocess.run(
        [sys.executable, "-c", _LARGE, wide, batch], capture_output=True, text=True, check=True
    )
    return dict(json.loads(found.stdout.splitlines()[-1]))


class _Apart:
    """A silo that a federation does not know for one, so that it adds up its records by itself."""

    def __init__(self, silo: Silo) -> None:
        self._silo = silo

    def __getattr__(self, name: str) -> Any:
        return getattr(self._silo, name)


def _silos(smoke: bool) -> dict[str, float]:
    """Rounds of silos of one process that are added up together, and one by one; both have the same model."""
    found: dict[str, float] = {}
    for name, (objective, w, shape) in _networks().items():
        least: dict[str, float] = dict.fromkeys(("joined", "apart"), np.inf)
        ends: dict[str, Any] = {}
        for _ in range(1 if smoke else 5):  # in turn
            for way in least:
                took, ends[way] = _rounds(objective, w, shape, apart=way == "apart")
                least[way] = min(least[way], took)
        np.testing.assert_array_equal(ends["joined"], ends["apart"])
        found[f"{name}_rounds_per_second"] = ROUNDS / least["joined"]
        found[f"{name}_over_one_by_one"] = least["apart"] / least["joined"]
    return found


def _rounds(objective: Any, w: Any, shape: tuple[int, ...], *, apart: bool) -> tuple[float, Any]:
    """Return the processor time of some rounds, and where they end."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SILOS, 32, int(np.prod(shape))), dtype=np.float32)
    records = [Records.of(x, rng.integers(CLASSES, size=32)) for x in X]
    mean = AdditiveMean(dim=objective.size, noise=NoNoise(), on_violation="clip")
    step = Step(measures=(Measure(statistic="gradient", estimator=mean, max_radius=1.0),))
    silos: list[Any] = list(make_silos(records, objective, trusts_server=True, seed=0))
    parties = [_Apart(silo) for silo in silos] if apart else silos
    ask, start = InProcess(parties).open(Plan(steps=((step, ROUNDS + 1),), parties=SILOS)), 0.0
    for r in range(ROUNDS + 1):
        w = w - ask(r, {"w": w}, (1.0,))[0]
        start = time.process_time() if r == 0 else start  # the first to warm up
    return time.process_time() - start, w


def _networks() -> dict[str, tuple[Any, Any, tuple[int, ...]]]:
    """Return networks, where they start and the shape of a record; some need no PyTorch."""
    found: dict[str, tuple[Any, Any, tuple[int, ...]]] = {}
    for name, features, hidden in (("narrow", 30, 16), ("hidden", 784, 64)):
        own = NetworkObjective(loss=Multinomial(), features=features, hidden=hidden, outputs=CLASSES)
        found[name] = (own, own.start(), (features,))
    if TORCH:
        import torch
        from torch import nn

        torch.set_num_threads(1)
        first, second = nn.Linear(784, 64), nn.Linear(64, 32)
        deep = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(32, CLASSES))
        for name, (module, shape) in {"deep": (deep, (784,)), "cnn": _module("cnn", smoke=True)}.items():
            objective = torch_objective(module, Multinomial(), shape=shape)
            found[name] = (objective, objective.start(), shape)
    return found


def _say_silos(measured: dict[str, float]) -> str:
    names = [name.removesuffix("_over_one_by_one") for name in measured if name.endswith("one_by_one")]
    said = [
        f"{name} {measured[f'{name}_over_one_by_one']:.2f} x ({measured[f'{name}_rounds_per_second']:.0f}/s)"
        for name in names
    ]
    return f"{', '.join(said)} one by one"


def _say(measured: dict[str, float]) -> str:
    if not measured:
        return "PyTorch is not installed"
    peer = "Opacus is not installed"
    if "over_opacus" in measured:
        hooks, ghost = measured["over_opacus_hooks"], measured["over_opacus_ghost"]
        peer = f"{hooks:.1f} x Opacus' hooks, {ghost:.2f} x its ghosts"
    return (
        f"{measured['tacit']:,.0f} records/s (exact {measured['tacit_exact']:,.0f}): {peer}, "
        f"{measured['over_loop']:.1f} x a loop, {measured['over_unclipped']:.2f} x no clipping"
    )


CASES = (
    Case("neural/mlp", "twice Opacus' better mode", partial(_speed, "mlp", 256), _say),
    Case("neural/cnn", "twice Opacus' better mode", partial(_speed, "cnn", 256), _say),
    Case("neural/logistic", "1.5 times Opacus' ghost mode", partial(_speed, "logistic", 256), _say),
    Case("neural/resnet18", "1.5 times Opacus' better mode", partial(_speed, "resnet18", 16), _say),
    Case("neural/transformer", "1.5 times Opacus' better mode", partial(_speed, "transformer", 64), _say),
    Case("neural/silos", "faster than 25 silos of 32 records one by one", _silos, _say_silos),
    Case(
        "neural/memory",
        "ten million parameters, a batch of 256, in less than 2 GB",
        _memory,
        lambda m: (
            f"{m['parameters']:,.0f} parameters, {m['batch']:.0f} records: {m['megabytes']:,.0f} MB in all"
            if m
            else "PyTorch is not installed"
        ),
    ),
)
