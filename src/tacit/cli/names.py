"""Names that options take, written down: help must not wait seconds for the rooms that have them.

`tests/cli/test_options.py` compares each of them with its registry.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ALGORITHMS",
    "ANONYMITIES",
    "ATTACKED",
    "BANDIT_NOISES",
    "DESIGNS",
    "DOMAINS",
    "FREQUENCY_MECHANISMS",
    "JOB",
    "JOB_DEFAULTS",
    "LEVEL_METHODS",
    "PARTS",
    "PROJECTIONS",
    "RADIUS_MODES",
    "RANDOMIZERS",
    "RELATIONS",
    "REPORTS",
    "REWARD_MODELS",
    "SHARDS",
    "TABLE_KINDS",
    "TAILS",
    "TIES",
    "UNITS",
    "VOTED_BY",
]

RELATIONS: Final = ("replace-one", "add-remove", "zero-out")
UNITS: Final = ("record", "person", "party")
PARTS: Final = ("all", "sensitive", "reward", "private")
RANDOMIZERS: Final = (
    *("general", "2rr", "krr:B", "hadamard", "hadamard:k", "hr:k", "bh:k", "oue:k", "rappor:k", "ss:k"),
    *("rhr:k", "two-level:q", "laplace", "privunit:q"),
)
REPORTS: Final = ("hemisphere", "privunit", "rotated", "hadamard", "bitplane")
TIES: Final = ("coin",)
VOTED_BY: Final = ("fresh", "fixed")
SHARDS: Final = ("shared", "disjoint")
DESIGNS: Final = (
    *("constant-composed", "constant", "subsampling", "double-subsampling", "optimal-monotone", "optimal"),
    "optimized",
)
ALGORITHMS: Final = (
    *("minibatch", "accelerated", "multistage", "local", "sign-vote"),
    *("whitened", "preconditioned", "sufficient-statistics"),
    *("output-perturbation", "objective-perturbation", "ftrl"),
    *("p-sgd", "lan", "phases"),
    *("spider", "fed-spider", "diff2", "mb-psgm", "ce-psgm"),
    *("prox-sgd", "prox-svrg", "prox-pl-svrg"),
    *("semi-dp", "dp-shuffle", "private-public-shuffle", "public-private-shuffle", "interleaved-shuffle"),
    *("cldp-sgd", "dss-sgd", "pda", "semi-ldp"),
    *("clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd"),
    *("clipped-subgradient", "localized", "localized-phases"),
    *("fed-avg", "adaped"),
)
ATTACKED: Final = (
    *("training", "gaussian", "laplace", "discrete-gaussian", "discrete-laplace", "2rr", "krr:B", "additive"),
    *(
        "aggregate",
        "modular-sum",
        "bandit",
        "levels:k",
        "bh:k",
        "hr:k",
        "oue:k",
        "rappor:k",
        "rhr:k",
        "ss:k",
        "coordinate-clipped",
        "binomial",
        "shuffled-coordinate",
        "shuffled-gaussian",
        "rand-k",
        "rand-k-spatial",
        "rand-proj-spatial",
        "per-party-pinv",
        "mean-map-pinv",
        "noisy-minimum",
        "perturbed-minimum",
        "wangni",
    ),
    *("top-k", "induced", "quantized", "bitplane", "hadamard", "hemisphere", "items", "local-laplace"),
    *("privunit-g", "privunit", "rotated", "sampled-binary", "sign-vote"),
)
FREQUENCY_MECHANISMS: Final = ("bh", "hr", "krr", "oue", "rappor", "rhr", "ss")
TABLE_KINDS: Final = ("joint", "pairs", "singles")
PROJECTIONS: Final = ("none", "sum", "clip", "clip-normalize", "simplex")
ANONYMITIES: Final = ("batch", "action")
BANDIT_NOISES: Final = ("discrete", "laplace")
LEVEL_METHODS: Final = ("numeric", "paper")
RADIUS_MODES: Final = ("seed", "seed_corrected", "sound")
REWARD_MODELS: Final = ("rademacher", "uniform", "clipped_gaussian")
TAILS: Final = ("commit", "truncate")
DOMAINS: Final = ("ball:RADIUS", "box:LOW:HIGH", "simplex", "simplex:TOTAL")
JOB: Final = {
    "silos": ("auto", "column", "pairs", "label", "iid:N", "mixture:P", "dirichlet:N:ALPHA", "sorted:N"),
    "trust": ("all", "local", "aggregate", "shuffle", "central", "none"),
    "task": ("classification", "regression"),
    "loss": ("auto", "logistic", "hinge", "squared", "huber", "absolute", "quantile", "poisson"),
    "neighbours": RELATIONS,
    "sampling": ("auto", "fixed", "poisson", "disjoint"),
    "weights": ("records", "silos"),
    "noise": ("auto", "gaussian", "discrete-gaussian"),
    "fairness": ("demographic-parity", "equalized-odds", "equal-opportunity"),
    "protect": ("sensitive", "record"),
}
JOB_DEFAULTS: Final[dict[str, str | float | bool]] = {
    "task": "classification",
    "model": "linear",
    "loss": "auto",
    "silos": "auto",
    "trust": "local",
    "colluding": 0,
    "recover": False,
    "missing": False,
    "epsilon": 2.0,
    "delta": "auto",
    "neighbours": "replace-one",
    "algorithm": "auto",
    "rounds": "auto",
    "sampling": "auto",
    "l1": 0.0,
    "l2": 0.0,
    "group_lasso": 0.0,
    "weights": "records",
    "noise": "auto",
    "test_fraction": 0.2,
    "out": "runs",
}
