"""Bounds and formulas of the literature, to compare with; nothing is priced by them."""

from tacit.literature.binomial import BinomialParameters, paper_scalar_parameters, paper_vector_parameters
from tacit.literature.comparison import Bound, Status, compare
from tacit.literature.iteration import paper_epsilon, paper_noise, renyi_epsilon
from tacit.literature.mean_orders import (
    COMMUNICATION_ORDERS,
    central_error_order,
    hard_bernoulli_instance,
    local_error_order,
)
from tacit.literature.public_data import (
    le_cam_lower_bound,
    public_data_helps,
    semi_private_fano_bound,
    semi_private_rate,
    semi_private_total_variation,
)
from tacit.literature.rates import (
    SHUFFLED_ORDERS,
    SiloRate,
    hard_linear_rows,
    lower_bounds_miss,
    shuffled_rate,
    silo_rates,
)
from tacit.literature.silo_learning import (
    PaperParameters,
    PaperProblem,
    accelerated_erm_parameters,
    experiment_batch,
    experiment_noise_std,
    least_batch,
    local_noise_std,
    minibatch_noise_std,
    minibatch_parameters,
    one_pass_noise_std,
    one_pass_parameters,
    paper_parameters,
    user_level_budget,
)
from tacit.literature.spider import (
    SpiderNoise,
    spider_noise,
    spider_overspent,
    spider_period,
    spider_rounds,
)

__all__ = [
    "COMMUNICATION_ORDERS",
    "SHUFFLED_ORDERS",
    "BinomialParameters",
    "Bound",
    "PaperParameters",
    "PaperProblem",
    "SiloRate",
    "SpiderNoise",
    "Status",
    "accelerated_erm_parameters",
    "central_error_order",
    "compare",
    "experiment_batch",
    "experiment_noise_std",
    "hard_bernoulli_instance",
    "hard_linear_rows",
    "le_cam_lower_bound",
    "least_batch",
    "local_error_order",
    "local_noise_std",
    "lower_bounds_miss",
    "minibatch_noise_std",
    "minibatch_parameters",
    "one_pass_noise_std",
    "one_pass_parameters",
    "paper_epsilon",
    "paper_noise",
    "paper_parameters",
    "paper_scalar_parameters",
    "paper_vector_parameters",
    "public_data_helps",
    "renyi_epsilon",
    "semi_private_fano_bound",
    "semi_private_rate",
    "semi_private_total_variation",
    "shuffled_rate",
    "silo_rates",
    "spider_noise",
    "spider_overspent",
    "spider_period",
    "spider_rounds",
    "user_level_budget",
]
