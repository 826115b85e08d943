"""Named data sets: embedded ones always, the others where TACIT_DATA_HOME says they are."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from tacit.data import data_home, describe, load, names, split_by_pairs
from tacit.data.readers import READERS, read_idx
from tacit.errors import DataError, ParameterError, UnknownNameError

EMBEDDED = [name for name in names() if describe(name).embedded]
TABLES = sorted(READERS)
# Counted on the published files: share of the second class, or of the first three.
SHARES = {
    "adult": 11_687 / 48_842,
    "compas": 0.4704,
    "credit-default": 0.2212,
    "german": 0.70,
    "parkinsons": 0.4994,
}


def needs(name: str) -> None:
    """Skip where the data set's required files are not at hand."""
    info = describe(name)
    if "TACIT_DATA_HOME" not in os.environ:
        pytest.skip("TACIT_DATA_HOME is not set")
    if not all((data_home() / info.folder / file.name).is_file() for file in info.files if file.required):
        pytest.skip(f"{name} is not in TACIT_DATA_HOME")


def write_idx(path: Path, array: np.ndarray) -> None:
    header = b"\x00\x00\x08" + bytes([array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def fake_images(folder: Path, prefix: str, n: int) -> np.ndarray:
    """Write n images whose first pixel is their number, and their labels."""
    folder.mkdir(parents=True, exist_ok=True)
    images = np.zeros((n, 2, 2))
    images[:, 0, 0] = np.arange(n)
    images[:, 1, 1] = 255
    labels = np.arange(n) % 10
    write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images)
    write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", labels)
    return labels


def test_names_and_descriptions() -> None:
    assert len(names()) == 14
    assert names() == sorted(names())
    with pytest.raises(UnknownNameError, match="did you mean 'digits'"):
        describe("digit")
    for name in names():
        info = describe(name)
        assert info.embedded == (not info.files)
        assert all(len(checksum) == 64 for file in info.files for checksum in file.sha256)


def test_data_home_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TACIT_DATA_HOME", str(tmp_path))
    assert data_home() == tmp_path
    monkeypatch.delenv("TACIT_DATA_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_home() == tmp_path / "cache" / "tacit" / "data"
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert data_home() == tmp_path / ".cache" / "tacit" / "data"


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_have_the_stated_shape_and_bounds(name: str) -> None:
    data, info = load(name), describe(name)
    assert data.X.shape == (info.rows, info.n_features)
    assert data.X.dtype == np.float64
    assert len(data.feature_names) == data.dim
    # Not clipped: the public bounds hold the published values.
    assert np.abs(data.X).max() <= 1
    assert sorted(np.unique(data.y)) == list(range(len(data.classes)))
    assert data.notes == ()


def test_parity_is_of_the_digit() -> None:
    digits, parity = load("digits"), load("digits-odd-even")
    np.testing.assert_array_equal(parity.y, digits.y % 2)
    assert parity.groups is not None
    np.testing.assert_array_equal(parity.groups, digits.y)
    assert digits.X.min() == 0.0
    assert digits.X.max() == 1.0
    silos = split_by_pairs(parity.groups)
    assert len(silos) == 25
    assert sum(map(len, silos)) == 1797


def test_breast_cancer_is_malignant_in_212_cases() -> None:
    data = load("breast-cancer")
    assert data.classes == ("malignant", "benign")
    assert np.bincount(data.y).tolist() == [212, 357]


def test_columns_are_chosen_by_name() -> None:
    data = load("breast-cancer", columns=["worst area", "mean radius"])
    assert data.feature_names == ("worst area", "mean radius")
    with pytest.raises(UnknownNameError, match="did you mean 'mean radius'"):
        load("breast-cancer", columns=["mean radiu"])
    with pytest.raises(ParameterError, match="distinct"):
        load("breast-cancer", columns=["mean radius", "mean radius"])
    with pytest.raises(ParameterError, match="images of digits"):
        load("digits", columns=["pixel 0"])


def test_subset_keeps_rows_together() -> None:
    data = load("digits-odd-even")
    some = data.subset([5, 2])
    np.testing.assert_array_equal(some.X, data.X[[5, 2]])
    assert some.groups is not None
    assert some.groups.tolist() == [5, 2]
    assert some.y.tolist() == [1, 0]
    with pytest.raises(ParameterError, match="from 0 to 1796"):
        data.subset([1797])
    with pytest.raises(ParameterError, match="vector of integers"):
        data.subset([0.5])


def test_test_images_stand_in_and_say_so(tmp_path: Path) -> None:
    labels = fake_images(tmp_path / "mnist", "t10k", 100)
    data = load("mnist", home=tmp_path, verify=False)
    assert "stand in" in data.notes[0]
    order = np.random.default_rng(0).permutation(100)
    assert data.train is not None
    assert data.test is not None
    np.testing.assert_array_equal(data.train, np.sort(order[:80]))
    np.testing.assert_array_equal(data.test, np.sort(order[80:]))
    np.testing.assert_array_equal(data.y, labels)
    np.testing.assert_allclose(data.X[:, 0] * 255, np.arange(100), rtol=1e-12)


def test_training_images_are_used_where_they_are(tmp_path: Path) -> None:
    fake_images(tmp_path / "mnist", "t10k", 20)
    fake_images(tmp_path / "mnist", "train", 50)
    data = load("mnist-odd-even", home=tmp_path, verify=False)
    assert data.notes == ()
    assert data.train is not None
    assert data.test is not None
    assert (data.train.tolist(), data.test.tolist()) == (list(range(50)), list(range(50, 70)))
    np.testing.assert_array_equal(data.y[:50], np.arange(50) % 2)


def test_files_that_are_not_the_registered_ones_are_refused(tmp_path: Path) -> None:
    fake_images(tmp_path / "mnist", "t10k", 20)
    with pytest.raises(DataError, match=r"t10k-images.*has SHA-256.*verify=False"):
        load("mnist", home=tmp_path)
    with pytest.raises(DataError, match=r"fashion-mnist needs t10k-images.*TACIT_DATA_HOME/fashion-mnist"):
        load("fashion-mnist", home=tmp_path, download=False)
    fake_images(tmp_path / "mnist", "t10k", 20)
    write_idx(tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz", np.zeros(19))
    with pytest.raises(DataError, match="do not belong together"):
        load("mnist", home=tmp_path, verify=False)


TOO_SHORT = gzip.compress(b"\x00\x00\x08\x01\x00\x00\x00\x05abc", mtime=0)


@pytest.mark.parametrize("content", [b"", b"no gzip", TOO_SHORT])
def test_broken_idx_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.gz"):
        read_idx(path)


@pytest.mark.parametrize("name", TABLES)
def test_published_tables_have_the_stated_shape_and_lie_in_their_public_bounds(name: str) -> None:
    needs(name)
    data, info = load(name, download=False), describe(name)
    assert data.X.shape == (info.rows, info.n_features)
    assert np.abs(data.X).max() <= 1
    assert tuple(data.sensitive) == info.sensitive
    assert all(values.shape == (data.n,) for values in data.sensitive.values())
    spread = data.X.max(axis=0) - data.X.min(axis=0)
    assert spread.min() > 0  # no category without a record
    if name in SHARES:
        assert data.y.mean() == pytest.approx(SHARES[name], abs=1e-4)


def test_adult_halves_and_choice_of_columns() -> None:
    needs("adult")
    data = load("adult", download=False)
    assert data.train is not None
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (32_561, 16_281)
    assert data.y[data.train].mean() == pytest.approx(0.2408, abs=1e-4)
    assert data.y[data.test].mean() == pytest.approx(0.2362, abs=1e-4)
    assert (data.sensitive["gender"] == "Female").mean() == pytest.approx(0.3315, abs=1e-4)
    assert not {"race", "gender", "native-country"} & set(data.feature_columns)
    assert load("adult", columns=["age", "race"], download=False).dim == 6


def test_other_published_facts() -> None:
    for name in ("parkinsons", "communities", "obesity", "insurance", "german"):
        needs(name)
    parkinsons = load("parkinsons", download=False)
    assert parkinsons.persons is not None
    assert len(np.unique(parkinsons.persons)) == 42
    assert parkinsons.y[parkinsons.sensitive["sex"] == "male"].mean() == pytest.approx(0.5147, abs=1e-4)
    shares = np.bincount(load("communities", download=False).y) / 1994
    np.testing.assert_allclose(shares, [0.341, 0.332, 0.327], atol=6e-4)
    assert np.bincount(load("obesity", download=False).y).min() > 211
    assert load("insurance", download=False).label_bounds == (0.0, 70_000.0)
    german = load("german", download=False)
    assert (german.sensitive["gender"] == "female").mean() == pytest.approx(0.310)
    assert german.y[german.sensitive["gender"] == "female"].mean() == pytest.approx(0.648, abs=5e-4)


def test_mnist_stand_in() -> None:
    needs("mnist")
    data = load("mnist-odd-even", download=False)
    assert data.dim == 784
    assert (data.X.min(), data.X.max()) == (0.0, 1.0)
    if data.notes:
        assert data.n == 10_000
        assert data.train is not None
        assert len(data.train) == 8000
