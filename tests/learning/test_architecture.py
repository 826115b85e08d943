"""Models by name: how they are written, what they become, and what is refused."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, TacitError
from tacit.learning import FeatureMap, LinearObjective, NetworkObjective
from tacit.learning.architecture import MODELS, Architecture
from tacit.learning.objective import Records

HAS_TORCH = importlib.util.find_spec("torch") is not None
PIXELS = FeatureMap(lower=np.zeros(64), upper=np.ones(64))


def task(name: str, **facts: Any) -> Any:
    return Architecture.of(name).task(PIXELS, **{"classes": np.arange(3), **facts})


@pytest.mark.parametrize("name", MODELS)
def test_names_are_read_and_written(name: str) -> None:
    found = Architecture.of(name)
    assert str(found) == name.removesuffix("@pixels")  # what sees any numbers is named as such
    assert msgspec.json.decode(msgspec.json.encode(found), type=Architecture) == found


@pytest.mark.parametrize(
    "name",
    [
        "",
        "mlp",
        "mlp:",
        "mlp:0",
        "mlp:64,",
        "mlp:-3",
        "mlp:1e9",
        "cnn:3",
        "scattering:3",
        "os:",
        ":Net",
        "a b:C",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="model must look like one of"):
        Architecture.of(name)


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"model must be a name that looks like one of .*, got 3\.$"):
        Architecture.of(3)  # type: ignore[arg-type]


def test_what_names_become() -> None:
    assert isinstance(task("linear").objective, LinearObjective)
    scattered = task("scattering")
    assert isinstance(scattered.objective, LinearObjective)
    assert scattered.objective.features == scattered.features.size == 17 * 4 + 1
    assert task("scattering:2").features.size == 81 * 4 + 1
    network = task("mlp:7").objective
    assert isinstance(network, NetworkObjective)
    assert (network.hidden, network.outputs, network.features) == (7, 3, 65)


@pytest.mark.skipif(not HAS_TORCH, reason="needs tacit[torch]")
def test_a_convolutional_network_is_nearly_linear_in_wavelet_features() -> None:
    """Without its filters it is the linear model of them, and steps go as far as those of that."""
    made, rows = task("cnn"), np.random.default_rng(0).uniform(size=(5, 64))
    features, waves = made.features(rows), task("scattering").features(rows)
    np.testing.assert_allclose(features, waves * np.sqrt(69), rtol=1e-12)
    module = made.objective.module(made.start).module
    assert np.abs(made.predictions(made.start, features)).max() < 1
    bent = sum(p.numel() for p in [*module.filters.parameters(), *module.bent.parameters()])
    w = np.concatenate([np.zeros(bent), np.arange(68.0 * 3)])
    expected = 0.5 * features[:, :-1] @ np.arange(68.0 * 3).reshape(3, 68).T
    np.testing.assert_allclose(made.predictions(w, features), expected, rtol=1e-4, atol=1e-3)
    large: Any = Architecture.of("cnn").task(
        FeatureMap(lower=np.zeros(784), upper=np.ones(784)), classes=np.arange(10)
    )
    assert large.objective.size == 13_364
    assert large.objective.straight_norm == pytest.approx(0.5 * np.sqrt(834))
    colours: Any = Architecture.of("cnn").task(
        FeatureMap(lower=np.zeros(3072), upper=np.ones(3072)), classes=np.arange(2)
    )
    assert colours.objective.features == 3 * 17 * 64 + 1


def test_rows_of_networks_are_about_one_in_each_feature() -> None:
    rows = task("mlp:7").features(np.random.default_rng(0).uniform(size=(5, 64)))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.sqrt(65))


@pytest.mark.skipif(not HAS_TORCH, reason="needs tacit[torch]")
@pytest.mark.parametrize("name", ["mlp:7,5", "cnn"])
def test_networks_of_pytorch_predict_and_start_from_their_seed(name: str) -> None:
    first, again, other = (task(name, start_seed=seed) for seed in (1, 1, 2))
    assert (first.start == again.start).all()
    assert (first.start != other.start).any()
    rows = first.features(np.random.default_rng(0).uniform(size=(5, 64)))
    assert first.predictions(first.start, rows).shape == (5, 3)
    assert task(name, classes=np.arange(2)).predictions(
        task(name, classes=np.arange(2)).start, rows
    ).shape == (5,)
    records = Records.of(rows, np.arange(5.0) % 3)
    total = first.objective.clipped_sum(first.start, records, 0.1, np.float64)
    assert 0 < np.linalg.norm(total) <= 0.5


OWN = """
from torch import nn
class Net(nn.Sequential):
    input_shape = (1, 8, 8)
    def __init__(self):
        super().__init__(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
class Wide(nn.Linear):
    def __init__(self, wide):
        super().__init__(wide, 3)
class Few(nn.Linear):
    def __init__(self):
        super().__init__(64, 2)
class Short(nn.Linear):
    def __init__(self):
        super().__init__(63, 3)
class Certain(nn.Module):
    def __init__(self):
        super().__init__()
        self.say = nn.Linear(64, 3)
    def forward(self, x):
        return self.say(x).softmax(1).reshape(-1, 3)
number = 3
"""


@pytest.mark.skipif(not HAS_TORCH, reason="needs tacit[torch]")
def test_a_module_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_networks.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", ".")])
    found = task("own_networks:Net")
    assert found.objective.size == 2 * 10 + 72 * 3 + 3
    assert "" not in sys.path
    for name, message in {
        "own_networks:Missing": "model must name code that is there",
        "nobodys_networks:Net": "model must name code that is there",
        "own_networks:number": "must name a class of torch.nn.Module",
        "own_networks:Wide": "must be made without arguments",
        "own_networks:Few": "module must return 3 scores per record, got 2",
        "own_networks.py:Net": "leave out '.py'",
        "own_networks:Short": "module does not run on records of shape",
        "own_networks:Certain": "it ends in a softmax, which makes them probabilities",
        "builtins:dict": "must name a class of torch.nn.Module",
    }.items():
        with pytest.raises(Exception, match=message) as caught:
            task(name)
        assert type(caught.value).__module__ == "tacit.errors"


@pytest.mark.parametrize("name", ["mlp:3,3", "cnn", "own_networks:Net"])
def test_networks_that_need_pytorch_say_how_it_is_installed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = importlib.import_module("tacit.learning.modules")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tacit.learning.modules.architectures", raising=False)
    monkeypatch.delattr(modules, "architectures", raising=False)
    with pytest.raises(TacitError, match=r"needs PyTorch; `pip install 'tacit\[torch\]'`"):
        task(name)


def test_images_are_square() -> None:
    bounded = FeatureMap(lower=np.zeros(30), upper=np.ones(30))
    for name in ("scattering", "cnn") if HAS_TORCH else ("scattering",):
        with pytest.raises(ParameterError, match="square ones"):
            Architecture.of(name).task(bounded, classes=np.arange(2))
