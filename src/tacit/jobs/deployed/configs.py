"""What a party's own machine must know, one TOML file per role; paths in it are relative to the file."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from tacit.errors import ParameterError, check_choice, check_count, check_positive, check_text, shown

__all__ = ["CONFIG_VERSION", "ServerConfig", "ShufflerConfig", "check_config_version", "read_config"]

CONFIG_VERSION: Final = 1

_LONGEST: Final = 2**20
_LONGEST_HOST: Final = 255
_LAST_PORT: Final = 65_535
_LONGEST_WAIT: Final = 30 * 86_400.0

Config = TypeVar("Config", bound=msgspec.Struct)


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `tacit server` reads.

    Attributes:
        roster: Who takes part.
        job: What is trained, as `tacit train` reads it; its `data` is a data set by name, or only a title.
        signing: The server's private key for signatures.
        opening: Its private key for what is sealed to it.
        certificate: Its TLS certificate, with those between it and the authority.
        certificate_key: The private key that goes with it.
        authority: The certificate that every party trusts.
        state: Folder of what must survive a restart: answers so far, and under central trust the ledger.
        out: Folder of run folders.
        plan: The plan that the silos agree to; None makes it of the job on this machine.
        columns: Public description of the columns of the silos' tables; None for a data set.
        public: Public records, as in `tacit train`.
        test: Public records with labels to score the model on; None scores on the test half of a public data
            set, and else not at all.
        ledger: The trusted server's account under central trust; None makes one in the state folder with the
            job's budget for a limit.
        transport: How queries reach the silos: silos poll this server over HTTPS ("hub"), or "flower".
        host: Address that the server listens on.
        port: Of it.
        deadline: Seconds that a round waits for answers.
        patience: Seconds that the start of a run waits for silos, and a round for enough of them.
    """

    roster: Path
    job: Path
    signing: Path
    opening: Path
    certificate: Path
    certificate_key: Path
    authority: Path
    state: Path
    out: Path
    plan: Path | None = None
    columns: Path | None = None
    public: Path | None = None
    test: Path | None = None
    ledger: Path | None = None
    transport: Literal["hub", "flower"] = "hub"
    host: str = "127.0.0.1"
    port: int = 8443
    deadline: float = 60.0
    patience: float = 3600.0
    version: int = CONFIG_VERSION

    def __post_init__(self) -> None:
        check_config_version(self.version)
        _check_address(self.host, self.port)
        _check_wait("deadline", self.deadline)
        _check_wait("patience", self.patience)


class ShufflerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `tacit shuffler` reads.

    Attributes:
        roster: Who takes part, as the shuffler knows it: it is asked for no other.
        signing: The shuffler's private key for signatures.
        certificate: Its TLS certificate, with those between it and the authority.
        certificate_key: The private key that goes with it.
        state: Folder of what must survive a restart: which rounds were released.
        host: Address that the shuffler listens on.
        port: Of it.
    """

    roster: Path
    signing: Path
    certificate: Path
    certificate_key: Path
    state: Path
    host: str = "127.0.0.1"
    port: int = 8444
    version: int = CONFIG_VERSION

    def __post_init__(self) -> None:
        check_config_version(self.version)
        _check_address(self.host, self.port)


def read_config(path: Path | str, kind: type[Config]) -> Config:
    """Read the configuration of a party.

    Args:
        path: A TOML file.
        kind: Its form; fields of type Path are relative to the folder of the file.

    Raises:
        ParameterError: The file cannot be read, or a field is unknown, missing, of another type or out of its
            range; the message names file and field.
    """
    path = Path(path)

    def resolved(wanted: type, value: object) -> object:
        if wanted is not Path:
            raise NotImplementedError
        if not isinstance(value, str) or not value or "\0" in value:
            raise ValueError(f"must be a path, got {shown(value)}")
        return path.parent / value

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ParameterError(f"the configuration {path} cannot be read: {error.strerror}.") from error
    if len(data) > _LONGEST:
        raise ParameterError(f"the configuration {path} must have at most {_LONGEST:,} bytes.")
    try:
        values = msgspec.toml.decode(data)
        if isinstance(values, dict):
            for name in values:
                check_choice("field", name, kind.__struct_fields__)
        return msgspec.convert(values, kind, dec_hook=resolved)
    except (ParameterError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        own = error if isinstance(error, ParameterError) else error.__cause__
        said = str(own) if isinstance(own, ParameterError) else _plain(str(error), values=_names(data))
        raise ParameterError(f"{path}: {said}") from error


def _names(data: bytes) -> dict[str, Any]:
    """Return what a file says, as far as it is TOML."""
    try:
        found = msgspec.toml.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _plain(message: str, *, values: dict[str, Any]) -> str:
    """Return what a parser says, with the field first."""
    found = re.fullmatch(r"(.*?) - at `\$\.(\w+)`", message, re.DOTALL)
    if found is None:
        return f"{message.removesuffix('.')}."
    reason, field = found[1], found[2]
    got = f", got {shown(values[field])}" if field in values and "got" not in reason else ""
    return f"{field}: {reason.removesuffix('.')}{got}."


def check_config_version(version: int) -> None:
    """Refuse files of other versions."""
    if version != CONFIG_VERSION:
        raise ParameterError(f"version must be {CONFIG_VERSION}, got {version!r}.")


def _check_address(host: str, port: int) -> None:
    """Refuse what no service can listen on."""
    check_text("host", host, low=1, high=_LONGEST_HOST)
    if any(letter.isspace() for letter in host) or "/" in host:
        raise ParameterError(f"host must be a name or an address of this machine, got {shown(host)}.")
    check_count("port", port, high=_LAST_PORT)


def _check_wait(name: str, seconds: float) -> None:
    """Refuse a time that is none, or longer than anybody waits."""
    check_positive(name, seconds)
    if not math.isfinite(seconds) or seconds > _LONGEST_WAIT:
        raise ParameterError(f"{name} must be at most {_LONGEST_WAIT:,.0f} seconds, got {seconds!r}.")
