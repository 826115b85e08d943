"""What one party does: exact integer noise, randomised response, reports on the sphere."""

from tacit.mechanisms.bernoulli import sample_bernoulli_exp
from tacit.mechanisms.binomial import sample_binomial, sample_fair_binomial
from tacit.mechanisms.continuous import sample_gamma_length, sample_gaussian, sample_laplace
from tacit.mechanisms.correlated import CorrelatedSums, Past, correlated_noise
from tacit.mechanisms.discrete_gaussian import (
    convolution_slack,
    discrete_gaussian_log_pmf,
    discrete_gaussian_variance,
    sample_discrete_gaussian,
    shares_slack,
)
from tacit.mechanisms.discrete_laplace import (
    discrete_laplace_log_pmf,
    discrete_laplace_variance,
    sample_discrete_laplace,
)
from tacit.mechanisms.exponential import exponential_law, sample_exponential
from tacit.mechanisms.hadamard_response import HadamardRandomizer
from tacit.mechanisms.randomized_response import (
    HIGHEST_LEVEL,
    LOWEST_LEVEL,
    BinaryRandomizedResponse,
    KaryRandomizedResponse,
    check_level,
    level_from_v,
    lie_threshold,
    randomize_bits,
    sampled_level,
    whole_values,
)
from tacit.mechanisms.skewed_response import LEAST_RANDOM_BITS, SkewedResponse
from tacit.mechanisms.sphere import (
    HIGHEST_UNIT_LEVEL,
    Cap,
    PrivUnit,
    PrivUnitG,
    ball_to_sphere,
    draw_directions,
    hemisphere_scale,
)
from tacit.mechanisms.subset_selection import SubsetRandomizer
from tacit.mechanisms.sum_quantiles import discrete_gaussian_sum_quantile, discrete_laplace_sum_quantile
from tacit.mechanisms.unary import UnaryRandomizer

__all__ = [
    "HIGHEST_LEVEL",
    "HIGHEST_UNIT_LEVEL",
    "LEAST_RANDOM_BITS",
    "LOWEST_LEVEL",
    "BinaryRandomizedResponse",
    "Cap",
    "CorrelatedSums",
    "HadamardRandomizer",
    "KaryRandomizedResponse",
    "Past",
    "PrivUnit",
    "PrivUnitG",
    "SkewedResponse",
    "SubsetRandomizer",
    "UnaryRandomizer",
    "ball_to_sphere",
    "check_level",
    "convolution_slack",
    "correlated_noise",
    "discrete_gaussian_log_pmf",
    "discrete_gaussian_sum_quantile",
    "discrete_gaussian_variance",
    "discrete_laplace_log_pmf",
    "discrete_laplace_sum_quantile",
    "discrete_laplace_variance",
    "draw_directions",
    "exponential_law",
    "hemisphere_scale",
    "level_from_v",
    "lie_threshold",
    "randomize_bits",
    "sample_bernoulli_exp",
    "sample_binomial",
    "sample_discrete_gaussian",
    "sample_discrete_laplace",
    "sample_exponential",
    "sample_fair_binomial",
    "sample_gamma_length",
    "sample_gaussian",
    "sample_laplace",
    "sampled_level",
    "shares_slack",
    "whole_values",
]
