"""What `tacit silo` reads on a silo's own machine."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tacit.data import FILL_IN
from tacit.errors import (
    LARGEST_COUNT,
    ParameterError,
    check_count,
    check_name,
    check_positive,
    check_probability,
)
from tacit.jobs.deployed.configs import CONFIG_VERSION, check_config_version, read_config

__all__ = ["SiloConfig", "read_silo_config"]


class SiloConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One silo of a federation; paths are relative to the file.

    Attributes:
        name: As in the roster.
        roster: Who takes part.
        job: What is trained, the same file as the server's.
        signing: The silo's private key for signatures.
        authority: The certificate that server and shuffler are believed by.
        state: Folder of what must survive a restart: ledger, consent, log.
        plan: What the owner is asked to agree to, the same file as the server's; None makes it of the job.
        columns: Public description of the columns of the silos' tables, the same file as the server's; None
            for a named data set.
        public: Public records, likewise.
        data: The silo's own table; None for a named data set, of which the silo holds the part at its place.
        epsilon: Limit of the ledger, which is made at the first start and can never be changed: what all runs
            together may cost. None is the budget of the job.
        delta: Limit likewise.
        trusts_server: Whether sums without noise of the silo's own may leave it. None is what the job says,
            whose plan the owner agrees to; false refuses.
        trusts_shuffler: Whether messages may leave it that a shuffler has to hide; likewise.
        colluding: How many other silos may collude with the server under aggregate trust, in the owner's
            opinion; a plan that expects more counts. None counts on nobody: the ledger is charged for what a
            message alone shows.
        most_alone: Largest epsilon of a message alone that the owner accepts there; None for any.
        socket: Unix socket for a relay on this machine (Flower); None polls the server of the roster.
        version: Of this form.
    """

    name: str
    roster: Path
    job: Path
    signing: Path
    authority: Path
    state: Path
    plan: Path | None = None
    columns: Path | None = None
    public: Path | None = None
    data: Path | None = None
    epsilon: float | None = None
    delta: float | None = None
    trusts_server: bool | None = None
    trusts_shuffler: bool | None = None
    colluding: int | None = None
    most_alone: float | None = None
    socket: Path | None = None
    version: int = CONFIG_VERSION

    def __post_init__(self) -> None:
        check_config_version(self.version)
        check_name("name", self.name)
        if self.data is not None and self.data.name == FILL_IN:
            raise ParameterError(f"data must be the silo's own table, got {FILL_IN!r}: fill it in.")
        if self.colluding is not None:
            check_count("colluding", self.colluding, low=0, high=LARGEST_COUNT)
        if self.most_alone is not None:
            check_positive("most_alone", self.most_alone)
        if self.epsilon is not None:
            check_positive("epsilon", self.epsilon)
        if self.delta is not None:
            check_probability("delta", self.delta, high_open=True)
            if self.epsilon is None:
                raise ParameterError(f"delta goes with an epsilon, got {self.delta!r} alone.")


def read_silo_config(path: Path | str) -> SiloConfig:
    """Read the configuration of a silo; errors as `read_config`."""
    return read_config(path, SiloConfig)
