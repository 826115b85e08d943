"""tacit: learn together, say little, reveal less.

The front door: the names that most programs need. Each is imported when it is first used, so that
`import tacit` costs next to nothing; everything else is in the rooms, such as `tacit.means`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.cli.account.statements import check_statement as verify
    from tacit.federation import Plan, Silo
    from tacit.jobs import TrainedModel
    from tacit.jobs import load_model as load
    from tacit.learning import FederatedLinearRegression, FederatedLogisticRegression, train
    from tacit.ledger import Ledger
    from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, TrustModel, guarantee
    from tacit.voting import PrivateVotingClassifier

    __version__: str

_HOMES = {
    "FederatedLinearRegression": "tacit.learning.FederatedLinearRegression",
    "FederatedLogisticRegression": "tacit.learning.FederatedLogisticRegression",
    "Guarantee": "tacit.privacy.Guarantee",
    "Ledger": "tacit.ledger.Ledger",
    "Neighbours": "tacit.privacy.Neighbours",
    "Plan": "tacit.federation.Plan",
    "PrivacyBudget": "tacit.privacy.PrivacyBudget",
    "PrivateVotingClassifier": "tacit.voting.PrivateVotingClassifier",
    "Silo": "tacit.federation.Silo",
    "TrainedModel": "tacit.jobs.TrainedModel",
    "TrustModel": "tacit.privacy.TrustModel",
    "guarantee": "tacit.privacy.guarantee",
    "load": "tacit.jobs.load_model",
    "train": "tacit.learning.train",
    "verify": "tacit.cli.account.statements.check_statement",
}

__all__ = [
    "FederatedLinearRegression",
    "FederatedLogisticRegression",
    "Guarantee",
    "Ledger",
    "Neighbours",
    "Plan",
    "PrivacyBudget",
    "PrivateVotingClassifier",
    "Silo",
    "TrainedModel",
    "TrustModel",
    "__version__",
    "guarantee",
    "load",
    "train",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("tacit")
    elif name in _HOMES:
        room, _, attribute = _HOMES[name].rpartition(".")
        value = getattr(importlib.import_module(room), attribute)
    else:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of the front door and of the rooms that are imported."""
    return sorted({*__all__, *globals()})
