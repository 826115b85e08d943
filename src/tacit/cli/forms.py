"""The forms of what commands print with `--json`, and of the files of a run: `tacit schema` publishes them.

What a command makes of structs has their form; the rest is written down here, field by field. Infinities are
null, and so is what is not public or not known.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any, Final, Literal, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from tacit.data import Column, ColumnsSpec, Label, LabelBounds, TableProblem, UnboundedLabel
from tacit.fairness import FairnessSummary
from tacit.federation import Plan
from tacit.jobs import JobConfig, PlannedMean, Scores
from tacit.jobs.model_file import ModelForm
from tacit.learning import AlgorithmInfo, LogLink, LossChoice
from tacit.ledger import Cost
from tacit.privacy import Neighbours, PrivacyBudget
from tacit.privacy.guarantee import FORMAT_VERSION
from tacit.privacy.signed import ClaimSignature
from tacit.privacy.statement import KINDS, About, DataFacts, OpenModel
from tacit.reports import Metrics

__all__ = ["FILES", "OUTPUTS", "schema_of"]

_Number = float | None
_Names = list[str]


class _Maybe:
    """A field that may be absent."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


def _form(name: str, /, *, version: Any = None, **fields: Any) -> Any:
    """Return the type of an object with these fields and no others; those of an output have a version."""
    whole = {**({} if version is None else {"version": Literal[version]}), **fields}
    listed = [
        (field, kind.kind | UnsetType, UNSET) if isinstance(kind, _Maybe) else (field, kind)
        for field, kind in whole.items()
    ]
    return msgspec.defstruct(name, listed, kw_only=True, forbid_unknown_fields=True)


def _list(kind: Any) -> Any:
    """Return the type of a list of objects of a form."""
    return GenericAlias(list, (kind,))


def _output(name: str, /, **fields: Any) -> Any:
    """Return the form of an output of version 1."""
    return _form(name, version=1, **fields)


_GUARANTEE: Final = _form(
    "Guarantee", version=FORMAT_VERSION, epsilon=_Number, delta=float, neighbours=Neighbours, observer=str,
    event=dict[str, Any], method=str, assumptions=_Names, simulated=bool, sentence=str,
)  # fmt: skip


def _statement(kind: str) -> Any:
    """Return the form of statements of a kind: its facts stand at the top."""
    facts = {fact: _Maybe(Any) for fact in sorted(KINDS[kind])}
    return _form(
        "Statement", version=FORMAT_VERSION, kind=Literal[kind], count=int,
        guarantees=_list(_GUARANTEE), **facts, about=_Maybe(list[About]), run=_Maybe(str),
        created=_Maybe(str), tacit=_Maybe(str),
        released=_Maybe(str), algorithm=_Maybe(str), model=_Maybe(str), not_private=_Maybe(list[OpenModel]),
        data=_Maybe(DataFacts), digests=_Maybe(dict[str, str]), notes=_Maybe(_Names),
        signatures=_Maybe(list[ClaimSignature]),
    )  # fmt: skip


_RESULT: Final = _form(
    "Result", trust=str, algorithm=str, algorithm_reason=str, accuracy=_Maybe(float), rmse=_Maybe(float),
    mae=_Maybe(float), pinball=_Maybe(float), deviance=_Maybe(float), scores=Scores | None,
    epsilon=_Number, delta=_Number, bits_per_silo=float, guarantee=str,
    guarantee_alone=_Maybe(str), epsilon_alone=_Maybe(_Number), rounds=int,
    noise_multiplier=float, seconds=float,
)  # fmt: skip
_PLANNED: Final = _form(
    "PlannedRun", trust=str, algorithm=str, algorithm_reason=str, rounds=int, epsilon=_Number, delta=float,
    noise_multiplier=float, noise_share=_Maybe(float), bits_per_silo=_Number, means=list[PlannedMean],
    gradient_error=_Number, error_bound=_Number, guarantee=str,
    guarantee_alone=_Maybe(str), epsilon_alone=_Maybe(_Number), plan=dict[str, Any],
)  # fmt: skip
_COMPARED: Final = _form(
    "ComparedRun", run=str, data=str, trust=str, algorithm=str, model=str, epsilon=_Number, delta=_Number,
    metric=str | None,
    score=_Number, standard_error=_Number, baseline=_Number, auc=_Number, auc_standard_error=_Number,
    bits_per_silo=float, rounds=int,
)  # fmt: skip
_COMPARED_FAIR: Final = _form(
    "ComparedFairRun", run=str, data=str, sensitive=_Names, fairness=str, fairness_weight=float,
    records=int, accuracy=_Number, standard_error=_Number, violation=_Number,
    unconstrained_violation=_Number, protect=str | None, epsilon=_Number, delta=_Number, public=bool,
)  # fmt: skip
_CANDIDATE: Final = _form(
    "Candidate", name=str, family=str, mse=_Number, rmse=_Number, kind=str, bits_per_party=_Number,
    guarantee=str | None, epsilon=_Number, delta=_Number, event=dict[str, Any] | None,
    guarantee_alone=_Maybe(str), epsilon_alone=_Maybe(_Number), radius=_Number, encode=dict[str, Any],
    decode=dict[str, Any], note=str, feasible=bool, reason=str, measured_mse=_Maybe(float),
    measured_standard_error=_Maybe(float), trials=_Maybe(int),
)  # fmt: skip
_DESIGN: Final[dict[str, Any]] = {
    "teachers": int, "epsilon": float, "delta_teacher": float, "m": float, "target_epsilon": float,
    "target_delta": float,
}  # fmt: skip
_AUDIT: Final[dict[str, Any]] = {
    "claimed_epsilon": _Number, "delta": float, "empirical_epsilon_lower": float, "confidence": float,
    "runs": int, "attack": str, "direction": str, "right": int, "wrong": int, "event": dict[str, Any],
    "refuted": bool, "sentence": str,
}  # fmt: skip
_NOISE: Final[dict[str, Any]] = {
    **_DESIGN, "method": str, "objective": str, "ties": str | None, "affected": int | None,
    "gamma": list[float], "delta_required": float, "slack": float, "exact": bool, "monotone": bool,
}  # fmt: skip
_DATA_SET: Final[dict[str, Any]] = {
    "name": str, "task": str, "records": int, "features": int, "where": str, "licence": str,
}  # fmt: skip
_LEDGER: Final[dict[str, Any]] = {
    "path": str, "label": str, "neighbours": Neighbours, "limit": dict[str, float], "spent": dict[str, float],
    "remaining": dict[str, float], "entries": list[dict[str, Any]], "sums": _Names,
}  # fmt: skip

_PREDICTED: Final = _form(
    "PredictedRun", name=str, predicted_excess_risk=_Number, predicted_squared_gradient=_Number, valid=bool,
    reason=str, bits_per_silo=_Number, rounds=int | None, noise_multiplier=_Number, gradient_error=_Number,
    about=Literal["population", "records"], runs=bool, caveat=str, algorithm=dict[str, Any],
)  # fmt: skip

_POINT: Final = _form(
    "CurvePoint", weight=float, accuracy=float, violation=float, soft_violation=float, pareto=bool
)
_BY_RATE = dict[str, _Number]
_RATES: Final = _form(
    "RatesByGroup", positive=str, computed_by=str, by_group=dict[str, _BY_RATE], overall=_BY_RATE,
    difference=_BY_RATE, ratio=_BY_RATE,
)  # fmt: skip
_FAIR: Final[dict[str, Any]] = {
    "run": str, "data": str, "sensitive": _Names, "fairness": str, "fairness_weight": float,
    "max_violation": _Number, "records": int, "accuracy": _Number, "violation": _Number,
    "unconstrained_accuracy": _Number, "unconstrained_violation": _Number,
    "held_out": FairnessSummary | None, "rates": _list(_RATES), "curve": _list(_POINT),
    "seconds": float, "protect": _Maybe(str), "trust": _Maybe(str), "epsilon": _Maybe(float),
    "delta": _Maybe(float), "simulated": _Maybe(bool), "guarantee": _Maybe(str),
}  # fmt: skip

FILES: Final[dict[str, Any]] = {
    "job": JobConfig,
    "columns": ColumnsSpec,
    "plan": Plan,
    "model.json": ModelForm,
    "metrics.json": Metrics,
    "statement.json": _statement("train"),
    "fairness.json": _output("FairFigures", **_FAIR),
}
"""Files that people write and runs leave; job, columns and plan are TOML."""

_STATEMENTS: Final = {
    ("account " if kind.startswith("account") else "") + kind.removeprefix("account "): kind
    for kind in KINDS
    if kind not in ("guarantee", "train")
}
"""Commands that print a statement, and its kind."""

_TRAINED: Final[dict[str, Any]] = {
    "run": str, "data": _form("Data", name=str, silos=int, sizes=dict[str, int | None]), "loss": LossChoice,
    "results": _list(_RESULT), "notes": _Names,
}  # fmt: skip
_AGREED: Final = _form("Agreed", epsilon=_Number, delta=float, simulated=bool)
_SILO_STATUS: Final = _form(
    "SiloStatus", name=str, size=int, present=bool, answered=int, dropped=int, refused=int,
    epsilon=_Maybe(_Number), delta=_Maybe(float), simulated=_Maybe(bool),
)  # fmt: skip
_ROUND_STATUS: Final = _form(
    "RoundStatus", step=int, asked=int, answered=_Names, refused=dict[str, str], dropped=dict[str, int],
    bits_up=int, bytes_up=int, bytes_down=int, seconds=float, skipped=bool, why=str, epsilon=_Number,
)  # fmt: skip
_SERVED: Final = _output("Served", **_TRAINED, rounds=int, bytes_up=int, bytes_down=int)

_BUDGETED: Final = {
    "trust": str, "budget_epsilon": _Number, "budget_delta": float, "parties": int, "colluding": int,
    "noise": str, "anonymity": str, "levels": str,
}  # fmt: skip

OUTPUTS: Final[dict[str, Any]] = {
    "train": _output("Train", **_TRAINED),
    "train --sensitive": _output("FairTrain", **_FAIR, folder=str),
    "fairness audit": _output(
        "FairnessAudit", data=str, sensitive=_Names,
        **get_type_hints(FairnessSummary),
    ),
    "fairness curve": _output(
        "FairnessCurve", data=_Names, sensitive=_Names, fairness=str, out=str, points=_list(_POINT)
    ),
    "server": _SERVED,
    "federation demo": _SERVED,
    "train --dry-run": _output(
        "DryRun",
        silos=_Names,
        units=dict[str, int] | None,
        public_records=int | None,
        loss=LossChoice,
        moment=_Maybe(str),
        regularization=dict[str, float | str],
        runs=_list(_PLANNED),
    ),
    "train --algorithm list": _output("Algorithms", algorithms=list[AlgorithmInfo]),
    "predict": _output(
        "Predict", run=str, table=str, out=str, records=int, statement=str | None,
        unfit=dict[str, dict[str, int]],
    ),
    "audit": _output(
        "Audit", mechanism=str, noise_factor=float, **_AUDIT, alone=_Maybe(_form("AuditAlone", **_AUDIT)),
    ),
    "reproduce": _output(
        "Reproduce", name=str, rows=list[dict[str, Any]], more=dict[str, list[dict[str, Any]]], notes=_Names,
        folder=str,
    ),
    "reproduce list": _output("Experiments", experiments=list[dict[str, str]]),
    "model show": _output(
        "ShownModel", run=str, trust=str, task=str, loss=LossChoice, link=LogLink | None,
        classes=list[str | int] | None, columns=_Names,
        intercept=Any, weights=dict[str, dict[str, float]], statement=str | None, privacy=str,
    ),
    "report compare": _output(
        "ComparedRuns", comparable=bool, notes=_Names, results=_list(_COMPARED)
    ),
    "report compare fair": _output(
        "ComparedFairRuns", comparable=bool, notes=_Names, results=_list(_COMPARED_FAIR)
    ),
    "account noise": _output(
        "Noise", noise_multiplier=float, epsilon=float, delta=float, rounds=int, sample_rate=float,
        neighbours=str, sampling=_Maybe(str), method=str,
    ),
    "account aggregate": _output(
        "PricedSum", epsilon=_Number, epsilon_alone=_Number, delta=float, noise_multiplier=float,
        parties=int, n_min=int, colluding=int, shares=int, dim=int, steps=int, std_of_a_share=float,
        bits_of_a_coordinate=int, rounds=int, neighbours=str, method=str, assumptions=_Names,
    ),
    "account compare": _output(
        "Bounds", delta=float, event=dict[str, Any], plot=str | None,
        bounds=_list(_form("Bound", method=str, epsilon=_Number, status=str, note=str)),
    ),
    "account verify": _output(
        "Verified", file=str, verified=bool, origin_verified=bool, guarantees=_list(_GUARANTEE),
        files=dict[str, bool], warnings=_Names, federation=_Maybe(str), signed_by=_Maybe(_Names),
    ),
    "plan mean": _output(
        "PlannedMean", problem=dict[str, Any], target=str, candidates=_list(_CANDIDATE),
        references=_list(_form("Reference", name=str, mse=_Number, note=str)),
        lower_bounds=_list(_form("LowerBound", statement=str, value=_Number, source=str)),
    ),
    "plan frequencies": _output(
        "PlannedFrequencies", problem=dict[str, Any], target=str, pick=str,
        candidates=_list(_form(
            "FrequencyMechanism", name=str, message=str, mse=float, rmse=float, bits_per_client=int,
            random_bits_per_client=float, epsilon=_Number, delta=float, guarantee=str, event=dict[str, Any],
            local_epsilon=_Number, detectable=_Number,
        )),
        lower_bound=_Number,
    ),
    "plan frequencies levels": _output(
        "PlannedLevels", problem=dict[str, Any], target=str,
        analysts=_list(_form(
            "PlannedAnalyst", epsilon=float, mse=float, rmse=float, detectable=_Number, guarantee=str,
            event=dict[str, Any],
        )),
        bits_per_client=int, private_bits_per_client=int, random_bits_per_client=float,
        separate_messages=dict[str, float], guarantee=str,
    ),
    "plan train": _output(
        "PlannedTraining", problem=_form(
            "TrainingFacts", silos=int, records=int, dim=int, model=str | None, features=int | None,
            classes=int | None, task=str | None, loss=str | None, trust=str, epsilon=_Number,
            delta=_Number, lipschitz=_Number, smoothness=_Number, diameter=float, convexity=str,
            strong_convexity=float, rounds=int | None, one_pass=bool, max_bits=_Number, n_min=int | None,
            colluding=int, recover=bool, l1=float, l2=float,
        ),
        excess_of_start=_Number, auto=_form("ChosenAlgorithm", name=str, reason=str) | None,
        algorithms=_list(_PREDICTED),
        orders=list[dict[str, Any]], lower_bounds_miss=_Names,
        one_record_each=_list(_form(
            "ScoMethod", name=str, bound=_Number, batch=int, rounds=int, smoothness=float, bits=float,
            reason=str, note=str, valid=bool,
        )),
    ),
    "plan reports": _output(
        "PlannedReports", problem=dict[str, Any], plans=_list(_form(
            "ReportPlan", drawn=int, sampled=int, rounds=int, local_epsilon=float, epsilon=float, risk=float,
            bits=float,
        )),
    ),
    "vote design": _output("Design", **_NOISE, out=str | None),
    "vote certify": _output("Certified", **_NOISE),
    "vote plan": _output(
        "Designs", **_DESIGN, queries=int, prior=str, designs=list[dict[str, Any]]
    ),
    "vote plot": _output("Drawn", out=str, designs=_Names),
    "messages encode": _output(
        "EncodedMessages", out=str, collection=str, batch=str, n=int, k=int, mechanism=str,
        bits_per_client=int, epsilon=float, unit=str, simulated=bool, guarantee=str,
    ),
    "messages count": _output(
        "CountedMessages", out=str, collection=str, n=int, batches=int, closed=bool, simulated=bool,
    ),
    "messages estimate": _output(
        "EstimatedMessages", collection=str, n=int, k=int, batches=int, mechanism=str, local_epsilon=float,
        estimates=dict[str, float], projection=str, intervals=dict[str, list[float]], confidence=float,
        simulated=bool,
    ),
    "bandit simulate": _output(
        "SimulatedBandit", **_BUDGETED, regret=float, standard_error=_Number, regret_without_privacy=float,
        rounds=int, runs=int, seed=int, actions=int, dim=int, radius_mode=str, survived=int,
        batches=_list(_form(
            "BanditBatch", batch=int, alive=int, actions=int, rounds=int, level=_Number, radius=_Number,
            regret=float,
        )),
        guarantee=str, guarantees=_list(_GUARANTEE),
    ),
    "bandit plan": _output(
        "PlannedBandit", actions=int, dim=int, rounds=int, core_set=int, runs=int,
        plans=_list(_form(
            "BanditPlan", **_BUDGETED, bound=float, simulated=_Number, level=_Number, guarantee=str,
            batches=_list(_form("PlannedBatch", batch=int, rounds=int, level=_Number, radius=float)),
        )),
    ),
    "bandit run": _statement("bandit run"),
    "data check": _output("Checked", files=_Names, records=int, problems=list[TableProblem]),
    "data describe": _output(
        "DataSet", **_DATA_SET, title=str, target=str | None, sensitive=_Names, source=str, page=str | None,
        not_features=_Names, files=list[dict[str, Any]],
        label=Label | LabelBounds | UnboundedLabel | None, columns=dict[str, Column],
    ),
    "data fetch": _output("Fetched", name=str, embedded=bool, files=_Names),
    "data list": _output(
        "DataSets", data_home=str, data_sets=_list(_form("DataSetLine", **_DATA_SET)),
        presets=_list(_form(
            "PresetLine", name=str, data_set=str, title=str, train=int, test=int, features=int,
            sensitive=_Names,
        )),
    ),
    "ledger create": _output("Created", created=_Names, limit=PrivacyBudget, neighbours=Neighbours),
    "ledger show": _output(
        "Ledgers", **{name: _Maybe(kind) for name, kind in _LEDGER.items()}, folder=_Maybe(str),
        ledgers=_Maybe(_list(_form("Ledger", **_LEDGER))),
    ),
    "federation status": _output(
        "FederationStatus", federation=str, run=str, plan=str, trust=str, rounds=int, done=int, skipped=int,
        state=Literal["waiting", "running", "done", "failed"], epsilon_so_far=_Number, bytes_up=int,
        bytes_down=int, seconds=float, guarantees=_list(_AGREED), silos=_list(_SILO_STATUS),
        table=_list(_ROUND_STATUS),
    ),
    "federation init": _output(
        "FoundedFederation", federation=str, folder=str, run=str, trust=str, rounds=int, price=str, plan=str,
        roster=str, fingerprints=dict[str, str], silos=dict[str, int], files=_Names,
    ),
    "federation join": _output("JoinedParty", name=str, role=str, card=str, keys=str, fingerprint=str),
    "federation fingerprint": _output(
        "Fingerprints", files=_list(_form("Fingerprint", file=str, what=str, fingerprint=str)),
    ),
    "federation amend": _output(
        "AmendedRoster", roster=str, before=str, digest=str, fingerprint=str, cards=dict[str, str],
        certificates=dict[str, str], silos=dict[str, str],
    ),
    "federation renew": _output("RenewedCertificate", certificate=str, expires=str),
    "silo check": _output(
        "CheckedSilo", federation=str, silo=str, run=str, plan=str, trust=str, algorithm=str, rounds=int,
        units=int, unit=str, epsilon=_Number, delta=float, guarantee=str,
        guarantee_alone=str | None, left=Cost | None, reserved=bool, consent=str | None,
    ),
    "silo rotate": _output("RotatedSilo", log=str, line=int | None, old=str, new=str),
    "silo log": _output(
        "SiloLog", log=str, lines=list[dict[str, Any]], head=dict[str, Any] | None, verified=bool | None,
    ),
    "schema": _output("Schemas", schemas=_Names),
    **{command: _statement(kind) for command, kind in _STATEMENTS.items()},
}  # fmt: skip
"""What each command prints with `--json`; where an option changes it, with that option."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a file or of what a command prints.

    Args:
        name: A key of `FILES` or `OUTPUTS`.
    """
    found = msgspec.json.schema({**FILES, **OUTPUTS}[name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"tacit {name}", **found}
