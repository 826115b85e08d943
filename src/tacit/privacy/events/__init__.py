"""Events: what a release costs, written down as data.

A leaf is one release, already divided by its sensitivity under the neighbours it carries. Combinators say how
releases go together. An event knows its privacy curve; `tacit.privacy.pricing` merges and composes them.

The fields of an event are plain Python numbers, whatever they were given as: NumPy's would compute in 32
bits, or overflow, as they came.

What a price rests on besides the noise (an honest shuffler, a secret sample) is said by the event itself, in
its `assumptions`, and nowhere else: `guarantee` prints it, and `verify` refuses a statement without it.

To add a leaf: subclass `Leaf`, give it fields, `curve()` and `assumptions`. It is then priced, serialised and
verified like all.
"""

from tacit.privacy.events.base import Event, Leaf, check_whole_unit, neighbours_of
from tacit.privacy.events.clauses import assumptions_of, chances_of
from tacit.privacy.events.combined import (
    Aligned,
    AnyOf,
    ByChance,
    Compose,
    Parallel,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    parts_of,
    squared_level,
)
from tacit.privacy.events.discrete import DiscreteGaussian, DiscreteLaplace
from tacit.privacy.events.drawn import Drawn, SelfDrawn
from tacit.privacy.events.leaves import ApproximateDP, Gaussian, Gdp, Laplace, NonPrivate, PureDP, Zcdp
from tacit.privacy.events.perturbed import ObjectivePerturbed
from tacit.privacy.events.sums import DiscreteGaussianSum, GaussianOnGrid

__all__ = [
    "Aligned",
    "AnyOf",
    "ApproximateDP",
    "ByChance",
    "Compose",
    "DiscreteGaussian",
    "DiscreteGaussianSum",
    "DiscreteLaplace",
    "Drawn",
    "Event",
    "Gaussian",
    "GaussianOnGrid",
    "Gdp",
    "Laplace",
    "Leaf",
    "NonPrivate",
    "ObjectivePerturbed",
    "Parallel",
    "PureDP",
    "Repeat",
    "Replaced",
    "Sample",
    "Sampled",
    "SelfDrawn",
    "Zcdp",
    "assumptions_of",
    "chances_of",
    "check_whole_unit",
    "neighbours_of",
    "parts_of",
    "squared_level",
]
