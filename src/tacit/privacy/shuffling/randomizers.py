"""Local randomizers by name, each with the law that dominates a shuffled batch of its messages.

A *two-level* randomizer sends each outcome of a set A_x with e^epsilon0 times the density of the others; all
A_x have the measure q under one law omega. Then omega is a blanket, of mass

    beta = 1 / (1 + (e^epsilon0 - 1) q),

and a message lies in A_x only, in A_x' only, in both or in neither. The less the sets overlap, the larger
l = p_x - a p_x' is in convex order: mass of (both, neither) moves to (own, other), whose values have the same
sum and lie outside.

Laplace noise of scale 1 / epsilon0 on inputs in [0, 1]: omega is proportional to e^{-epsilon0 max(z, 1-z)},
of mass e^{-epsilon0/2}. The inputs (0, 1) are the worst for every a and every tau in

    E(l - tau)_+ = max over sets A of p_x(A) - a p_x'(A) - tau omega(A).

Write r_x = p_x / (beta omega) >= 1; r_0 is 1 on z >= 1/2 and r_1 is 1 on z <= 1/2, half of omega each.
(1) r_x is monotone in z, so a half-line holds the most of p_x among the sets of a given omega; Laplace laws
are ordered stochastically, so it is at most what such a half-line holds of p_0, or of p_1.
(2) If omega(A) <= 1/2, the half-line J = {z <= c} of the same omega has p_0(J) >= p_x(A) by (1), and r_1 = 1
on it, so p_1(J) <= p_x'(A): the value of (0, 1) on J is no less.
(3) Otherwise the same is said of the complement of A, with the inputs exchanged.
tests/privacy/shuffling/test_randomizers.py tries other pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError
from tacit.numerics import hadamard_blocks, next_power_of_two, subset_size
from tacit.privacy.curves import Array, Curve
from tacit.privacy.shuffling.blanket import BlanketBound, Cells
from tacit.privacy.shuffling.pair import ShuffledPair, check_local_level

__all__ = ["RANDOMIZERS", "Dominating", "Randomizer", "dominating", "two_level_cells"]


class Dominating(Protocol):
    """A law that dominates what a shuffled batch shows, symmetric in its two inputs."""

    @property
    def max_loss(self) -> float:
        """The local level."""

    @property
    def work(self) -> float:
        """About how many numbers one delta takes."""

    def delta(self, epsilon: npt.ArrayLike) -> Array:
        """Return a bound on the hockey-stick divergence at each epsilon >= 0."""

    def curve(self) -> Curve:
        """Return the privacy curve."""

    def renyi(self, orders: npt.ArrayLike) -> Array:
        """Return a bound on the Rényi divergence at each order > 1."""


@dataclass(frozen=True)
class Randomizer:
    """An entry of the catalogue.

    Attributes:
        name: How it is named; what follows a colon is a number the user fills in.
        covers: Which messages it is about, in one line.
        law: "pair" where of the others' messages only their blanket on two outcomes is used, "blanket" where
            the densities under the worst inputs are used whole. Both are upper bounds for every data set.
        build: Maps (epsilon0, parties, text after the colon) to the dominating law.
    """

    name: str
    covers: str
    law: str
    build: Callable[[float, int, str], Dominating]


def dominating(name: str, epsilon0: float, parties: int) -> Dominating:
    """Return the law that dominates `parties` shuffled messages of a randomizer.

    Args:
        name: One of `RANDOMIZERS`, with its number after the colon where it has one: "krr:16".
        epsilon0: Local level of one message, pure. In (0, 30].
        parties: Messages in the batch, honest and delivered.

    Raises:
        ParameterError: Unknown name, or a number outside of what the randomizer allows.

    Example:
        >>> float(dominating("2rr", 1.0, 1000).delta(0.125040).round(7))
        1e-05
    """
    check_local_level("epsilon0", epsilon0)
    family, _, argument = str(name).partition(":")
    for known in RANDOMIZERS:
        stem, _, takes = known.name.partition(":")
        if stem == family and bool(takes) == bool(argument):
            return known.build(float(epsilon0), parties, argument)
    names = ", ".join(known.name for known in RANDOMIZERS)
    raise ParameterError(f"randomizer must be one of {names}, got {name!r}.")


def two_level_cells(epsilon0: float, measure: float, overlap: float) -> Cells:
    """Return the cells of a two-level randomizer whose sets have `measure` and share `overlap` of omega."""
    e = math.exp(epsilon0)
    only = measure - overlap
    cells = np.array([only, only, overlap, max(1 - 2 * measure + overlap, 0.0)])
    keep = cells > 0
    return Cells(np.array([e, 1.0, e, 1.0])[keep], np.array([1.0, e, e, 1.0])[keep], cells[keep])


def _two_level(epsilon0: float, parties: int, measure: float, overlap: float) -> BlanketBound:
    """Return the blanket bound of a two-level randomizer."""
    cells = two_level_cells(epsilon0, measure, overlap)
    beta = 1 / (1 + math.expm1(epsilon0) * measure)
    return BlanketBound(parties, beta, lambda _: cells, epsilon0)


def _general(epsilon0: float, parties: int, _: str) -> ShuffledPair:
    return ShuffledPair.randomized_response(epsilon0, parties, blanket=math.exp(-epsilon0))


def _binary(epsilon0: float, parties: int, _: str) -> ShuffledPair:
    """Return the pair of one randomized bit; it holds with a column c that every party draws by one law, too.

    Against the blanket (the column, a fair bit) a message has the densities 1 +- t u of the two bits of a
    column, t = tanh(epsilon0 / 2), |u| <= 1. So the two values of p_x - a p_x' in a column have the mean
    1 - a, and are at most t (1 + a) off it. The largest in convex order are those of inputs that are opposite
    in every column; then the column says nothing. Not so for a column that is known of a party, such as its
    place: parties with other columns do not hide it.
    """
    return ShuffledPair.randomized_response(epsilon0, parties)


def _k_ary(epsilon0: float, parties: int, argument: str) -> Dominating:
    symbols = _whole("krr", argument, low=2)
    if symbols == 2:
        return _binary(epsilon0, parties, "")
    return _two_level(epsilon0, parties, 1 / symbols, 0.0)


def _hadamard(epsilon0: float, parties: int, argument: str) -> Dominating:
    """Return the bound of Hadamard response on k symbols; in one block where k is absent.

    Source: Acharya, Sun and Zhang (2019), AISTATS; Girgis (2023), (7.49).
    """
    if not argument:
        return _two_level(epsilon0, parties, 0.5, 0.25)
    k = _whole("hr", argument, low=2)
    blocks, dim = hadamard_blocks(k, epsilon0)
    measure = 1 / (2 * blocks)
    # Sets of one block share half of each other; of two blocks, nothing, and then these are the worst.
    return _two_level(epsilon0, parties, measure, measure / 2 if k < dim else 0.0)


def _binary_hadamard(epsilon0: float, parties: int, argument: str) -> Dominating:
    """Return the bound of (column, bit), the column uniform among the non-constant ones of dimension K.

    Half of the messages are likely for a value, and those of two values differ in K / 2 columns. Where column
    0 is drawn too, in which all agree, the sets overlap more, which costs less.
    """
    k = _whole("bh", argument, low=2)
    if k == 2:
        return _binary(epsilon0, parties, "")
    K = next_power_of_two(k)
    return _two_level(epsilon0, parties, 0.5, (K / 2 - 1) / (2 * (K - 1)))


def _unary(epsilon0: float, parties: int, argument: str, *, symmetric: bool) -> Dominating:
    """Return the bound of a unary encoding of k values, every bit flipped by itself.

    Let P and Q be the probabilities that a value is named which is held, or is not. A set of named values has
    e^epsilon0 times the density under its members as under all other values, where it is (1 - P) / (1 - Q)
    times that of answers that are all of the second kind. So it is two-level, but for the set of all values,
    which is as likely for every input. The blanket has the mass (1 - P) / (1 - Q) (1 - Q^k) + P Q^{k-1}.
    """
    k = _whole("rappor" if symmetric else "oue", argument, low=2)
    other = float(special.expit(-epsilon0 / (2 if symmetric else 1)))
    held = 1 - other if symmetric else 0.5
    e, less = math.exp(epsilon0), (1 - held) / (1 - other)
    every = other**k  # under nothing held
    beta = less * (1 - every) + held * every / other
    one, both = less * other * (1 - other), less * (other**2 - every)
    none = less * (1 - other) ** 2 + held * every / other
    mass = np.array([one, one, both, none]) / beta
    keep = mass > 0
    own, seen = np.array([e, 1.0, e, 1.0]), np.array([1.0, e, e, 1.0])
    cells = Cells(own[keep], seen[keep], mass[keep])
    return BlanketBound(parties, beta, lambda _: cells, epsilon0)


def _subset(epsilon0: float, parties: int, argument: str) -> Dominating:
    """Return the bound of subset selection: of the sets that hold x, (w - 1) / (k - 1) hold x' as well."""
    k = _whole("ss", argument, low=2)
    w = subset_size(k, epsilon0)
    return _two_level(epsilon0, parties, w / k, w * (w - 1) / (k * (k - 1)))


def _recoverable_hadamard(epsilon0: float, parties: int, argument: str) -> Dominating:
    """Return the bound of recoverable Hadamard response: blocks of b - 1 places, b / 2 of which are likely.

    Likely sets of two values of one block share b / 4 places, and those of two blocks nothing.
    """
    k = _whole("rhr", argument, low=2)
    blocks, dim = hadamard_blocks(k, epsilon0)
    symbols = blocks * (dim - 1)
    return _two_level(epsilon0, parties, dim / 2 / symbols, dim / 4 / symbols if k < dim else 0.0)


def _cap(epsilon0: float, parties: int, argument: str) -> Dominating:
    return _two_level(epsilon0, parties, _share("privunit", "the cap", argument, high=0.5), 0.0)


def _likely(epsilon0: float, parties: int, argument: str) -> Dominating:
    """Return the bound of any two-level randomizer: sets that are too large to be disjoint share the rest."""
    measure = _share("two-level", "a set", argument, high=1 - 2.0**-30)
    return _two_level(epsilon0, parties, measure, max(2 * measure - 1, 0.0))


def _laplace(epsilon0: float, parties: int, _: str) -> BlanketBound:
    return BlanketBound(parties, math.exp(-epsilon0 / 2), partial(_laplace_cells, epsilon0), epsilon0)


def _laplace_cells(epsilon0: float, points: int) -> Cells:
    """Return the cells of Laplace noise for the inputs (0, 1): the larger density on `points` + 1 values.

    On its half the larger density is R = min(e^{2 Y}, e^epsilon0), Y ~ Exp(1): Pr(R > r) = r^{-1/2}, and
    E(R - r)_+ = 2 (e^{epsilon0/2} - r^{1/2}). l is linear in R, so chords of E(R - r)_+ spread l as well.
    """
    e = math.exp(epsilon0)
    r = np.linspace(1, e, points + 1)
    # -2 (sqrt(r_{j+1}) - sqrt(r_j)) / (r_{j+1} - r_j), without the difference.
    slope = -2 / (np.sqrt(r[1:]) + np.sqrt(r[:-1]))
    mass = np.diff(np.concatenate([[-1.0], slope, [0.0]])) / 2
    ones = np.ones_like(r)
    return Cells(np.append(r, ones), np.append(ones, r), np.append(mass, mass))


def _share(name: str, of: str, text: str, *, high: float) -> float:
    """Return the share after the colon."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share <= high:
        raise ParameterError(f"{name}:q needs the measure q of {of} in (0, {high:g}], got {text!r}.")
    return share


def _whole(name: str, text: str, *, low: int) -> int:
    """Return the number after the colon."""
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= 10**9:
        raise ParameterError(f"{name}:B needs a whole number B from {low} to 1e9, got {text!r}.")
    return int(text)


RANDOMIZERS: tuple[Randomizer, ...] = (
    Randomizer(
        "general",
        "any message with pure level epsilon0; also several randomized responses sent as one symbol",
        "pair",
        _general,
    ),
    Randomizer(
        "2rr",
        "one randomized bit (c, y), c the same for all or drawn by each without looking, not known by party: "
        "Hadamard one-bit, hemisphere, RR",
        "pair",
        _binary,
    ),
    Randomizer("krr:B", "randomized response on B symbols", "blanket", _k_ary),
    Randomizer(
        "hadamard", "Hadamard response in one block: half of the alphabet at e^epsilon0", "blanket", _hadamard
    ),
    Randomizer(
        "hadamard:k",
        "Hadamard response on k symbols in blocks (Acharya, Sun and Zhang 2019)",
        "blanket",
        _hadamard,
    ),
    Randomizer("hr:k", "the same by the name of its frequency oracle", "blanket", _hadamard),
    Randomizer(
        "bh:k",
        "binary Hadamard response on k values: a column drawn without looking, and one bit",
        "blanket",
        _binary_hadamard,
    ),
    Randomizer(
        "oue:k",
        "optimised unary encoding of k values, all bits in one message",
        "blanket",
        partial(_unary, symmetric=False),
    ),
    Randomizer(
        "rappor:k",
        "symmetric unary encoding of k values (one-time RAPPOR), all bits in one message",
        "blanket",
        partial(_unary, symmetric=True),
    ),
    Randomizer("ss:k", "subset selection on k values: one set of ceil(k / (e^e0 + 1))", "blanket", _subset),
    Randomizer("rhr:k", "recoverable Hadamard response on k values", "blanket", _recoverable_hadamard),
    Randomizer(
        "two-level:q",
        "any message of which, for each input, a share q of all are e^epsilon0 times as likely as the others",
        "blanket",
        _likely,
    ),
    Randomizer("laplace", "Laplace noise of scale 1 / epsilon0 on a number in [0, 1]", "blanket", _laplace),
    Randomizer(
        "privunit:q",
        "PrivUnit, PrivUnitG or subset selection: sets of measure q, at worst disjoint, at e^epsilon0",
        "blanket",
        _cap,
    ),
)
"""The catalogue. Every law is an upper bound for all data sets; none is claimed to be attained."""
