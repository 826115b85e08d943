"""Private majority of teachers: noise functions, their exact certificate, optimal designs, GNMax."""

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
    gamma_from_algorithm,
    gamma_subsampling,
    is_symmetric_form,
    rr_probability_composed,
    rr_probability_tight,
    symmetric_form_conditions,
)
from tacit.voting.noise_function import Certificate, NoiseFunction, certified, certify
from tacit.voting.objectives import Objective, expected_error, grid_integration, monte_carlo, one_sided
from tacit.voting.optimise import optimise_gamma
from tacit.voting.release import ballot_counts, majority_vote, noisy_majority, subsample_majority
from tacit.voting.setting import Setting, Ties, allowance
