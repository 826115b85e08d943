"""What shuffled sums with binomial noise reveal: exact tails, Gaussian domination, calibration."""

from tacit.privacy.binomial.calibration import BinomialSum, calibrate_binomial_sum
from tacit.privacy.binomial.domination import binomial_gdp_step
from tacit.privacy.binomial.event import Binomial, BinomialAlone
from tacit.privacy.binomial.tails import binomial_delta, binomial_hockey_stick

__all__ = [
    "Binomial",
    "BinomialAlone",
    "BinomialSum",
    "binomial_delta",
    "binomial_gdp_step",
    "binomial_hockey_stick",
    "calibrate_binomial_sum",
]
