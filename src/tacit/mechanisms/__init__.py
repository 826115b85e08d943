"""One party's noise: exact integer samplers with their laws, and continuous ones for simulation."""

from tacit.mechanisms.bernoulli import sample_bernoulli_exp, sample_bernoulli_exp_ratio
from tacit.mechanisms.continuous import sample_gaussian, sample_laplace
from tacit.mechanisms.discrete_gaussian import (
    convolution_slack,
    discrete_gaussian_log_pmf,
    discrete_gaussian_variance,
    sample_discrete_gaussian,
)
from tacit.mechanisms.discrete_laplace import (
    discrete_laplace_log_pmf,
    discrete_laplace_variance,
    sample_discrete_laplace,
)
from tacit.mechanisms.sum_quantiles import discrete_gaussian_sum_quantile, discrete_laplace_sum_quantile

__all__ = [
    "convolution_slack",
    "discrete_gaussian_log_pmf",
    "discrete_gaussian_sum_quantile",
    "discrete_gaussian_variance",
    "discrete_laplace_log_pmf",
    "discrete_laplace_sum_quantile",
    "discrete_laplace_variance",
    "sample_bernoulli_exp",
    "sample_bernoulli_exp_ratio",
    "sample_discrete_gaussian",
    "sample_discrete_laplace",
    "sample_gaussian",
    "sample_laplace",
]
