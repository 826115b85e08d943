"""Presets of fair learning: shapes, shares and scaling as published, and errors on them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from tacit.data import (
    DATASETS,
    PRESETS,
    Preset,
    data_home,
    encode_columns,
    load,
    load_prepared,
    load_preset,
    prepared_names,
)
from tacit.errors import ParameterError, UnknownNameError
from tests.data.test_datasets import fake_images, needs

TABLES = [name for name in PRESETS if name != "color-mnist"]


@functools.cache
def preset(name: str, seed: int = 0, **options: Any) -> Preset:
    """Return a preset; nobody writes into it."""
    needs(PRESETS[name].data_set)
    return load_preset(name, rng=np.random.default_rng(seed), download=False, **options)


def both(data: Preset) -> tuple[NDArray[np.int64], pd.DataFrame]:
    """Return labels and attributes of all records."""
    labels = np.concatenate([data.y_train, data.y_test])
    return labels, pd.concat([data.sensitive_train, data.sensitive_test], ignore_index=True)


def unfair(data: Preset, l2: float) -> tuple[float, float]:
    """Return the test error and the gap between groups of the model that is fitted without fairness."""
    model = LogisticRegression(C=1 / (l2 * len(data.X_train)), max_iter=1000).fit(data.X_train, data.y_train)
    said = model.predict(data.X_test)
    groups = data.sensitive_test.iloc[:, 0]
    rates = [(said[groups == group] == 1).mean() for group in groups.unique()]
    return float((said != data.y_test).mean()), float(max(rates) - min(rates))


@pytest.mark.parametrize("name", TABLES)
def test_halves_and_features_are_as_listed(name: str) -> None:
    data, info = preset(name), PRESETS[name]
    assert data.X_train.shape == (info.train, info.n_features) == (len(data.y_train), len(data.feature_names))
    assert data.X_test.shape == (info.test, info.n_features)
    assert data.X_train.dtype == data.X_test.dtype == np.float64
    for attributes, n in ((data.sensitive_train, info.train), (data.sensitive_test, info.test)):
        assert tuple(attributes.columns) == data.sensitive_names == info.sensitive
        assert attributes.shape == (n, len(info.sensitive))
        assert list(attributes.index[:2]) == [0, 1]
    assert np.isin(data.y_test, range(len(data.classes))).all()


def test_numbers_of_features_are_those_of_the_published_experiments() -> None:
    found = {name: info.n_features for name, info in PRESETS.items()}
    assert found == {
        "adult-ch5": 59, "adult-ch6": 102, "credit-default": 85, "parkinsons": 19, "german": 57,
        "compas": 12, "communities": 100, "color-mnist": 3 * 784,
    }  # fmt: skip
    assert len(PRESETS["communities"].sensitive) == 18


@pytest.mark.parametrize("name", TABLES)
def test_only_training_records_standardise(name: str) -> None:
    data, public = preset(name), preset(name, scaling="public")
    assert np.abs(public.X_train).max() <= 1
    pd.testing.assert_frame_equal(data.sensitive_test, public.sensitive_test)
    np.testing.assert_array_equal(data.y_train, public.y_train)
    numbers = np.array(["=" not in feature for feature in data.feature_names])
    scaled = numbers if PRESETS[name].standardised == "numbers" else np.full(len(numbers), True)
    varied = scaled & (public.X_train.std(axis=0) > 0)
    np.testing.assert_allclose(data.X_train[:, varied].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(data.X_train[:, varied].std(axis=0), 1, atol=1e-9)
    assert np.abs(data.X_test[:, varied].mean(axis=0)).max() > 1e-4  # these are another half's
    np.testing.assert_array_equal(data.X_train[:, ~scaled], public.X_train[:, ~scaled])
    np.testing.assert_array_equal(data.X_test[:, ~scaled], public.X_test[:, ~scaled])
    if name != "communities":  # which has a gap that the mean fills
        mean, spread = public.X_train.mean(axis=0), public.X_train.std(axis=0)
        expected = (public.X_test - mean)[:, varied] / spread[varied]
        np.testing.assert_allclose(data.X_test[:, varied], expected, atol=1e-9)


def test_adult_of_chapter_five() -> None:
    data = preset("adult-ch5")
    assert data.y_train.mean() == pytest.approx(0.2408, abs=5e-5)
    assert data.y_test.mean() == pytest.approx(0.2362, abs=5e-5)
    gender = data.sensitive_train["gender"]
    assert (gender == "Female").mean() == pytest.approx(0.3308, abs=5e-5)
    for name, rate in (("Female", 0.1095), ("Male", 0.3057)):
        assert data.y_train[gender == name].mean() == pytest.approx(rate, abs=6e-5)
    assert set(data.sensitive_train["race"]) == {"White", "other"}
    assert data.sensitive_train.drop_duplicates().shape[0] == 4
    assert {"workclass=?", "occupation=?"} <= set(data.feature_names)
    for column, categories in (
        ("workclass", 9),
        ("education", 16),
        ("marital-status", 7),
        ("occupation", 15),
    ):
        assert sum(feature.startswith(f"{column}=") for feature in data.feature_names) == categories
    assert not [name for name in data.feature_names if name.startswith(("race", "gender", "native-country"))]


def test_adult_of_chapter_six_has_complete_records_only() -> None:
    data = preset("adult-ch6")
    labels, sensitive = both(data)
    assert len(labels) == 45_222
    assert data.y_train.mean() == pytest.approx(0.2481, abs=5e-5)
    assert (data.sensitive_train["gender"] == "Male").mean() == pytest.approx(0.674, abs=5e-4)
    assert (labels.sum(), (sensitive["gender"] == "Male").sum()) == (11_208, 30_527)
    assert not [name for name in data.feature_names if name.endswith("=?") or "Never-worked" in name]
    for column, categories in (("race", 5), ("native-country", 41), ("occupation", 14), ("workclass", 7)):
        mine = [at for at, name in enumerate(data.feature_names) if name.startswith(f"{column}=")]
        assert len(mine) == categories
        np.testing.assert_array_equal(data.X_train[:, mine].sum(axis=1), 1)  # so none is without a category


def test_credit_merges_undocumented_codes() -> None:
    data = preset("credit-default", scaling="public")
    labels, sensitive = both(data)
    assert labels.mean() == pytest.approx(0.2212, abs=5e-5)
    men = sensitive["sex"] == "male"
    assert men.mean() == pytest.approx(0.396, abs=5e-4)
    assert labels[men].mean() == pytest.approx(0.2417, abs=5e-5)
    assert labels[~men].mean() == pytest.approx(0.2078, abs=5e-5)
    raw = pd.read_csv(data_home() / "credit-default" / "UCI_Credit_Card.csv")
    for column, codes, other in (("X3", (0, 4, 5, 6), 4), ("X4", (0, 3), 3)):
        at = data.feature_names.index(f"{column}={other}")
        found = data.X_train[:, at].sum() + data.X_test[:, at].sum()
        assert found == raw[column].isin(codes).sum()
    months = {f"X{number}" for number in range(6, 12)}
    assert sum(feature.split("=")[0] in months for feature in data.feature_names) == 64


def test_parkinsons_by_record_and_by_subject() -> None:
    data = preset("parkinsons")
    labels, sensitive = both(data)
    assert labels.mean() == pytest.approx(0.4994, abs=5e-5)
    men = sensitive["sex"] == "male"
    assert men.mean() == pytest.approx(0.6822, abs=5e-5)
    assert labels[men].mean() == pytest.approx(0.5147, abs=5e-5)
    assert labels[~men].mean() == pytest.approx(0.4665, abs=5e-5)
    assert "subject#" not in data.feature_names
    assert {"age", "test_time", "motor_UPDRS"} < set(data.feature_names)
    assert data.persons_train is not None
    assert data.persons_test is not None
    assert len(np.intersect1d(data.persons_train, data.persons_test)) == 42
    apart = preset("parkinsons", group_split=True)
    assert apart.persons_train is not None
    assert apart.persons_test is not None
    assert not len(np.intersect1d(apart.persons_train, apart.persons_test))
    assert (len(np.unique(apart.persons_train)), len(np.unique(apart.persons_test))) == (32, 10)
    assert len(apart.y_train) + len(apart.y_test) == 5875


def test_german_trains_on_the_first_800() -> None:
    data, whole = preset("german", scaling="public"), load("german", download=False)
    np.testing.assert_array_equal(data.X_train, whole.X[:800])
    np.testing.assert_array_equal(data.X_test, whole.X[800:])
    labels, sensitive = both(data)
    women = sensitive["gender"] == "female"
    assert (labels.sum(), women.sum()) == (700, 310)
    assert labels[women].mean() == pytest.approx(0.648, abs=5e-4)
    assert labels[~women].mean() == pytest.approx(0.723, abs=5e-4)
    assert (sensitive["marital"] == "single").mean() == pytest.approx(0.548)
    assert not [name for name in data.feature_names if name.startswith("PERSONAL")]


def test_compas_is_filtered_as_usual() -> None:
    data = preset("compas")
    raw = pd.read_csv(data_home() / "compas" / "compas-two-years.csv")
    usual = (raw["days_b_screening_arrest"].abs() <= 30) & (raw["is_recid"] != -1)
    assert usual.sum() == 6172
    assert raw["two_year_recid"][usual].mean() == pytest.approx(0.4551, abs=5e-5)
    labels, sensitive = both(data)
    groups = raw[usual & raw["race"].isin(["African-American", "Caucasian"])]
    assert len(labels) == len(groups) == 5278
    assert labels.sum() == groups["two_year_recid"].sum()
    assert sensitive["race"].value_counts().to_dict() == groups["race"].value_counts().to_dict()


def test_communities_has_18_attributes_cut_at_their_medians() -> None:
    data = preset("communities")
    labels, sensitive = both(data)
    np.testing.assert_allclose(np.bincount(labels) / 1994, [0.341, 0.332, 0.327], atol=6e-4)
    raw = pd.read_csv(data_home() / "communities" / "communities.data", na_values="?")
    for name in data.sensitive_names:
        high = raw[name].fillna(raw[name].median()) > raw[name].median()
        assert (sensitive[name] == "high").sum() == high.sum()
    # The one record without a value for OtherPerCap has the mean of the training records, wherever it is.
    at = data.feature_names.index("OtherPerCap")
    filled = np.abs(np.concatenate([data.X_train[:, at], data.X_test[:, at]])) < 1e-9
    assert raw["OtherPerCap"].isna().sum() == filled.sum() == 1


@pytest.mark.parametrize(
    ("name", "l2", "error", "gap"),
    [
        ("adult-ch5", 1e-4, 0.1484, 0.1696),
        ("adult-ch6", 1e-4, 0.1554, 0.1808),
        ("credit-default", 1e-4, 0.1821, 0.0198),
        ("parkinsons", 1e-4, 0.0470, 0.0223),
        ("german", 1e-2, 0.230, None),
        ("compas", 1e-4, 0.3194, 0.2473),
        ("communities", 1e-3, 0.2826, None),
    ],
)
def test_the_unfair_model_has_the_reference_error_and_gap(
    name: str, l2: float, error: float, gap: float | None
) -> None:
    """They are another implementation's, on the halves of `default_rng(0)`: splits agree to the record."""
    found = unfair(preset(name), l2)
    assert found[0] == pytest.approx(error, abs=5e-4)
    if gap is not None:
        assert found[1] == pytest.approx(gap, abs=5e-4)


def test_halves_are_drawn_from_the_generator() -> None:
    first, again, other = (preset("compas", seed).y_train for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def colours_of(X: NDArray[np.floating], pixels: int) -> NDArray[np.floating]:
    """Return the brightest value of each channel, shape (n, 3)."""
    return np.asarray(X.reshape(len(X), 3, pixels).max(axis=2))


def test_training_digits_have_the_colour_of_their_class_and_test_digits_are_white(tmp_path: Path) -> None:
    fake_images(tmp_path / "mnist", "t10k", 100)
    info = DATASETS["mnist"]
    plain = load("mnist", home=tmp_path, verify=False)
    data = load_preset("color-mnist", rng=np.random.default_rng(3), home=tmp_path, verify=False)
    assert (info.name, data.X_train.shape, data.X_test.shape) == ("mnist", (80, 12), (20, 12))
    assert data.X_train.dtype == np.float32
    assert "stand in" in data.notes[0]
    assert plain.train is not None
    assert plain.test is not None
    colours = colours_of(data.X_train, 4)
    for digit in range(10):
        assert len(np.unique(colours[data.y_train == digit], axis=0)) == 1
    assert len(np.unique(colours, axis=0)) == 10
    assert data.sensitive_train["colour"].tolist() == [str(digit) for digit in data.y_train]
    np.testing.assert_allclose(
        data.X_train.reshape(80, 3, 4), plain.X[plain.train][:, None, :] * colours[:, :, None], atol=1e-6
    )
    for channel in data.X_test.reshape(20, 3, 4).swapaxes(0, 1):
        np.testing.assert_allclose(channel, plain.X[plain.test], atol=1e-6)
    assert set(data.sensitive_test["colour"]) == {"white"}


def test_noise_on_colours_mixes_the_groups(tmp_path: Path) -> None:
    fake_images(tmp_path / "mnist", "t10k", 100)
    data = load_preset(
        "color-mnist", rng=np.random.default_rng(3), colour_noise=0.3, home=tmp_path, verify=False
    )
    colours = colours_of(data.X_train, 4)
    assert len(np.unique(colours, axis=0)) > 70
    assert 0 <= colours.min() < colours.max() <= 1
    same = data.sensitive_train["colour"].to_numpy(dtype=np.str_) == data.y_train.astype(np.str_)
    assert 0.1 < same.mean() < 0.9


@pytest.mark.parametrize("name", prepared_names())
def test_a_prepared_data_set_has_the_records_of_its_preset(name: str) -> None:
    needs(PRESETS[name].data_set)
    data, halves = load_prepared(name, download=False), preset(name, scaling="public")
    assert (data.name, data.feature_names) == (name, halves.feature_names)
    assert data.n == len(halves.y_train) + len(halves.y_test)
    assert data.X.sum() == pytest.approx(halves.X_train.sum() + halves.X_test.sum())
    assert set(data.sensitive) == set(halves.sensitive_names)
    assert not {"race", "gender"} & set(data.sensitive) & set(data.feature_columns)
    for attribute, values in data.sensitive.items():
        assert set(values) == set(halves.sensitive_train[attribute])
    if PRESETS[name].test_fraction is None:
        np.testing.assert_array_equal(data.X[data.test], halves.X_test)
    else:
        assert data.train is None
        assert data.test is None
    # Models encode new records by the description: it must say which features there are.
    assert data.columns is not None
    row = pd.DataFrame({column: ["none of these"] for column in data.columns.columns})
    assert encode_columns(row, data.columns.columns).names == data.feature_names


def test_presets_that_are_no_data_sets_of_their_own_have_no_second_door() -> None:
    assert prepared_names() == ["adult-ch5", "adult-ch6"]
    for name in ("compas", "color-mnist"):
        with pytest.raises(UnknownNameError, match="preset must be one of adult-ch5, adult-ch6"):
            load_prepared(name)


def test_bad_options_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(UnknownNameError, match=r"preset must be one of.*did you mean 'compas'"):
        load_preset("compass", rng=rng)
    with pytest.raises(UnknownNameError, match="scaling must be one of train, public"):
        load_preset("compas", rng=rng, scaling="test")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"group_split is for parkinsons.*not compas"):
        load_preset("compas", rng=rng, group_split=True)
    with pytest.raises(ParameterError, match=r"colour_noise is for color-mnist, got 0\.1 for compas"):
        load_preset("compas", rng=rng, colour_noise=0.1)
    with pytest.raises(ParameterError, match="colour_noise"):
        load_preset("color-mnist", rng=rng, colour_noise=-0.1)
