"""Bounds and formulas of the literature, to compare with; nothing is priced by them."""

from tacit.literature.binomial import BinomialParameters, paper_scalar_parameters, paper_vector_parameters
from tacit.literature.comparison import Bound, Status, compare
from tacit.literature.iteration import paper_epsilon, paper_noise, renyi_epsilon
from tacit.literature.public_data import public_data_helps, semi_private_rate
from tacit.literature.silo_learning import (
    experiment_noise_std,
    least_batch,
    local_noise_std,
    minibatch_noise_std,
    one_pass_noise_std,
)

__all__ = [
    "BinomialParameters",
    "Bound",
    "Status",
    "compare",
    "experiment_noise_std",
    "least_batch",
    "local_noise_std",
    "minibatch_noise_std",
    "one_pass_noise_std",
    "paper_epsilon",
    "paper_noise",
    "paper_scalar_parameters",
    "paper_vector_parameters",
    "public_data_helps",
    "renyi_epsilon",
    "semi_private_rate",
]
