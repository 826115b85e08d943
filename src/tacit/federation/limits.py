"""How much a plan or a query may ask for: checked at the door, before anything of that size is made.

A hostile plan must not stall or starve a silo. No algorithm here comes near these numbers.
"""

from __future__ import annotations

__all__ = [
    "LARGEST_DOMAIN",
    "LONGEST_PLAN",
    "MOST_ANSWERED",
    "MOST_BANDS",
    "MOST_DOTS",
    "MOST_HELD",
    "MOST_KINDS",
    "MOST_LOCAL_STEPS",
    "MOST_NUMBERS",
    "MOST_POINTS",
    "MOST_POOLED",
    "MOST_PUBLIC",
    "MOST_ROUNDS",
    "MOST_STATE",
    "MOST_STATISTICS",
    "RUN_STEP_NUMBERS",
    "STEP_NUMBERS",
    "WIDEST_DOMAIN",
]

LONGEST_PLAN = 2**19
"""Characters of a plan as text."""

MOST_DOTS = 500
"""Dots in a line of that text: Python's parser takes a time that grows with the square of a dotted name."""

MOST_KINDS = 1000
"""Kinds of rounds of a plan: each is priced by itself."""

MOST_STATISTICS = 100
"""Statistics of one kind of round: each is composed and answered by itself."""

MOST_STATE = 2**25
"""Numbers that statistics keep of all units of a silo together: all are stored with every answer."""

MOST_POINTS = 100
"""Named points of a query."""

MOST_LOCAL_STEPS = 2**16
"""Steps that a silo takes before it answers once."""

MOST_BANDS = 2**16
"""Rounds that correlated noise reaches: all of them are weighed in every round."""

LARGEST_DOMAIN = 1e100
"""Radius of the ball of a hidden walk: products of its points with features of that size do not overflow."""

WIDEST_DOMAIN = 2.0**32
"""Width of the ball that a hidden walk stays in, over how far one unit moves a step: beyond it, the rounding
of points is no longer small beside what has to be hidden."""

MOST_NUMBERS, STEP_NUMBERS = 2**32, 2**14
"""Numbers that all local steps of one answer may read, units x dimensions in each, and what a step counts at
least: the silo answers nobody else meanwhile. About a minute. The rows of one batch may have as many, too,
where they have to be written out before they are added up."""

RUN_STEP_NUMBERS = 2**11
"""What a step of a hidden run counts at least: it takes many at once, and draws no batch for each."""

MOST_PUBLIC = 2**24
"""Numbers of the public records that a query brings to a hidden run."""

MOST_ANSWERED, MOST_POOLED = 2**29, 2**31
"""Bytes of one answer, and of one under central trust, where rows may be pooled and no silo stores any. Half
of what SQLite takes for one value: a ledger stores every answer, and memory holds four copies on the way.
So the bits behind a count of a binomial sum, rows x (g + b), stay below the 2**32 that a message can say."""

MOST_HELD = 2**30
"""Numbers that a silo keeps in memory for one answer besides its rows (`MeanEstimator.numbers_per_party`):
symbols before they are packed, maps that are matrices, copies of a sum of 50 million coordinates. 8 GiB."""

MOST_ROUNDS = 2**40
"""Rounds of a plan, local steps included: a ledger numbers its answers in 63 bits."""
