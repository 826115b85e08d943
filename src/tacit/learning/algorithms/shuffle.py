"""Shuffled gradient descent inside the silos, of which nobody sees more than the last iterate.

Source: Jiang (2025), Algorithms 4 to 6 and Section 4.5. A silo goes through its records one after the other,
by itself, and sends where it ends; the noise of later steps hides the steps before
(docs/theory/iteration.md). Public records, where a method uses them, cost nothing.
"""

from __future__ import annotations

from typing import ClassVar

from tacit.errors import ParameterError, check_probability
from tacit.federation import EpochKind
from tacit.federation.epochs import nearest_part
from tacit.learning.algorithms.hidden_shuffle import HiddenShuffle
from tacit.privacy import Placement

__all__ = [
    "InterleavedShuffle",
    "PrivatePublicShuffle",
    "PrivateShuffle",
    "PublicPrivateShuffle",
]


class PrivateShuffle(HiddenShuffle, frozen=True, kw_only=True, tag="dp-shuffle"):
    """Shuffled gradients of private records with hidden iterates (Jiang 2025, DP-ShuffleG).

    Attributes:
        rounds: How often silos run and their last iterates are averaged; each costs as much as the first.
        epochs: K, passes of a run.
        order: How each pass orders the private records: "ig", "so" or "rr". Never by their values.
        batch: Records of a step; those that fill no batch sit a pass out.
        step_size: eta, at most 2 / smoothness; None makes it of public facts.
        placement: "every-step" puts noise on every private step, "epoch-end" one draw after each pass, whose
            steps are then seen by nobody.
        release: "last": what the price rests on is that nobody sees an iterate before.
        worst_case_order: Whether every order that may be drawn is protected, instead of their average.
    """

    def epoch_kinds(self) -> tuple[EpochKind, ...]:
        """Return passes through the private records."""
        return (EpochKind(placement=self.placement, count=self.epochs),)


class _PublicShuffle(HiddenShuffle, frozen=True, kw_only=True):
    """What the three methods share that use public records too.

    Attributes:
        private: Share of the steps that use private records, in (0, 1).
        cycle: Whether public records are used again where there are too few.
    """

    private: float = 0.5
    cycle: bool = False

    needs_public: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_probability("private", self.private) in (0.0, 1.0):
            raise ParameterError(
                f"private must be a share above 0 and below 1, got {self.private!r}: without public steps "
                "take the algorithm 'dp-shuffle', and without private ones nothing is to be protected."
            )

    @property
    def _cycles(self) -> bool:
        return self.cycle

    @property
    def _private_epochs(self) -> int:
        """Passes through private records where whole passes are private or public: pK, rounded."""
        found = nearest_part(self.private, self.epochs)
        if not 0 < found < self.epochs:
            raise ParameterError(
                f"private must leave at least one private and one public of {self.epochs} epochs, got "
                f"{self.private!r}."
            )
        return found


class PrivatePublicShuffle(_PublicShuffle, frozen=True, kw_only=True, tag="private-public-shuffle"):
    """Shuffled gradients with hidden iterates: private passes, then public ones (Jiang 2025, Algorithm 4).

    Attributes:
        rounds: How often silos run and their last iterates are averaged; each costs as much as the first.
        epochs: K, passes of a run, public ones included.
        order: How each pass orders the private records: "ig", "so" or "rr". Never by their values.
        batch: Records of a step; those that fill no batch sit a pass out.
        step_size: eta, at most 2 / smoothness; None makes it of public facts.
        placement: "every-step" puts noise on every private step, "epoch-end" one draw after each pass.
        release: "last": what the price rests on is that nobody sees an iterate before.
        worst_case_order: Whether every order that may be drawn is protected, instead of their average.
        private: Share of the passes that use private records, in (0, 1).
        cycle: Whether public records are used again where there are too few.
        public_noise: Whether public passes carry noise too, which hides the private ones before.
    """

    public_noise: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._private_epochs

    def epoch_kinds(self) -> tuple[EpochKind, ...]:
        """Return private passes, then public ones."""
        private = self._private_epochs
        public = EpochKind(
            private=0.0,
            public_noise=self.public_noise,
            placement=self.placement,
            count=self.epochs - private,
        )
        return (EpochKind(placement=self.placement, count=private), public)


class PublicPrivateShuffle(_PublicShuffle, frozen=True, kw_only=True, tag="public-private-shuffle"):
    """Shuffled gradients with hidden iterates: public passes, then private ones (Jiang 2025, Algorithm 5).

    Attributes:
        rounds: How often silos run and their last iterates are averaged; each costs as much as the first.
        epochs: K, passes of a run, public ones included.
        order: How each pass orders the private records: "ig", "so" or "rr". Never by their values.
        batch: Records of a step; those that fill no batch sit a pass out.
        step_size: eta, at most 2 / smoothness; None makes it of public facts.
        placement: "every-step" puts noise on every private step, "epoch-end" one draw after each pass.
        release: "last": what the price rests on is that nobody sees an iterate before.
        worst_case_order: Whether every order that may be drawn is protected, instead of their average.
        private: Share of the passes that use private records, in (0, 1).
        cycle: Whether public records are used again where there are too few.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._private_epochs

    def epoch_kinds(self) -> tuple[EpochKind, ...]:
        """Return public passes, then private ones."""
        private = self._private_epochs
        return (
            EpochKind(private=0.0, count=self.epochs - private),
            EpochKind(placement=self.placement, count=private),
        )


class InterleavedShuffle(_PublicShuffle, frozen=True, kw_only=True, tag="interleaved-shuffle"):
    """Shuffled gradients with hidden iterates: each pass private, then public (Jiang 2025, Algorithm 6).

    Public steps carry noise as well: not for the public records, but to hide the private steps before.

    Attributes:
        rounds: How often silos run and their last iterates are averaged; each costs as much as the first.
        epochs: K, passes of a run.
        order: How each pass orders the private records: "ig", "so" or "rr". Never by their values.
        batch: Records of a step; those that fill no batch sit a pass out.
        step_size: eta, at most 2 / smoothness; None makes it of public facts.
        placement: "every-step" puts noise on every step, public ones included, "epoch-end" one draw after
            each pass.
        release: "last": what the price rests on is that nobody sees an iterate before.
        worst_case_order: Whether every order that may be drawn is protected, instead of their average.
        private: Share of the steps of a pass that use private records, in (0, 1).
        cycle: Whether public records are used again where there are too few.
    """

    placement: Placement = Placement.EVERY_STEP

    def epoch_kinds(self) -> tuple[EpochKind, ...]:
        """Return passes that are private first, then public."""
        return (
            EpochKind(private=self.private, public_noise=True, placement=self.placement, count=self.epochs),
        )
