"""A training job as a person writes it: flags of `tacit train` or a TOML file with the same names."""

from __future__ import annotations

from collections.abc import Sequence
from glob import has_magic
from pathlib import Path
from typing import Any, Literal

import msgspec

from tacit.data.kinds import table_name
from tacit.data.registry import DATASETS, names, prepared_names
from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    check_positive,
    check_probability,
    check_text,
    shown,
)
from tacit.federation import Batch, Disjoint, Fixed, Poisson
from tacit.federation.batches import read_batch
from tacit.jobs.fair_settings import FairSettings
from tacit.jobs.reading import choices_of, read_struct
from tacit.jobs.trusts import check_parties, trusts_of
from tacit.learning.algorithms import ALGORITHMS, Algorithm, make_algorithm, needs_delta
from tacit.learning.architecture import PIXELS, Architecture
from tacit.learning.clipping import read_clip
from tacit.learning.defaults import AUTO
from tacit.learning.images import image_shape
from tacit.learning.loss_choice import CLASS_LOSSES, NUMBER_LOSSES, LossChoice
from tacit.learning.raw_features import check_raw_loss, read_moment, within_ball
from tacit.learning.regularization import Regularization
from tacit.means import MomentBound
from tacit.privacy import TrustModel

__all__ = ["CHOICES", "DEMO", "SPLITS", "JobConfig"]

SPLITS = ("auto", "column", "pairs", "label", "iid:N", "mixture:P", "dirichlet:N:ALPHA", "sorted:N")
"""Ways to make silos; N silos, P the share of mixed records, ALPHA the concentration."""

_TRUSTS = ("all", "local", "aggregate", "shuffle", "central", "none")
_KINDS_OF_BATCH: dict[str, type[Fixed | Disjoint | Poisson]] = {
    "fixed": Fixed,
    "disjoint": Disjoint,
    "poisson": Poisson,
}
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')
_MAX_NAME = 100

_SMALL = 16
"""Sides of images below which pixels have weights of their own, unless a model says `@8x8`."""


class JobConfig(FairSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One training job. Everything in it is public; settings of fairness are those of `FairSettings`.

    Attributes:
        data: Name of a data set; path of a table; or several tables, of which each is a silo: a list of
            paths, a pattern such as "wards/*.csv", or a folder, with a slash at its end.
        label: Label column of a table.
        silo_column: Column of a table that names the silo of each record.
        person: Column of a table that identifies the person of each record; it protects persons.
        columns: TOML file with public bounds and categories; None uses the one beside the table.
        public: File of public records with the feature columns of a table, none of them a record of it:
            features are scaled by it, instead of by their bounds. If it has the label column too, its records
            are trained on by algorithms that can.
        moment: "ORDER:VALUE", for a regression on a table of which no bounds are known: of the gradient g of
            a record's loss, with the label and the numbers as they stand in the table and a constant
            feature 1, (E |g|^ORDER)^(1/ORDER) <= VALUE wherever parameters may be, in "ball:5" where `domain`
            says no other. Bounds of the description are then not used, columns that it leaves out are
            numbers, and a record with a cell that is none counts as zero.
        task: What the label of a table is.
        model: What is trained: "linear", or "linear@28x28" of images, as those of a public data set of
            several classes with 16 pixels a side or more are unless it is "linear@pixels"; "scattering" or
            "scattering:2", a linear model of fixed wavelet features of square images; "mlp:64", a perceptron
            with so many hidden units, "mlp:64,32" with two layers of them, "mlp:64@28x28" of images, as those
            of a public data set are unless it is "mlp:64@pixels"; "cnn", a small convolutional network of
            wavelet features; or "package.module:Class", a module of PyTorch (see `Architecture`).
        loss: What is minimised: "logistic" or "hinge" for classes, "squared", "huber", "absolute", "quantile"
            or "poisson" for numbers (see `LossChoice`); "auto" is logistic or squared.
        quantile: For the loss "quantile": the share of labels that should lie below what is predicted.
        threshold: For "huber": the error from which on it is a line, in units of the label; None is a tenth
            of the width of its bounds.
        smoothing: For "absolute", "quantile" and "hinge": the half width over which their kink is rounded, in
            units of the label (of "hinge" in margins); None is as in `LossChoice`, and 0 leaves the kink.
        silos: How records are split over silos, one of `SPLITS`. "auto" is the silo column of a table, else
            one silo; for data sets a half mixture of labels, or five random silos for regression. Splits by
            label of a table are for simulations, which have a seed.
        trust: "local", "aggregate", "shuffle", "central", "none", or "all" for comparison: those of the five
            that fit the algorithm, the relation and the number of silos.
        n_min: Under shuffle trust, silos below which the shuffler gives a round up; under aggregate trust
            with `recover`, silos below which no sum is opened. None is all of them.
        colluding: Under shuffle and aggregate trust, how many silos may add no noise and tell what they sent.
        recover: Under aggregate trust, whether a sum is opened without silos that drop out of its round; else
            every sum needs all of them.
        epsilon: Privacy budget of every silo.
        delta: Of the budget; "auto" is 1 / n^2 for the n protected units of the smallest silo.
        neighbours: "replace-one", "zero-out", or for data sets "add-remove"; how many records a table has
            decides which of them are held out, so that one more moves others.
        algorithm: A name of `ALGORITHMS`; "auto" goes by public facts; where a batch, participants or
            an option are given, it is "accelerated", of networks "minibatch".
        rounds: Number of rounds, or "auto".
        batch: "full", a number of records, or a share of each silo below 1; None is what the algorithm has:
            one record for "local", else "full".
        sampling: How batches smaller than a silo are drawn: afresh, always as many ("fixed") or every record
            on its own ("poisson"), whichever is cheaper ("auto"); or "disjoint" in one pass.
        local_steps: Steps inside a silo per round; None is what the algorithm has. An algorithm without such
            an option refuses it, and so for `mu`.
        mu: Strong convexity to count on; None is what the algorithm has.
        options: Further options of the algorithm by name, such as step_size; `tacit train --algorithm list`
            shows them, and `read_option` says how each is written.
        clip: Clipping bound of a unit's gradient; None is a share of the Lipschitz constant that goes with
            the algorithm, or without privacy none. "auto" spends a twentieth of the budget on a first round
            that chooses it.
        l1: Strength of an L1 penalty on all parameters, on the server's side; it makes them sparse.
        l2: Strength of a squared L2 penalty on all parameters, on the server's side.
        group_lasso: Strength of a penalty on the norm of the weights that the features of each column have,
            for all classes; it takes whole columns out of the model. The public description says which
            features a column has.
        domain: Where parameters stay, as `tacit.learning.read_domain` reads it: "ball:RADIUS",
            "box:LOW:HIGH", "simplex" or "simplex:TOTAL"; None is anywhere.
        weights: "records", or "silos" to count silos equally.
        participants: Silos drawn at random per round; None is all.
        noise: "auto", "gaussian" or "discrete-gaussian".
        test_fraction: Share of records that are held out where the data set has no test half.
        seed: Of a simulation; None takes secret randomness from the operating system.
        ledger: Folder of ledgers made by `tacit ledger create --silos`, for tables.
        name: Of the run: in ledgers, and of its folder. None makes one from the data.
        out: Folder of run folders.
    """

    data: str | tuple[str, ...] = "digits-odd-even"
    label: str | None = None
    silo_column: str | None = None
    person: str | None = None
    columns: str | None = None
    public: str | None = None
    moment: str | None = None
    model: str = "linear"
    task: Literal["classification", "regression"] = "classification"
    loss: Literal["auto", "logistic", "hinge", "squared", "huber", "absolute", "quantile", "poisson"] = "auto"
    quantile: float | None = None
    threshold: float | None = None
    smoothing: float | None = None
    silos: str = "auto"
    trust: str = "local"
    n_min: int | None = None
    colluding: int = 0
    recover: bool = False
    epsilon: float = 2.0
    delta: float | Literal["auto"] = "auto"
    neighbours: Literal["replace-one", "add-remove", "zero-out"] = "replace-one"
    algorithm: str = AUTO
    rounds: int | Literal["auto"] = "auto"
    batch: int | float | Literal["full"] | None = None
    sampling: Literal["auto", "fixed", "poisson", "disjoint"] = "auto"
    local_steps: int | None = None
    mu: float | None = None
    options: dict[str, Any] = {}  # noqa: RUF012 - a struct copies it
    clip: float | Literal["auto"] | None = None
    l1: float = 0.0
    l2: float = 0.0
    group_lasso: float = 0.0
    domain: str | None = None
    weights: Literal["records", "silos"] = "records"
    participants: int | None = None
    noise: Literal["auto", "gaussian", "discrete-gaussian"] = "auto"
    test_fraction: float = 0.2
    seed: int | None = None
    ledger: str | None = None
    name: str | None = None
    out: str = "runs"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if (word := getattr(self, name)) is not None:
                check_choice(name, word, allowed)
        check_choice("trust", self.trust, _TRUSTS)
        if self.silos.isdecimal():
            raise ParameterError(
                f"silos must look like one of {', '.join(SPLITS)}, got {shown(self.silos)}; did you mean "
                f"'iid:{self.silos}'?"
            )
        check_choice("silos", self.silos.split(":")[0], [s.split(":")[0] for s in SPLITS])
        self.check_fairness(_DEFAULTS)
        self._check_budget()
        self._check_model()
        self._check_loss()
        self._check_moment()
        self._check_algorithm()
        check_probability("test_fraction", self.test_fraction, low_open=True, high_open=True)
        if self.seed is not None:
            check_count("seed", self.seed, low=0)
        _check_name(self.run if self.name is None else self.name)
        if "\0" in self.out:
            raise ParameterError(f"out must be the path of a folder, got {self.out!r}.")
        if self.ledger is not None and self.seed is not None:
            raise ParameterError("a seed and a ledger exclude each other: seeded noise protects nobody.")
        check_parties(self)
        if self.weights == "silos" and "central" in self.trusts:
            raise ParameterError(
                f"weights must be 'records' where a server is trusted, got 'silos' with trust={self.trust!r}."
            )
        if not self.is_table:
            self._check_dataset()
        elif self.neighbours == "add-remove":
            raise ParameterError(
                "neighbours must be 'replace-one' or 'zero-out' for a table (a file of yours), got "
                "'add-remove': how many records there are decides which of them are held out."
            )

    def _check_dataset(self) -> None:
        """Refuse what only a table has: a ledger that was named and not charged would be the worst of it."""
        known = names() + prepared_names()
        check_choice(f"there is no file or folder {shown(self.data)}, and a data set", self.source, known)
        for name in ("label", "silo_column", "columns", "public", "moment", "ledger"):
            if (value := getattr(self, name)) is not None:
                raise ParameterError(
                    f"{name} is for a table (a file of yours), got {value!r} with data={self.data!r}."
                )

    def _check_budget(self) -> None:
        """Refuse a budget that no Gaussian noise meets."""
        check_positive("epsilon", self.epsilon)
        if self.delta == "auto":
            return
        check_probability("delta", self.delta, high_open=True)
        # What is chosen for a simulation may have noise for that.
        later = self.automatic and self.seed is not None and self.trust in ("central", "local")
        if self.delta == 0 and self.trust != "none" and needs_delta(self.chosen) and not later:
            raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0; try 'auto'.")

    def _check_model(self) -> None:
        """Refuse what only a linear model has."""
        if self.architecture.is_plain:
            return
        model = str(self.architecture)
        if self.stated is not None:
            raise ParameterError(f"model must be 'linear' with a moment, got {model!r}.")
        if self.sensitive_columns:
            raise ParameterError(f"model must be 'linear' with fairness, got {model!r}.")
        if self.public is not None and self.architecture.is_of_images:
            raise ParameterError(
                f"public must be left out with model={model!r}, which scales pixels by their bounds, got "
                f"{self.public!r}."
            )
        if self.group_lasso > 0:
            raise ParameterError(
                f"group_lasso must be 0 with model={model!r}, got {self.group_lasso!r}; 'linear@pixels' has "
                "weights by column."
            )
        if self.domain is not None and not self.architecture.is_linear:
            raise ParameterError(f"domain must be left out for a network, got {self.domain!r}.")

    @property
    def architecture(self) -> Architecture:
        """What is trained; of a public data set of images, for what they are."""
        found = Architecture.of(self.model)
        info = None if self.is_table else DATASETS.get(self.source)
        if found.kind not in ("linear", "mlp") or found.image or info is None or not info.is_images:
            return found
        if self.model.endswith(f"@{PIXELS}"):
            return found
        shape = image_shape(info.n_features)
        plain = info.is_parity or shape[-1] < _SMALL  # of two classes, a filter gains a linear model nothing
        return found if found.kind == "linear" and plain else found.of_images(shape)

    def _check_loss(self) -> None:
        """Refuse numbers that the loss does not have, and a loss that is not for the labels of a table."""
        classes = self.task == "classification"
        if not self.is_table and self.loss != AUTO:  # a data set knows what its labels are
            classes = self.loss in CLASS_LOSSES
        loss = self.chosen_loss(classes=classes)
        if loss.classifies != classes:
            allowed = " or ".join(CLASS_LOSSES if classes else NUMBER_LOSSES)
            raise ParameterError(
                f"loss must be {allowed} with task={self.task!r}, got {self.loss!r}; the label of "
                f"{self.loss!r} has task={'regression' if classes else 'classification'!r}."
            )

    def _check_moment(self) -> None:
        """Refuse a moment where gradients have bounds, or where it would not be of the whole domain."""
        if self.stated is None:
            return
        if self.task != "regression":
            raise ParameterError(
                f"moment is for task='regression', got {self.moment!r} with task={self.task!r}: with "
                "classes, features need bounds."
            )
        if self.public is not None:
            raise ParameterError(
                f"public must be left out with a moment, got {self.public!r}: features are not scaled, and "
                "public records have no bounds to be held to."
            )
        check_raw_loss(self.chosen_loss(classes=False))

    @property
    def stated(self) -> MomentBound | None:
        """What is stated of gradients; None where features and the label have bounds."""
        return read_moment(self.moment)

    def chosen_loss(self, *, classes: bool) -> LossChoice:
        """Return the loss of labels that are classes, or numbers."""
        name = LossChoice.default(classifies=classes).name if self.loss == AUTO else self.loss
        if self.quantile is not None and name != "quantile":  # even what the loss "quantile" has by itself
            raise ParameterError(
                f"quantile is for loss='quantile', got {self.quantile!r} with loss={name!r}."
            )
        return LossChoice.of(name, quantile=self.quantile, threshold=self.threshold, smoothing=self.smoothing)

    def _check_algorithm(self) -> None:
        """Refuse parameters of the training that are out of range, or that the algorithm does not have."""
        check_choice("algorithm", self.algorithm, [AUTO, *ALGORITHMS])
        if self.batch in (None, "full") and self.sampling == "disjoint":
            raise ParameterError(
                "batch must be a whole number or a share below 1 with sampling='disjoint', got "
                f"{self.batch!r}."
            )
        _ = read_clip(self.clip)
        if self.participants is not None:
            check_count("participants", self.participants)
        _ = self.regularization()
        for name in self.options:
            if name in self.__struct_fields__:
                raise ParameterError(
                    f"options must not hold {name}, which is a setting of its own: "
                    f"--{name.replace('_', '-')}, or in a file {name} = ... outside of [options]."
                )
        _ = self.chosen

    def regularization(self, columns: Sequence[str] | None = None) -> Regularization:
        """Return the penalties and the domain.

        Args:
            columns: The column that each feature comes from, where that is known.
        """
        chosen = Regularization(
            l1=self.l1, l2=self.l2, group_lasso=self.group_lasso, groups=columns, domain=self.domain
        )
        return chosen if self.moment is None else within_ball(chosen)

    @property
    def automatic(self) -> bool:
        """Whether the algorithm goes by public facts, of which the sizes of silos are not known here."""
        given = (self.batch, self.local_steps, self.mu, self.participants)
        return self.algorithm == AUTO and not self.options and all(one is None for one in given)

    @property
    def chosen(self) -> Algorithm:
        """The algorithm with the job's parameters; where it is to be chosen, one that may be."""
        # Accelerated steps go by the smoothness, which no network says, and take no step size in its place.
        usual = "accelerated" if self.architecture.is_linear else "minibatch"
        return make_algorithm(
            usual if self.algorithm == AUTO else self.algorithm,
            rounds=None if self.rounds == "auto" else self.rounds,
            batch=self._batch,
            local_steps=self.local_steps,
            mu=self.mu,
            **self.options,
        )

    @property
    def _batch(self) -> Batch | float | str | None:
        """The batch that the job names, a number where the algorithm says how to draw it; None is its own."""
        if self.batch is None or self.sampling == "auto":
            return self.batch
        return read_batch("batch", self.batch, kind=_KINDS_OF_BATCH[self.sampling])

    @property
    def is_table(self) -> bool:
        """Whether `data` are files of the user's own: names of data sets have neither endings nor folders."""
        if not isinstance(self.data, str):
            return True
        path = Path(self.data)
        return bool(path.suffix) or path.name != self.data or has_magic(self.data)

    @property
    def source(self) -> str:
        """The data as they were named, on one line."""
        if isinstance(self.data, str):
            return self.data
        return " and ".join([*self.data[:1], *([f"{len(self.data) - 1} more"] if self.data[1:] else [])])

    @property
    def title(self) -> str:
        """What the data are called in public: the name of a file, without its folder, or of a folder."""
        path = Path(self.source)
        while has_magic(path.name):
            path = path.parent
        return path.name if path.name.strip(".") else "tables"

    @property
    def trusts(self) -> tuple[str, ...]:
        """The trust models that are run; "all" are those under which the algorithm can run."""
        return trusts_of(self) if self.trust == "all" else (self.trust,)

    @property
    def leaves_out_central(self) -> bool:
        """Whether "all" is without the trusted server, who sees no step that is taken inside a silo."""
        return self.trust == "all" and TrustModel.CENTRAL not in self.chosen.trusts

    @property
    def run(self) -> str:
        """Name of the run."""
        return self.name or table_name(Path(self.title))

    def to_toml(self) -> str:
        """Write the job as TOML, its model as what trains; names left at None are left out."""
        values = {k: v for k, v in msgspec.to_builtins(self).items() if v not in (None, {}, [], ())}
        if self.architecture.image:
            values["model"] = str(self.architecture)
        return msgspec.toml.encode(values).decode()

    @classmethod
    def of(cls, values: dict[str, Any]) -> JobConfig:
        """Build a job from parsed TOML or flags.

        Raises:
            UnknownNameError: An unknown name; the nearest one is suggested.
            ParameterError: A value of the wrong type or out of range.
        """
        return read_struct(values, cls)


_DEFAULTS: dict[str, Any] = {
    one.name: one.default_factory() if one.default is msgspec.NODEFAULT else one.default
    for one in msgspec.structs.fields(JobConfig)
}


_CHOICES = choices_of(JobConfig)
CHOICES = {"silos": SPLITS, "trust": _TRUSTS, **_CHOICES}
"""Names that settings take."""


def _check_name(name: str) -> None:
    """Refuse a name that could not be a folder, or would be one elsewhere."""
    check_text("name", name, low=1, high=_MAX_NAME)
    if name.startswith(".") or _NOT_IN_NAMES & set(name):
        forbidden = " ".join(sorted(_NOT_IN_NAMES))
        raise ParameterError(f"name must have none of {forbidden}, and no dot first, got {name!r}.")


DEMO = JobConfig(trust="all", epsilon=2.0, delta=1e-5, seed=0, name="demo")
"""What `tacit train` runs without arguments: ten silos with different mixes of handwritten digits."""
