"""Penalties and domains: every algorithm finds the minimum with them, or refuses them before it spends."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import Lasso, LogisticRegression

from tacit.errors import ParameterError
from tacit.learning.algorithms import ALGORITHMS, about, make_algorithm
from tacit.learning.algorithms.whitened import Whitening
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Logistic, Multinomial, Squared
from tacit.learning.objective import Records
from tacit.learning.preparation import prepare
from tacit.learning.public_objective import PublicObjective
from tacit.learning.regularization import Regularization, read_domain
from tacit.learning.settings import Settings
from tacit.learning.training import silos_for, train
from tacit.numerics import Array, Box, Composite, L2Ball, Simplex, Zero, row_norms
from tacit.privacy import PrivacyBudget, TrustModel

N, D = 60, 5
"""Records, and features with the constant, which comes last."""
GROUPS = ["a", "a", "b", "c"]
RNG = np.random.default_rng(20_261_123)
X = np.column_stack([RNG.uniform(-1, 1, (N, D - 1)), np.full(N, 0.5)])
X /= np.linalg.norm(X, axis=1, keepdims=True)
SCORE = X @ np.array([2.0, -1.5, 0.3, 0.0, 1.0])
DATA = {
    "logistic": Records.of(X, (SCORE + 0.5 * RNG.logistic(size=N) > 0).astype(float)),
    "squared": Records.of(X, SCORE / 4 + 0.1 * RNG.standard_normal(N)),
}
LOSSES: dict[str, Any] = {"logistic": Logistic(), "squared": Squared()}


@dataclass(frozen=True)
class Case:
    """A regulariser as it is written, and the constraint that a solver of its own is told."""

    written: Regularization
    bounds: Any = None
    constraint: Any = None

    @property
    def made(self) -> Any:
        return self.written.of_linear(features=D, outputs=1)


FREE = (None, None)
CASES = {
    "l1": Case(Regularization(l1=0.02)),
    "elastic net": Case(Regularization(l1=0.01, l2=0.05)),
    "groups": Case(Regularization(group_lasso=0.03, groups=GROUPS)),
    "sparse groups in a ball": Case(
        Regularization(l1=0.003, l2=0.01, group_lasso=0.01, groups=GROUPS, domain="ball:0.5"),
        constraint={"type": "ineq", "fun": lambda w: 0.25 - w @ w},
    ),
    "ball": Case(
        Regularization(domain="ball:0.3"), constraint={"type": "ineq", "fun": lambda w: 0.09 - w @ w}
    ),
    "elastic net in a box": Case(
        Regularization(l1=0.005, l2=0.02, domain="box:0.05:inf"), bounds=[(0.05, None)] * (D - 1) + [FREE]
    ),
    "ridge on a simplex": Case(
        Regularization(l2=0.02, domain="simplex:1.5"),
        bounds=[(0, None)] * (D - 1) + [FREE],
        constraint={"type": "eq", "fun": lambda w: w[:-1].sum() - 1.5},
    ),
}

LONG: dict[str, dict[str, Any]] = {
    **{name: {"rounds": 500} for name in ALGORITHMS},
    "local": {"rounds": 500, "batch": N},
    "sufficient-statistics": {},
    "preconditioned": {"rounds": 60},
    "whitened": {"rounds": 150},
    "objective-perturbation": {},
    "output-perturbation": {},
    "ftrl": {"rounds": 500, "batch": "full", "bands": 1, "step_size": 4.0},
    **{
        name: {"rounds": 500, "batch": "full", "step_size": 4.0, "decay": False}
        for name in ("cldp-sgd", "dss-sgd")
    },
    "p-sgd": {"rounds": 500, "step_size": 4.0},
    "prox-sgd": {"rounds": 500, "batch": "full"},
    "prox-svrg": {"rounds": 500, "step_size": 0.19},
    "prox-pl-svrg": {"rounds": 500, "step_size": 0.19, "output": "last"},
    "clipped-ac-sa": {"rounds": 500, "batch": "full"},
    "clipped-sgd": {"rounds": 500, "batch": "full"},
    "clipped-prox-sgd": {"rounds": 500, "batch": "full"},
    "clipped-subgradient": {"rounds": 500, "step_size": 4.0},
    "pda": {"rounds": 60},
    "semi-dp": {"rounds": 150},
}
REFUSED = {
    "local": ("logistic", "squared"),
    "ce-psgm": ("logistic", "squared"),
    "sign-vote": ("logistic", "squared"),
    "objective-perturbation": ("logistic", "squared"),
    "output-perturbation": ("logistic", "squared"),
    "sufficient-statistics": ("logistic",),
}


def settings(name: str, loss: str, case: Case, **changes: Any) -> Settings:
    return Settings(
        **{
            "objective": LinearObjective(loss=LOSSES[loss], features=D, feature_norm=1.0),
            "algorithm": make_algorithm(name, **LONG[name]),
            "regularizer": case.made,
            "clip": 100.0,
            "diameter": 5.0,
            "public": _public(name, loss),
            **changes,
        }
    )


def _public(name: str, loss: str) -> PublicObjective | None:
    """What an algorithm needs besides: the same records."""
    if not ALGORITHMS[name].needs_public:
        return None
    return PublicObjective(LinearObjective(loss=LOSSES[loss], features=D, feature_norm=1.0), DATA[loss])


def smooth(made: Any, w: Array, kink: float) -> float:
    """The penalties, their kinks rounded off by less than `kink` each."""
    if isinstance(made, Zero):
        return 0.0
    total = made.l1 * np.sqrt(w * w + kink**2).sum() + made.l2 / 2 * w @ w
    if isinstance(made, Composite) and made.groups is not None:
        lengths = [np.sqrt(w[made.groups == g] @ w[made.groups == g] + kink**2) for g in set(made.groups)]
        total += made.group_lasso * sum(lengths)
    return float(total)


@cache
def minimum(loss: str, name: str, *, white: bool) -> Array:
    """The minimum by a general solver, which is told no prox: of records, or of whitened ones."""
    case, records = CASES[name], whitened(DATA[loss]) if white else DATA[loss]
    goal = LinearObjective(loss=LOSSES[loss], features=D, feature_norm=1.0)
    w: Array = np.full(D, 0.3)

    def rounded(w: Array, kink: float) -> float:
        return float(goal.value(w, records).mean()) + smooth(case.made, w, kink)

    for kink in (1e-2, 1e-3, 1e-4, 1e-5):
        found = optimize.minimize(
            rounded,
            w,
            args=(kink,),
            method="SLSQP",
            bounds=case.bounds,
            constraints=[] if case.constraint is None else [case.constraint],
            options={"maxiter": 2000, "ftol": 1e-14},
        )
        w = found.x
    return np.asarray(w)


def whitened(records: Records) -> Records:
    """What the algorithm of that name makes of records, to be fitted by the same parameters."""
    white = Whitening.of(records.X.T @ records.X / N, ridge=0.0)
    rows = records.X @ white.matrix
    return Records.of(rows / row_norms(rows)[:, None] @ white.inverse, records.y)


FOR_ALL = [
    ("logistic", "sparse groups in a ball"),
    ("logistic", "elastic net in a box"),
    ("squared", "l1"),
]
"""Strongly convex and not, with groups and without, in a domain and without: what a step is made for."""
FOR_ONE = [
    ("logistic", "elastic net"),
    ("logistic", "ball"),
    ("logistic", "l1"),
    ("logistic", "groups"),
    ("logistic", "ridge on a simplex"),
    ("squared", "groups"),
]
"""The rest asks no more of an algorithm."""


@pytest.mark.parametrize(
    ("name", "loss", "case"),
    [
        (name, *one)
        for name, kind in ALGORITHMS.items()
        if kind.unit is None  # what whole parties send has tests of its own
        for one in (FOR_ALL + FOR_ONE if name in ("accelerated", "prox-svrg", *REFUSED) else FOR_ALL)
    ],
)
def test_an_algorithm_finds_the_minimum_or_refuses(name: str, case: str, loss: str) -> None:
    if (name, loss) in (("whitened", "squared"), ("pda", "logistic")):
        return  # for classes only, or for numbers, with a regulariser and without
    if ALGORITHMS[name].hidden:
        return  # their silos apply penalties once a pass, whose steps go elsewhere: in a file of their own
    if name in ("semi-ldp", "localized", "localized-phases"):
        return  # parts of the records come not so near; that they project is tested in their own files
    one, records = CASES[case], DATA[loss]
    if loss in REFUSED.get(name, ()):
        told = (
            rf"the algorithm '{name}' takes no penalty and no domain, got .*; these take one: minibatch, acc"
        )
        with pytest.raises(ParameterError, match=told) as caught:
            prepare(settings(name, loss, one), [N])
        offered = str(caught.value).split("take one: ")[1].rstrip(".").split(", ")
        assert not {bad for bad, losses in REFUSED.items() if loss in losses} & {*offered}
        return
    run = settings(name, loss, one)
    w = train(silos_for(run, [records], names=["a"], seed=0), run).w
    seen = whitened(records) if name == "whitened" else records
    best = minimum(loss, case, white=name == "whitened")
    # Averages hold early points, which are of the domain too.
    assert math.isfinite(one.made.value(w))
    goal = LinearObjective(loss=LOSSES[loss], features=D, feature_norm=1.0)

    def value(w: Array) -> float:
        return float(goal.value(w, seen).mean()) + smooth(one.made, w, 0.0)

    start = one.made(1.0, np.zeros(D))
    assert value(w) - value(best) < 2e-3 * (value(start) - value(best))
    np.testing.assert_allclose(w, best, atol=0.02 * (1 + float(np.linalg.norm(best))))


@pytest.mark.parametrize("name", REFUSED)
def test_what_refuses_would_end_elsewhere(name: str) -> None:
    """The refusals are about facts: past the refusal, the point that is found is no minimum."""
    one, records = CASES["l1"], DATA["logistic"]
    run = replace(settings(name, "logistic", one), regularizer=Zero())
    federation = silos_for(run, [records], names=["a"], seed=0)
    prepared = prepare(run, [N])
    w = run.algorithm.run(
        federation.open(prepared.plan),
        np.zeros(D),
        problem=prepared.problem,
        rounds=prepared.rounds,
        prox=one.made,
        follow=lambda _r, _w: None,
    )
    goal = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)

    def value(w: Array) -> float:
        return float(goal.value(w, records).mean() + one.made.value(w))

    best = minimum("logistic", "l1", white=False)
    assert value(w) - value(best) > 2e-2 * (value(np.zeros(D)) - value(best))
    assert np.linalg.norm(w - best) > 0.1 * np.linalg.norm(best)


def test_the_solver_of_these_tests_agrees_with_scikit_learn() -> None:
    lasso = Lasso(alpha=0.02, fit_intercept=False, tol=1e-12).fit(X, DATA["squared"].y).coef_
    np.testing.assert_allclose(minimum("squared", "l1", white=False), lasso, atol=1e-4)
    sparse = LogisticRegression(
        C=1 / (N * 0.02), l1_ratio=1, solver="saga", fit_intercept=False, tol=1e-10, max_iter=50_000
    ).fit(X, DATA["logistic"].y)
    assert (sparse.coef_ == 0).any()
    np.testing.assert_allclose(minimum("logistic", "l1", white=False), sparse.coef_[0], atol=1e-3)


def test_the_list_says_what_is_taken() -> None:
    said = {name: about(name).penalties for name in ALGORITHMS}
    hidden = {name for name, kind in ALGORITHMS.items() if kind.hidden}
    parties = {name for name, kind in ALGORITHMS.items() if kind.unit is not None}
    assert {name for name, taken in said.items() if taken != "any"} == {*REFUSED} | hidden | parties
    assert {said[name] for name in parties} == {"none"}
    assert {said[name] for name in hidden} == {"l1, l2, ball"}
    assert said["sufficient-statistics"] == "squared loss"
    assert said["local"] == said["sign-vote"] == "none"


# How they are written


def test_one_output_and_several_classes() -> None:
    plain = Regularization(l1=0.1, l2=0.2).of_linear(features=3, outputs=1)
    assert plain.strong_convexity == 0.2
    assert isinstance(Regularization().of_linear(features=3, outputs=1), Zero)
    made = Regularization(group_lasso=1.0, groups=["x", "x"]).of_linear(features=3, outputs=2)
    # Two features of two classes are a group of norm 2, the constants of both one of norm sqrt 2.
    assert made.value(np.ones(6)) == pytest.approx(2 + math.sqrt(2))
    simplex = Regularization(domain="simplex").of_linear(features=3, outputs=2)
    w = simplex(1.0, np.array([9.0, 0.0, 0.0, 7.0, 5.0, -5.0])).reshape(3, 2)
    assert w.tolist() == [[1.0, 0.0], [0.0, 1.0], [5.0, -5.0]]  # class by class, constants free
    ball = Regularization(domain="ball:2").of_linear(features=3, outputs=2)
    assert np.linalg.norm(ball(1.0, np.full(6, 9.0))) == pytest.approx(2)
    assert Regularization(domain="ball:2").diameter == 4
    assert Regularization(domain="simplex").diameter is None


def test_domains_are_read() -> None:
    assert read_domain(None) is None
    ball, box = read_domain("ball:2.5"), read_domain("box:-1:inf")
    assert isinstance(ball, L2Ball)
    assert ball.radius == 2.5
    assert isinstance(box, Box)
    assert (box.lower, box.upper) == (-1.0, math.inf)
    assert read_domain("simplex") == Simplex(1.0)
    assert read_domain("simplex:3") == Simplex(3.0)
    assert read_domain(ball) is ball


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        (
            "circle:1",
            "domain must be one of ball:RADIUS, box:LOW:HIGH, simplex, simplex:TOTAL, got 'circ",
        ),
        ("ball", "must be one of .* got 'ball'"),
        ("ball:big", "must be one of .* got 'ball:big'"),
        ("ball:1:2", "must be one of .* got 'ball:1:2'"),
        ("box:1", "must be one of .* got 'box:1'"),
        (3.0, r"must be one of .* got 3\.0"),
        ("ball:0", r"radius of the domain must be a finite number > 0, got 0\.0"),
        ("ball:inf", "radius of the domain must be a finite number > 0, got inf"),
        ("simplex:-1", r"total of the domain must be a finite number > 0, got -1\.0"),
        ("box:1:0", r"lower must be <= upper, got lower=1\.0, upper=0\.0"),
        ("box:nan:0", "lower must be finite or -inf, got nan"),
        (L2Ball(1.0, np.ones(2)), "domain must be a ball around the origin"),
    ],
)
def test_bad_domains_are_refused(domain: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Regularization(domain=domain)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"l1": -1.0}, "l1 must be a finite number >= 0"),
        ({"group_lasso": math.nan}, "group_lasso must be a finite number >= 0, got nan"),
        ({"group_lasso": 0.1, "domain": "simplex"}, "group_lasso must be 0 on a simplex"),
        ({"group_lasso": 0.1, "domain": "box:0:1"}, "group_lasso must be 0 on a box, got .* l2 on a simplex"),
        ({"l1": 0.1, "domain": "simplex"}, "l1 must be 0 on a simplex"),
    ],
)
def test_sums_without_a_step_in_closed_form_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Regularization(**given)


def test_groups_are_one_label_per_feature() -> None:
    with pytest.raises(ParameterError, match="groups must be 4 labels, one per feature, got 3"):
        Regularization(group_lasso=1.0, groups=["a", "a", "b"]).of_linear(features=5, outputs=1)
    with pytest.raises(ParameterError, match="groups must say which group each feature is in"):
        Regularization(group_lasso=1.0).of_linear(features=5, outputs=1)


def test_a_run_starts_in_its_domain_and_refuses_another_before_anything_is_spent() -> None:
    one = CASES["ridge on a simplex"]
    run = settings("minibatch", "squared", one, algorithm=make_algorithm("minibatch", rounds=1))
    w = train(silos_for(run, [DATA["squared"]], names=["a"], seed=0), run).w
    assert w.tolist() == [0.375] * 4 + [0.0]  # the average of one point: the start
    wrong = replace(
        run,
        regularizer=Composite(group_lasso=0.1, groups=np.zeros(3, dtype=int)),
        trust=TrustModel.LOCAL,
        budget=PrivacyBudget(1.0, 1e-5),
    )
    federation = silos_for(wrong, [DATA["squared"]], names=["a"], seed=0)
    with pytest.raises(ParameterError, match="z must have 3 coordinates like `groups`"):
        train(federation, wrong)


# Strong convexity


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("m", [0.003, 0.1, 2.0])
def test_the_proximal_pl_constant_of_a_strongly_convex_penalty(m: float, outputs: int) -> None:
    """D(w, beta) >= 2 mu (F(w) - F*) for mu = beta m / (beta + m), at points near and far."""
    loss: Any = Logistic() if outputs == 1 else Multinomial()
    goal = LinearObjective(loss=loss, features=D, outputs=outputs, feature_norm=1.0)
    records = Records.of(X, RNG.integers(0, max(outputs, 2), N).astype(float))
    beta, made = goal.smoothness, Regularization(l1=0.01, l2=m).of_linear(features=D, outputs=outputs)

    def value(w: Array) -> float:
        return float(goal.value(w, records).mean()) + made.value(w)

    def descent(w: Array) -> Array:
        return made(1 / beta, w - goal.gradients(w, records).mean(axis=0) / beta)

    best = np.zeros(goal.size)
    for _ in range(math.ceil(50 * (1 + beta / m))):  # a step shrinks the gap by 1 / (1 + beta / m)
        best = descent(best)
    rng, tight = np.random.default_rng(5), math.inf
    for scale in np.geomspace(1e-2, 1e3, 60):
        w = best + scale * rng.standard_normal(goal.size)
        y, slope = descent(w), goal.gradients(w, records).mean(axis=0)
        least = slope @ (y - w) + beta / 2 * (y - w) @ (y - w) + made.value(y) - made.value(w)
        gap = value(w) - value(best)
        assert -beta * least >= beta * m / (beta + m) * gap * (1 - 1e-9)
        tight = min(tight, -beta * least / gap / (beta * m / (beta + m)))
    assert tight < 20  # far out the penalty is all there is, and twice the constant would fail for large m


@pytest.mark.parametrize("name", ["multistage", "phases", "prox-sgd", "prox-svrg", "prox-pl-svrg"])
def test_the_penalty_says_how_convex_the_objective_is(name: str) -> None:
    """None counts on the regulariser, as if a person had given its constant; a given one goes first."""
    beta = 0.25
    for l2 in (0.02, 4.0):
        known = min(l2, beta) if name in ("multistage", "phases") else beta * l2 / (beta + l2)
        case = Case(Regularization(l2=l2))
        none, same, other = (
            prepare(
                settings(name, "logistic", case, algorithm=make_algorithm(name, rounds=80, mu=mu)), [300]
            ).problem
            for mu in (None, known, known / 3)
        )
        bounds = [
            make_algorithm(name, rounds=80, mu=mu).error_bound(problem, 80)
            for mu, problem in ((None, none), (known, same), (known / 3, other))
        ]
        assert bounds[0] == pytest.approx(bounds[1])
        assert bounds[0] < bounds[2]


@pytest.mark.parametrize("name", ["multistage", "phases", "prox-sgd", "prox-svrg"])
def test_bounds_for_the_convexity_of_the_penalty_hold(name: str) -> None:
    one, records = CASES["elastic net"], DATA["logistic"]
    options = {"batch": "full"} if name == "prox-sgd" else {}
    best = minimum("logistic", "elastic net", white=False)
    goal = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
    for rounds in (40, 80, 160):
        run = settings(
            name,
            "logistic",
            one,
            algorithm=make_algorithm(name, rounds=rounds, **options),
            diameter=float(np.linalg.norm(best)) * 1.01,
        )
        problem = prepare(run, [N]).problem
        w = train(silos_for(run, [records], names=["a"], seed=0), run).w
        excess = float(goal.value(w, records).mean() - goal.value(best, records).mean())
        excess += one.made.value(w) - one.made.value(best)
        assert excess <= run.algorithm.error_bound(problem, rounds) + 1e-7
