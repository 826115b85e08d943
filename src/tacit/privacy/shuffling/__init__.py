"""Privacy by shuffling: laws that dominate a batch of messages whose senders are forgotten."""

from tacit.privacy.shuffling.blanket import BlanketBound, Cells
from tacit.privacy.shuffling.drawn import drawn_round, self_drawn_round
from tacit.privacy.shuffling.gaussian import ShuffledGaussian, clones_level
from tacit.privacy.shuffling.pair import ShuffledPair
from tacit.privacy.shuffling.randomizers import RANDOMIZERS, Dominating, Randomizer, dominating
from tacit.privacy.shuffling.shuffled import Shuffled

__all__ = [
    "RANDOMIZERS",
    "BlanketBound",
    "Cells",
    "Dominating",
    "Randomizer",
    "Shuffled",
    "ShuffledGaussian",
    "ShuffledPair",
    "clones_level",
    "dominating",
    "drawn_round",
    "self_drawn_round",
]
