"""What a job says of fairness: whom its model must not treat differently, and what is private of them."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

import msgspec

from tacit.errors import ParameterError, check_name, check_non_negative, check_probability

__all__ = ["FairSettings"]

_PLAIN: Final = ("task", "loss", "algorithm", "batch", "sampling", "local_steps", "mu", "options", "moment")
_PENALTIES: Final = ("l1", "group_lasso", "domain", "weights", "participants", "person", "public")
_PRIVATE: Final = ("trust", "epsilon", "delta", "rounds", "clip", "noise", "n_min", "colluding", "ledger")


class FairSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a job that trains a fair model; all others have none of them.

    Attributes:
        sensitive: Sensitive columns, of which each combination is a group; they are no features. Given, the
            job trains a fair classifier.
        fairness: The notion; None is demographic parity.
        fairness_weight: Of the penalty beside the mean loss, >= 0; None is 1.
        max_violation: Instead of the weight: the largest violation on training records. With `protect`, noisy
            counts of every round move the weight, at the one price of the run, and nothing is promised.
        protect: What is private: "sensitive", the sensitive columns alone, features and labels being public;
            "record", whole records; None claims nothing.
        missing: Whether an empty sensitive cell is a group that is not known, as it is under `protect` in any
            case; else it is refused.
    """

    sensitive: str | tuple[str, ...] = ()
    fairness: Literal["demographic-parity", "equalized-odds", "equal-opportunity"] | None = None
    fairness_weight: float | None = None
    max_violation: float | None = None
    protect: Literal["sensitive", "record"] | None = None
    missing: bool = False

    unfit: ClassVar[tuple[str, ...]] = _PLAIN + _PENALTIES
    """Settings of other trainings that a fair one does not have."""

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The sensitive columns, none where the job is not about fairness."""
        return (self.sensitive,) if isinstance(self.sensitive, str) else tuple(self.sensitive)

    @property
    def weight_of_fairness(self) -> float:
        """Of the penalty."""
        return 1.0 if self.fairness_weight is None else self.fairness_weight

    def check_fairness(self, defaults: Any) -> None:
        """Refuse settings of fairness without a sensitive column, and others beside one.

        Args:
            defaults: What settings are where nobody says anything, by name.
        """
        columns = self.sensitive_columns
        if not columns:
            for name in ("fairness", "fairness_weight", "max_violation", "protect", "missing"):
                if (value := getattr(self, name)) not in (None, False):
                    raise ParameterError(
                        f"{name} needs a sensitive column, got {value!r} without one: --sensitive COLUMN."
                    )
            return
        for column in columns:
            check_name("sensitive", column)
        if len(set(columns)) < len(columns):
            raise ParameterError(f"sensitive must name each column once, got {', '.join(columns)}.")
        if self.fairness_weight is not None:
            check_non_negative("fairness_weight", self.fairness_weight)
        if self.max_violation is not None:
            check_probability("max_violation", self.max_violation)
            if self.fairness_weight is not None:
                raise ParameterError(
                    "fairness_weight and max_violation exclude each other: the second searches the first."
                )
        for name in (*self.unfit, "recover", "neighbours"):
            if (value := getattr(self, name)) != defaults[name]:
                raise ParameterError(
                    f"{name} is not for a fair model, which is a logistic regression with its own training, "
                    f"got {value!r}."
                )
        if self.protect is None:
            for name in _PRIVATE:
                if (value := getattr(self, name)) != defaults[name] and (name, value) != ("trust", "none"):
                    raise ParameterError(
                        f"{name} says what privacy costs, got {value!r} without protect: 'sensitive', the "
                        "sensitive columns alone, or 'record', whole records."
                    )
            return
        trust, clip = getattr(self, "trust", None), getattr(self, "clip", None)
        if trust in ("all", "none"):
            raise ParameterError(f"trust must be one trust model with protect, got {trust!r}.")
        if isinstance(clip, str):
            raise ParameterError(f"clip must be a number for a fair model, got {clip!r}.")
