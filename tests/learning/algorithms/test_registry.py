"""The algorithms by name: what is said of each, what is refused, and that text holds all of them."""

from __future__ import annotations

import math
from typing import Any, Union

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, UnknownNameError
from tacit.federation import Disjoint, Fixed, Full, Plan, Poisson
from tacit.learning import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    LinearObjective,
    Logistic,
    Method,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    NoisySignSGD,
    Problem,
    Protection,
    RecordGradient,
    about,
    algorithm_name,
    make_algorithm,
)
from tacit.learning.algorithms import registry, statistics_of
from tacit.learning.gradient_norms import NORMS, GradientNorms
from tacit.means import GaussianNoise
from tacit.privacy import TrustModel
from tests.loops import each

ANY: Any = Union[tuple(ALGORITHMS.values())]  # noqa: UP007 - of classes that are known when it runs
CHOSEN: list[Any] = [
    NoisyMinibatchSGD(rounds=7, batch=Fixed(rate=0.25), step_size=0.1, average=0.75, mu=0.01),
    AcceleratedNoisyMinibatchSGD(batch=Disjoint(size=3), nu=2.5, mu=0.1),
    MultiStageAcceleratedNoisyMinibatchSGD(rounds=90, mu=0.1, gap=3.0, batch=Poisson(rate=0.5)),
    NoisyLocalSGD(rounds=3, local_steps=4, batch=Fixed(size=2), step_size=0.5),
    NoisySignSGD(rounds=12, step_size=0.1, average=1.0),
]


@each("name", ALGORITHMS)
def test_every_name_makes_an_algorithm(name: str) -> None:
    make: Any = ALGORITHMS[name]
    algorithm: Algorithm = make(rounds=7)
    assert issubclass(make, Method)
    assert isinstance(make(), Algorithm)
    assert algorithm.rounds == 7
    assert algorithm == make_algorithm(name, rounds=7, mu=None)
    assert algorithm_name(algorithm) == name
    own = {
        "local": Fixed(size=1),
        **{one: Fixed(size=1) for one, kind in ALGORITHMS.items() if kind.hidden},
        **dict.fromkeys(("cldp-sgd", "dss-sgd"), Fixed(size=1)),
        "ftrl": Disjoint(rate=0.1),
        **dict.fromkeys(("prox-sgd", "semi-ldp", "clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd")),
    }
    assert algorithm == make(rounds=7, batch=own.get(name, Full()))
    assert make_algorithm("local") == NoisyLocalSGD(local_steps=10)


def test_names_are_tags_and_one_name_is_one_thing() -> None:
    assert {"minibatch", "accelerated", "multistage", "local", "sign-vote"} <= set(ALGORITHMS)
    assert all(kind.__struct_config__.tag == name for name, kind in ALGORITHMS.items())
    with pytest.raises(ParameterError, match=r"statistics must have names of their own, got 'gradient'"):
        registry._once([("gradient", RecordGradient), ("gradient", LinearObjective)], "statistics")


# What a person chooses by


@each("name", ALGORITHMS)
def test_what_is_said_of_an_algorithm_is_what_it_is(name: str) -> None:
    told, make = about(name), ALGORITHMS[name]
    algorithm = make()
    assert told.name == name
    assert (make.__doc__ or "").startswith(told.summary)
    assert told.summary.endswith(".")
    assert [TrustModel(trust) for trust in told.trusts] == list(algorithm.trusts)
    assert told.statistics == tuple(make.statistics)
    assert told.options == tuple(msgspec.structs.asdict(algorithm))
    assert {"rounds", "batch"} <= set(told.options)
    assert told.convexity == make.needs
    assert told.penalties in ("any", "none", "squared loss", "l1, l2, ball")
    assert told.needs.startswith(make.needs)
    asked = {statistic for kind in told.rounds for statistic in kind.statistics}
    assert asked <= set(told.statistics)
    assert asked
    assert any(character.isdigit() for character in told.paper)  # authors and year


def test_who_needs_a_smooth_loss_refuses_another_and_nobody_else_does() -> None:
    kinked = Problem(
        smoothness=math.inf,
        radius=1.0,
        diameter=2.0,
        dim=3,
        variance=0.1,
        features=3,
        feature_norm=1.0,
        loss=Logistic(),
        errors={"gradient": 0.1},
        sizes=(1000,),
        rows=1000,
    )
    for name in ALGORITHMS:
        algorithm = make_algorithm(name)
        try:
            algorithm.check(kinked, algorithm.rounds or 600)
            refused = False
        except ParameterError as error:
            refused = "smooth" in str(error)
        assert refused == about(name).smooth, name
    assert not about("p-sgd").smooth
    assert about("lan").smooth


def test_kinds_of_rounds_and_how_often_they_are_asked() -> None:
    def asked(name: str) -> list[tuple[tuple[str, ...], str, str]]:
        return [(kind.statistics, kind.batch, kind.count) for kind in about(name).rounds]

    assert asked("minibatch") == [(("gradient",), "full", "every round")]
    assert asked("prox-sgd") == [(("gradient",), "disjoint", "every round")]
    assert asked("objective-perturbation") == [(("signed-row",), "full", "once")]
    assert asked("fed-spider") == [
        (("gradient",), "full", "1 in 2 rounds"),
        (("difference",), "full", "1 in 2 rounds"),
    ]
    assert asked("prox-svrg")[1] == (("difference",), "full", "3 in 4 rounds")
    assert asked("whitened")[0] == (("gram",), "full", "once")
    assert {kind.count.split(" ", 1)[1] for kind in about("spider").rounds} == {"of 600 rounds"}


def test_a_delta_of_zero_is_for_who_has_an_option_for_it() -> None:
    assert {name for name in ALGORITHMS if about(name).pure} == {"objective-perturbation"}
    assert about("objective-perturbation").needs.endswith("delta > 0 unless pure")
    assert {name for name in ALGORITHMS if not about(name).delta} == {"semi-ldp", "cldp-sgd", "dss-sgd"}
    assert about("semi-ldp").needs == "convex"


@each("trust", [TrustModel.LOCAL, TrustModel.AGGREGATE, TrustModel.CENTRAL])
@each("name", ALGORITHMS)
def test_an_algorithm_makes_steps_under_the_trust_models_that_it_names_only(
    name: str, trust: TrustModel
) -> None:
    algorithm: Any = make_algorithm(name)
    fewest = 2 if trust is TrustModel.AGGREGATE else 0
    protection = Protection(trust=trust, noise=GaussianNoise, multiplier=2.0, fewest=fewest)
    problem = Problem(
        smoothness=1.0,
        radius=0.5,
        diameter=2.0,
        dim=3,
        variance=0.0,
        protection=protection,
        features=3,
        feature_norm=1.0,
        loss=Logistic(),
    )
    if trust.value not in about(name).trusts:
        with pytest.raises(ParameterError):
            algorithm.steps(problem, 4)
        return
    plan = Plan(steps=algorithm.steps(problem, 4), parties=2, trust=trust, n_min=fewest)
    assert plan.rounds == 4
    for step, _ in plan.kinds:
        assert step.trust is (TrustModel.LOCAL if step.alone else trust)  # who walks alone hides alone
        assert {measure.statistic for measure in step.measures} <= set(about(name).statistics)
        assert all(measure.estimator.private for measure in step.measures)
        gradients = [measure for measure in step.measures if measure.statistic == "gradient"]
        assert all((measure.estimator.dim, measure.max_radius) == (3, 0.5) for measure in gradients)


def test_an_unknown_name_gets_the_nearest() -> None:
    for asked in (about, make_algorithm):
        with pytest.raises(UnknownNameError, match=r"algorithm must be one of .*did you mean 'accelerated'"):
            asked("acelerated")


def test_silos_can_answer_whatever_an_algorithm_of_the_library_asks() -> None:
    objective = LinearObjective(loss=Logistic(), features=3)
    known = statistics_of(objective)
    assert known["gradient"] == RecordGradient(objective)
    of_records = [kind for kind in ALGORITHMS.values() if kind.unit is None]
    made = [(name, make) for kind in of_records for name, make in kind.statistics.items()]
    made.append((NORMS, GradientNorms.of))  # of a clip that is chosen, before any algorithm
    assert known == {name: make(objective) for name, make in made}


# What is refused


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "accelerated",
            {"local_steps": 5},
            "local_steps is not an option of the algorithm 'accelerated', got 5; "
            "it has rounds, batch, nu, mu.",
        ),
        (
            "sign-vote",
            {"mu": 0.1},
            "mu is not an option of the algorithm 'sign-vote', got 0.1; it has rounds, batch, step_size,",
        ),
        ("minibatch", {"algorithm": "local"}, "algorithm is not an option of the algorithm 'minibatch'"),
        ("local", {"local_steps": 1}, "local_steps must be a whole number >= 2"),
    ],
)
def test_options_that_an_algorithm_does_not_have_are_refused(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message.replace(".", r"\.")):
        make_algorithm(name, **options)


@each("name", ALGORITHMS)
@each("rounds", [0, -1, 2.5, "many", True])
def test_bad_rounds_are_refused(name: str, rounds: Any) -> None:
    with pytest.raises(ParameterError, match="rounds must be a whole number >= 1"):
        ALGORITHMS[name](rounds=rounds)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("minibatch", {"step_size": 0.0}, "step_size must be a finite number > 0"),
        ("minibatch", {"average": 0.0}, r"average must be in \(0, 1\]"),
        ("minibatch", {"mu": -1.0}, "mu must be a finite number >= 0"),
        ("accelerated", {"nu": math.nan}, "nu must be a finite number > 0"),
        ("accelerated", {"mu": math.inf}, "mu must be a finite number >= 0"),
        ("multistage", {"mu": 0.0}, "mu must be a finite number > 0"),
        ("multistage", {"gap": -1.0}, "gap must be a finite number > 0"),
        ("local", {"step_size": math.inf}, "step_size must be a finite number > 0"),
        ("local", {"local_steps": 1}, "local_steps must be a whole number >= 2"),
        ("sign-vote", {"step_size": -1.0}, "step_size must be a finite number > 0"),
        ("sign-vote", {"average": 1.5}, r"average must be in \(0, 1\]"),
    ],
)
def test_bad_parameters_are_refused(name: str, values: dict[str, Any], message: str) -> None:
    make: Any = ALGORITHMS[name]
    with pytest.raises(ParameterError, match=message):
        make(**values)


@each("name", ALGORITHMS)
def test_numbers_become_those_of_python(name: str) -> None:
    """Else two equal algorithms would be written differently, or not at all."""
    make: Any = ALGORITHMS[name]
    assert type(make(rounds=np.int64(7)).rounds) is int
    for option in {"step_size", "mu", "nu"} & set(about(name).options):
        assert type(getattr(make(**{option: np.float32(0.5)}), option)) is float


# As text


@each("form", [msgspec.json, msgspec.toml, msgspec.msgpack])
@each("algorithm", [*CHOSEN, *(make() for make in ALGORITHMS.values())])
def test_an_algorithm_reads_back_equal(algorithm: Any, form: Any) -> None:
    text = form.encode({k: v for k, v in msgspec.to_builtins(algorithm).items() if v is not None})
    assert form.decode(text, type=ANY) == algorithm
    assert form.decode(text)["algorithm"] == algorithm_name(algorithm)
    if form is not msgspec.toml:  # which has no word for None
        assert form.decode(form.encode(algorithm), type=ANY) == algorithm


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"algorithm": "magic"}', "Invalid value 'magic'"),
        ('{"rounds": 3}', "missing required field `algorithm`"),
        ('{"algorithm": "minibatch", "local_steps": 5}', "unknown field `local_steps`"),
        ('{"algorithm": "minibatch", "rounds": 0}', "rounds must be a whole number >= 1, got 0"),
        ('{"algorithm": "local", "local_steps": 1}', "local_steps must be a whole number >= 2, got 1"),
        ('{"algorithm": "minibatch", "batch": {"batch": "none"}}', "Invalid value 'none'"),
    ],
)
def test_a_text_that_is_no_algorithm_is_refused(text: str, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.json.decode(text, type=ANY)
