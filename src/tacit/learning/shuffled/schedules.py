"""The named runs of Jiang (2025): which steps use private records, which public ones, where noise goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tacit.errors import ParameterError, check_count, check_probability
from tacit.federation import Epoch
from tacit.federation.epochs import nearest_part
from tacit.privacy import Iteration, Neighbours, Order, Placement, Release

__all__ = ["ShuffledMethod", "ShuffledRun"]


class ShuffledMethod(StrEnum):
    """Which records a step uses (Jiang 2025, Algorithms 4 to 6 and Section 4.5).

    `PRIVATE` (DP-ShuffleG): private ones. `PRIVATE_PUBLIC`, `PUBLIC_PRIVATE`: whole epochs of the one kind,
    then of the other. `INTERLEAVED`: the first steps of an epoch private ones, the others public ones, with
    noise as well, which hides the private ones before. `PUBLIC`: public ones, without any noise.
    """

    PRIVATE = "dp-shuffle"
    PRIVATE_PUBLIC = "private-public-shuffle"
    PUBLIC_PRIVATE = "public-private-shuffle"
    INTERLEAVED = "interleaved-shuffle"
    PUBLIC = "public-shuffle"

    @property
    def needs_public(self) -> bool:
        """Whether public records are used."""
        return self is not ShuffledMethod.PRIVATE

    @property
    def splits(self) -> bool:
        """Whether a share of the steps is private, and the rest public."""
        return self not in (ShuffledMethod.PRIVATE, ShuffledMethod.PUBLIC)


@dataclass(frozen=True, kw_only=True)
class ShuffledRun:
    """A run of one of them.

    Attributes:
        method: Which.
        steps: Of an epoch: n, or how many batches private records make.
        epochs: K.
        share: Of all steps that are private, in (0, 1), as near as whole epochs, or steps of an epoch, come
            to it; there is at least one of each kind. Only where both are used.
        placement: Whether noise is drawn in every step, or once at the end of an epoch.
    """

    method: ShuffledMethod
    steps: int
    epochs: int
    share: float = 0.5
    placement: Placement = Placement.EVERY_STEP

    def __post_init__(self) -> None:
        if not isinstance(self.method, ShuffledMethod):
            raise ParameterError(f"method must be a ShuffledMethod, got {self.method!r}.")
        check_count("steps", self.steps, low=2 if self.method is ShuffledMethod.INTERLEAVED else 1)
        halves = (ShuffledMethod.PRIVATE_PUBLIC, ShuffledMethod.PUBLIC_PRIVATE)
        check_count("epochs", self.epochs, low=2 if self.method in halves else 1)
        check_probability("share", self.share, low_open=True, high_open=True)

    @property
    def private_steps(self) -> int:
        """Private steps of an epoch that has any: n_d."""
        if self.method is ShuffledMethod.INTERLEAVED:
            return _part(self.share, self.steps)
        return 0 if self.method is ShuffledMethod.PUBLIC else self.steps

    @property
    def private_epochs(self) -> int:
        """Epochs with private steps."""
        match self.method:
            case ShuffledMethod.PRIVATE_PUBLIC | ShuffledMethod.PUBLIC_PRIVATE:
                return _part(self.share, self.epochs)
            case ShuffledMethod.PUBLIC:
                return 0
        return self.epochs

    @property
    def public_steps(self) -> int:
        """Most public steps of an epoch."""
        if self.method is ShuffledMethod.INTERLEAVED:
            return self.steps - self.private_steps
        return self.steps if self.method.needs_public else 0

    @property
    def schedule(self) -> tuple[Epoch, ...]:
        """What each epoch does."""
        n, private = self.steps, self.private_epochs
        ours = Epoch(private=n, placement=self.placement)
        theirs = Epoch(private=0, public=n)
        match self.method:
            case ShuffledMethod.PRIVATE:
                return (ours,) * self.epochs
            case ShuffledMethod.PRIVATE_PUBLIC:
                return (ours,) * private + (theirs,) * (self.epochs - private)
            case ShuffledMethod.PUBLIC_PRIVATE:
                return (theirs,) * (self.epochs - private) + (ours,) * private
            case ShuffledMethod.PUBLIC:
                return (theirs,) * self.epochs
        mixed = Epoch(
            private=self.private_steps,
            public=self.public_steps,
            public_noise=True,
            placement=self.placement,
        )
        return (mixed,) * self.epochs

    def event(
        self,
        noise_multiplier: float,
        *,
        order: Order,
        release: Release = Release.LAST,
        step_times_smoothness: float | None = None,
        neighbours: Neighbours | None = None,
    ) -> Iteration:
        """Return what a run of a convex, clip-safe loss and a convex regulariser releases.

        Public epochs before and after private ones are computed from what is released, or known before.

        Args:
            noise_multiplier: Standard deviation of a draw / sensitivity of one gradient.
            order: Of private records.
            release: What leaves.
            step_times_smoothness: eta times a public bound on the smoothness of any record's loss; needed
                unless all iterates leave.
            neighbours: Replace-one, which is None, or zero-out.

        Raises:
            ParameterError: No step is private, or a condition of the release is not met.
        """
        if self.method is ShuffledMethod.PUBLIC:
            raise ParameterError('method "public-shuffle" uses no private record, and costs nothing.')
        hidden = release is not Release.ALL
        return Iteration(
            noise_multiplier,
            self.steps,
            self.private_epochs,
            self.private_steps,
            order=order,
            release=release,
            neighbours=Neighbours() if neighbours is None else neighbours,
            step_times_smoothness=step_times_smoothness,
            convex=hidden,
            clip_safe=hidden,
            prox_convex=hidden,
            placement=self.placement,
        )


def _part(share: float, whole: int) -> int:
    """Return that share of a whole number >= 2, neither nothing nor all of it."""
    return min(max(nearest_part(share, whole), 1), whole - 1)
