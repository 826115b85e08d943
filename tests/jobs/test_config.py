"""Job configurations: what a person may write, and what is refused before anything is loaded."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import ParameterError, UnknownNameError
from tacit.federation import Disjoint, Fixed, Full, Poisson
from tacit.jobs import DEMO, Job, JobConfig
from tacit.learning import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    AdaPeD,
    Algorithm,
    ClippedACSA,
    ClippedProximalSGD,
    ClippedSGD,
    ClippedSubgradient,
    CompressedShuffledSGD,
    FedAvg,
    InterleavedShuffle,
    LanAcceleratedSGD,
    LipschitzSGD,
    LocalizedSubgradient,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyDiff2,
    NoisyFedSpider,
    NoisyFTRL,
    NoisyLocalSGD,
    NoisyLocalStorm,
    NoisyMinibatchSGD,
    NoisyProximalPLSVRG,
    NoisyProximalSGD,
    NoisyProximalSVRG,
    NoisySignSGD,
    NoisySpider,
    NoisyStorm,
    NoisySufficientStatistics,
    ObjectivePerturbation,
    OutputPerturbation,
    PhasedAcceleratedSGD,
    PhasedLocalizedSubgradient,
    PreconditionedNoisyGD,
    PrivatePublicShuffle,
    PrivateShuffle,
    PublicMirrorDescent,
    PublicPrivateShuffle,
    SelfSampledSGD,
    SemiLocalSGD,
    SemiPrivateSGD,
    WhitenedNoisyGD,
    algorithm_name,
)
from tacit.privacy import Order, Placement
from tests.jobs.tables import write_patients


@pytest.mark.parametrize(
    "job",
    [
        JobConfig(),
        DEMO,
        JobConfig(data="clinics.csv", clip="auto"),
        JobConfig(data="some folder/clinics.csv", label='a "quoted" label', silo_column="sité", clip=0.5),
        JobConfig(delta=1e-7, rounds=7, batch=0.125, participants=3, seed=0),
        JobConfig(batch=16, sampling="disjoint", algorithm="minibatch", l1=0.02, l2=0.01, weights="silos"),
        JobConfig(algorithm="minibatch", options={"step_size": 0.5, "average": 1}, seed=3),
    ],
)
def test_toml_reads_back_equal(job: JobConfig) -> None:
    assert JobConfig.of(tomllib.loads(job.to_toml())) == job


@pytest.mark.parametrize(
    ("values", "nearest"),
    [
        ({"epsilom": 1.0}, "epsilon"),
        ({"trust": "locale"}, "local"),
        ({"algorithm": "acelerated"}, "accelerated"),
        ({"silos": "mixtur:0.5"}, "mixture"),
    ],
)
def test_unknown_names_suggest_the_nearest(values: dict[str, Any], nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}'"):
        JobConfig.of(values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", float("nan")),
        ("epsilon", float("inf")),
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", -1e-5),
        ("rounds", 0),
        ("batch", 0),
        ("batch", 0.0),
        ("batch", 1.5),
        ("batch", float("nan")),
        ("clip", 0.0),
        ("clip", -1.0),
        ("l1", -0.1),
        ("l1", float("inf")),
        ("l2", -0.1),
        ("l2", float("nan")),
        ("mu", -1.0),
        ("local_steps", 1),
        ("participants", 0),
        ("test_fraction", 0.0),
        ("test_fraction", 1.0),
        ("seed", -1),
        ("task", "clustering"),
        ("neighbours", "add"),
        ("sampling", "bernoulli"),
        ("weights", "equal"),
        ("noise", "laplace"),
        ("name", "../elsewhere"),
        ("name", ".hidden"),
        ("name", "a\nb"),
        ("name", "x" * 101),
    ],
)
def test_bad_values_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ParameterError, match=name):
        JobConfig(**{name: value})  # type: ignore[arg-type]  # one test for all names


@pytest.mark.parametrize("values", [{"epsilon": "2"}, {"rounds": "many"}, {"seed": 1.5}, {"batch": "half"}])
def test_wrong_types_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"must be a (whole )?number"):
        JobConfig.of(values)


def test_without_privacy_delta_may_be_zero() -> None:
    assert JobConfig(trust="none", delta=0.0).delta == 0.0


def test_options_without_an_algorithm_go_to_plain_steps_of_networks() -> None:
    """Accelerated steps need the smoothness, which no network says, and take no step size in its place."""
    for model, expected in (("mlp:4", "minibatch"), ("cnn", "minibatch"), ("scattering", "accelerated")):
        options = {} if expected == "accelerated" else {"step_size": 0.5}
        found = JobConfig(data="mnist", model=model, batch=7, options=options).chosen
        assert algorithm_name(found) == expected


def test_a_seed_and_a_ledger_exclude_each_other() -> None:
    with pytest.raises(ParameterError, match="seeded noise protects nobody"):
        JobConfig(data="clinics.csv", label="y", ledger="accounts", seed=0)


def test_a_table_needs_its_label_column(tmp_path: Path) -> None:
    table = write_patients(tmp_path)
    with pytest.raises(ParameterError, match="label must name the label column"):
        Job(JobConfig(data=str(table)))


def test_what_follows_from_the_settings() -> None:
    job = JobConfig(data="folder/clinics.parquet", label="y", trust="all")
    assert job.is_table
    assert job.run == "clinics"
    assert job.trusts == ("none", "central", "aggregate", "shuffle", "local")
    named = JobConfig(name="june")
    assert (named.run, named.is_table, named.trusts) == ("june", False, ("local",))


@pytest.mark.parametrize("trust", ["central", "all"])
def test_a_trusted_server_counts_records(trust: str) -> None:
    with pytest.raises(ParameterError, match="weights must be 'records' where a server is trusted"):
        JobConfig(trust=trust, weights="silos")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"algorithm": "accelerated", "local_steps": 5},
            "local_steps is not an option of the algorithm 'accelerated'",
        ),
        (
            {"algorithm": "multistage", "local_steps": 5},
            "local_steps is not an option of the algorithm 'multistage'",
        ),
        (
            {"algorithm": "minibatch", "local_steps": 5},
            "local_steps is not an option of the algorithm 'minibatch'",
        ),
        (
            {"algorithm": "sign-vote", "local_steps": 5},
            "local_steps is not an option of the algorithm 'sign-vote'",
        ),
        (
            {"algorithm": "sign-vote", "mu": 0.1},
            "mu is not an option of the algorithm 'sign-vote', got 0.1; it has",
        ),
        ({"algorithm": "local", "mu": 0.1}, "mu is not an option of the algorithm 'local'"),
        (
            {"options": {"step_size": 0.1}},
            "step_size is not an option of the algorithm 'accelerated', got 0.1",
        ),
        ({"options": {"seed": 1}}, "options must not hold seed, which is a setting of its own"),
        (
            {"sampling": "disjoint"},
            "batch must be a whole number or a share below 1 with sampling='disjoint'",
        ),
        ({"sampling": "disjoint", "batch": "full"}, "with sampling='disjoint', got 'full'"),
        ({"label": "y"}, "label is for a table"),
        ({"silo_column": "site"}, "silo_column is for a table"),
        ({"columns": "c.toml"}, "columns is for a table"),
        ({"ledger": "l"}, "ledger is for a table .*, got 'l' with data='digits-odd-even'"),
    ],
)
def test_what_would_have_no_effect_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        JobConfig(**values)


def test_a_job_trains_the_algorithm_that_it_names_with_the_options_that_it_has() -> None:
    chosen: dict[str, Algorithm] = {
        "minibatch": NoisyMinibatchSGD(rounds=7, batch=Fixed(size=3), mu=0.1),
        "accelerated": AcceleratedNoisyMinibatchSGD(rounds=7, batch=Fixed(size=3), mu=0.1),
        "multistage": MultiStageAcceleratedNoisyMinibatchSGD(rounds=7, batch=Fixed(size=3), mu=0.1),
        "local": NoisyLocalSGD(rounds=7, batch=Fixed(size=3), local_steps=4),
        "sign-vote": NoisySignSGD(rounds=7, batch=Fixed(size=3)),
        "preconditioned": PreconditionedNoisyGD(rounds=7, share=0.2),
        "whitened": WhitenedNoisyGD(rounds=7, share=0.3),
        "sufficient-statistics": NoisySufficientStatistics(rounds=2, share=0.2),
        "objective-perturbation": ObjectivePerturbation(strength=2.5, tolerance=1e-5),
        "output-perturbation": OutputPerturbation(strength=2.5, tolerance=1e-5),
        "ftrl": NoisyFTRL(rounds=7, batch=Disjoint(size=3), bands=2, momentum=0.5),
        "p-sgd": LipschitzSGD(rounds=7, batch=Fixed(size=3)),
        "lan": LanAcceleratedSGD(rounds=7, batch=Fixed(size=3)),
        "phases": PhasedAcceleratedSGD(rounds=7, batch=Fixed(size=3), mu=0.1),
        "spider": NoisySpider(rounds=7, batch=Fixed(size=3), period=3, split=0.4),
        "fed-spider": NoisyFedSpider(rounds=7, batch=Fixed(size=3), output="random", draw=2),
        "diff2": NoisyDiff2(rounds=7, batch=Fixed(size=3), period=2),
        "mb-psgm": NoisyStorm(rounds=7, batch=Fixed(size=3), first=Full(), messages="hemispheres"),
        "ce-psgm": NoisyLocalStorm(rounds=7, batch=Fixed(size=3), local_steps=4, local_batch=Full()),
        "prox-sgd": NoisyProximalSGD(rounds=7, batch=Disjoint(size=3), mu=0.1),
        "prox-svrg": NoisyProximalSVRG(rounds=7, batch=Fixed(size=3), period=3),
        "prox-pl-svrg": NoisyProximalPLSVRG(rounds=7, batch=Fixed(size=3), restarts=3),
        "pda": PublicMirrorDescent(rounds=7, batch=Fixed(size=3), ridge=0.1),
        "semi-dp": SemiPrivateSGD(rounds=7, batch=Fixed(size=3), weight=0.5, public_norm="raw"),
        "dp-shuffle": PrivateShuffle(rounds=7, batch=Fixed(size=3), order=Order.IG),
        "private-public-shuffle": PrivatePublicShuffle(batch=Fixed(size=3), public_noise=True),
        "public-private-shuffle": PublicPrivateShuffle(batch=Fixed(size=3), private=0.25),
        "interleaved-shuffle": InterleavedShuffle(batch=Fixed(size=3), placement=Placement.EPOCH_END),
        "cldp-sgd": CompressedShuffledSGD(rounds=7, batch=Fixed(size=3), clients=Fixed(size=2)),
        "dss-sgd": SelfSampledSGD(rounds=7, batch=Fixed(size=3), rate=0.25),
        "semi-ldp": SemiLocalSGD(rounds=7, batch=Disjoint(size=3), mu=0.1),
        "clipped-ac-sa": ClippedACSA(rounds=7, batch=Disjoint(size=3), smoothness=2.0),
        "fed-avg": FedAvg(rounds=7, batch=Poisson(rate=0.5), local_steps=3, scale=0.5),
        "adaped": AdaPeD(rounds=7, local_steps=4, psi=2.0),
        "clipped-subgradient": ClippedSubgradient(rounds=7, batch=Fixed(size=3), pull=0.5),
        "localized": LocalizedSubgradient(rounds=7, sample="sqrt"),
        "localized-phases": PhasedLocalizedSubgradient(rounds=7, mu=0.1),
        "clipped-sgd": ClippedSGD(rounds=7, batch=Disjoint(size=3), mu=0.1),
        "clipped-prox-sgd": ClippedProximalSGD(rounds=7, batch=Disjoint(size=3), mu=0.1),
    }
    options: dict[str, dict[str, Any]] = {
        "local": {"rounds": 7, "batch": 3, "local_steps": 4},
        "sign-vote": {"rounds": 7, "batch": 3},
        "p-sgd": {"rounds": 7, "batch": 3},
        "lan": {"rounds": 7, "batch": 3},
        "preconditioned": {"rounds": 7, "options": {"share": 0.2}},
        "whitened": {"rounds": 7, "options": {"share": 0.3}},
        "sufficient-statistics": {"rounds": 2, "options": {"share": 0.2}},
        "objective-perturbation": {"options": {"strength": 2.5, "tolerance": 1e-5}},
        "output-perturbation": {"options": {"strength": 2.5, "tolerance": 1e-5}},
        "cldp-sgd": {"rounds": 7, "batch": 3, "options": {"clients": 2}},
        "dss-sgd": {"rounds": 7, "batch": 3, "options": {"rate": 0.25}},
        "ftrl": {"rounds": 7, "batch": 3, "options": {"bands": 2, "momentum": 0.5}},
        "spider": {"rounds": 7, "batch": 3, "options": {"period": 3, "split": 0.4}},
        "fed-spider": {"rounds": 7, "batch": 3, "options": {"output": "random", "draw": 2}},
        "diff2": {"rounds": 7, "batch": 3, "options": {"period": 2}},
        "mb-psgm": {"rounds": 7, "batch": 3, "options": {"first": "full", "messages": "hemispheres"}},
        "ce-psgm": {"rounds": 7, "batch": 3, "local_steps": 4, "options": {"local_batch": "full"}},
        "prox-sgd": {"rounds": 7, "batch": 3, "mu": 0.1},
        "prox-svrg": {"rounds": 7, "batch": 3, "options": {"period": 3}},
        "fed-avg": {"rounds": 7, "batch": 0.5, "local_steps": 3, "options": {"scale": 0.5}},
        "adaped": {"rounds": 7, "local_steps": 4, "options": {"psi": 2}},
        "clipped-subgradient": {"rounds": 7, "batch": 3, "options": {"pull": 0.5}},
        "localized": {"rounds": 7, "options": {"sample": "sqrt"}},
        "localized-phases": {"rounds": 7, "mu": 0.1},
        "clipped-ac-sa": {"rounds": 7, "batch": 3, "options": {"smoothness": 2}},
        "prox-pl-svrg": {"rounds": 7, "batch": 3, "options": {"restarts": 3}},
        "dp-shuffle": {"rounds": 7, "batch": 3, "options": {"order": "ig"}},
        "private-public-shuffle": {"batch": 3, "options": {"public_noise": True}},
        "public-private-shuffle": {"batch": 3, "options": {"private": 0.25}},
        "interleaved-shuffle": {"batch": 3, "options": {"placement": "epoch-end"}},
        "pda": {"rounds": 7, "batch": 3, "options": {"ridge": 0.1}},
        "semi-dp": {"rounds": 7, "batch": 3, "options": {"weight": 0.5, "public_norm": "raw"}},
    }
    assert set(chosen) == set(ALGORITHMS)
    for name, algorithm in chosen.items():
        own = options.get(name, {"rounds": 7, "batch": 3, "mu": 0.1})
        assert JobConfig(algorithm=name, **own).chosen == algorithm
        make: Any = ALGORITHMS[name]
        assert JobConfig(algorithm=name).chosen == make()
        assert algorithm_name(algorithm) == name
        if name != "semi-ldp":  # whose records speak once
            assert JobConfig(algorithm=name, batch="full").chosen == make(batch=Full())


def test_exact_noise_is_refused_where_an_algorithm_has_another() -> None:
    for noise in ("auto", "gaussian"):
        assert JobConfig(algorithm="semi-ldp", noise=noise).noise == noise
    with pytest.raises(ParameterError, match=r"'discrete-gaussian': its reports are private unit vectors"):
        JobConfig(algorithm="semi-ldp", noise="discrete-gaussian")


def test_options_are_those_of_the_algorithm_that_have_no_setting() -> None:
    job = JobConfig(algorithm="accelerated", rounds=9, mu=0.1, options={"nu": 3})
    assert job.chosen == AcceleratedNoisyMinibatchSGD(rounds=9, mu=0.1, nu=3.0)
    assert JobConfig.of(tomllib.loads(job.to_toml())) == job
    signs = JobConfig(algorithm="sign-vote", options={"step_size": 0.5, "average": 1.0})
    assert signs.chosen == NoisySignSGD(step_size=0.5, average=1.0)


@pytest.mark.parametrize(
    ("data", "model"),
    [
        ("mnist", "linear@28x28"),
        ("fashion-mnist", "linear@28x28"),
        ("mnist-odd-even", "linear"),
        ("digits", "linear"),
        ("adult", "linear"),
    ],
)
def test_large_images_of_several_classes_are_filtered_for_a_linear_model(data: str, model: str) -> None:
    job = JobConfig(data=data)
    assert str(job.architecture) == model
    assert str(JobConfig(data="digits", model="linear@8x8").architecture) == "linear@8x8"
    assert str(JobConfig(data=data, model="linear@pixels").architecture) == "linear"
    assert str(JobConfig(data=data, model="mlp:3@pixels").architecture) == "mlp:3"


def test_what_models_of_images_have_not_is_refused_by_their_own_name() -> None:
    with pytest.raises(
        ParameterError, match=r"^group_lasso must be 0 with model='linear@28x28'.*'linear@pix"
    ):
        JobConfig(data="mnist", group_lasso=0.1)
    assert JobConfig(data="mnist", group_lasso=0.1, model="linear@pixels").architecture.is_plain


@pytest.mark.parametrize("model", ["linear@8x8", "mlp:3@8x8", "scattering", "cnn"])
def test_images_are_not_scaled_by_public_records(model: str) -> None:
    """Their maps go by bounds: a statement that spoke of a sample was refused when it was checked."""
    facts = {"data": "a.csv", "label": "y", "public": "b.csv"}
    with pytest.raises(ParameterError, match=r"^public must be left out with model="):
        JobConfig.of(facts | {"model": model})
    assert JobConfig.of(facts | {"model": "linear@pixels"}).public == "b.csv"


def test_all_trust_models_are_those_that_an_algorithm_runs_under() -> None:
    for name in ALGORITHMS:
        allowed = {"none", *(trust.value for trust in ALGORITHMS[name].trusts)}
        order = ("none", "central", "aggregate", "shuffle", "local")
        assert JobConfig(algorithm=name, trust="all").trusts == tuple(one for one in order if one in allowed)
    assert "shuffle" in JobConfig(algorithm="accelerated", trust="all").trusts
    assert "shuffle" not in JobConfig(algorithm="whitened", trust="all").trusts
