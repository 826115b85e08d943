"""Numbers only, never data: events, curves, calibration, guarantees, the ledger."""

from tacit.privacy.budget import Budget, PrivacyBudget, ZcdpBudget
from tacit.privacy.neighbours import Neighbours, Part, Relation, TrustModel, Unit

__all__ = [
    "Budget",
    "Neighbours",
    "Part",
    "PrivacyBudget",
    "Relation",
    "TrustModel",
    "Unit",
    "ZcdpBudget",
]
