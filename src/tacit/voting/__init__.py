"""Private majority of teachers: noise functions, their exact certificate, designs, GNMax, a student."""

from tacit.voting.classifier import PrivateVotingClassifier
from tacit.voting.error import (
    Prior,
    expected_majority_error,
    majority_error,
    output_probability,
    poisson_binomial_pmf,
    polarised_prior,
    uniform_prior,
)
from tacit.voting.functions import (
    full_gamma,
    gamma_constant,
    gamma_double_subsampling,
    gamma_subsampling,
    rr_probability_composed,
    rr_probability_tight,
)
from tacit.voting.gnmax import (
    GNMax,
    RdpBound,
    gnmax_data_dependent_rdp,
    gnmax_sigma_analytic,
    gnmax_sigma_rdp,
)
from tacit.voting.guarantee import majority_guarantee, sum_of_deltas
from tacit.voting.noise_function import Certificate, NoiseFunction, certified, certify
from tacit.voting.objectives import DesignObjective, expected_error, monte_carlo, one_sided
from tacit.voting.optimise import optimise_gamma
from tacit.voting.plan import DEFAULT_DESIGN, DESIGNS, DesignCandidate, design, plan_designs
from tacit.voting.release import ballot_counts, noisy_majority
from tacit.voting.report import (
    Accounting,
    MajorityBound,
    MajorityReport,
    Shards,
    VotedBy,
    majority_privacy_report,
)
from tacit.voting.setting import Setting, Ties, allowance
from tacit.voting.staircase import Staircase, gamma_staircase
from tacit.voting.teachers import index_shards
from tacit.voting.transfer import KnowledgeTransfer

__all__ = [
    "DEFAULT_DESIGN",
    "DESIGNS",
    "Accounting",
    "Certificate",
    "DesignCandidate",
    "DesignObjective",
    "GNMax",
    "KnowledgeTransfer",
    "MajorityBound",
    "MajorityReport",
    "NoiseFunction",
    "Prior",
    "PrivateVotingClassifier",
    "RdpBound",
    "Setting",
    "Shards",
    "Staircase",
    "Ties",
    "VotedBy",
    "allowance",
    "ballot_counts",
    "certified",
    "certify",
    "design",
    "expected_error",
    "expected_majority_error",
    "full_gamma",
    "gamma_constant",
    "gamma_double_subsampling",
    "gamma_staircase",
    "gamma_subsampling",
    "gnmax_data_dependent_rdp",
    "gnmax_sigma_analytic",
    "gnmax_sigma_rdp",
    "index_shards",
    "majority_error",
    "majority_guarantee",
    "majority_privacy_report",
    "monte_carlo",
    "noisy_majority",
    "one_sided",
    "optimise_gamma",
    "output_probability",
    "plan_designs",
    "poisson_binomial_pmf",
    "polarised_prior",
    "rr_probability_composed",
    "rr_probability_tight",
    "sum_of_deltas",
    "uniform_prior",
]
