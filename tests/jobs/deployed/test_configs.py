"""Configurations of roles: paths beside the file, and every wrong field named with its file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tacit.errors import ParameterError
from tacit.jobs.deployed.configs import ServerConfig, ShufflerConfig, read_config

SERVER = {
    "roster": "roster.toml",
    "job": "job.toml",
    "signing": "server/signing.pem",
    "opening": "server/opening.pem",
    "certificate": "server/tls.pem",
    "certificate_key": "server/tls.key",
    "authority": "ca.pem",
    "state": "server/state",
    "out": "runs",
}
SHUFFLER = {name: SERVER[name] for name in ("roster", "signing", "certificate", "certificate_key", "state")}
PATHS = [*SERVER, "columns", "public", "test", "ledger"]
BAD: list[tuple[str, object, str]] = [
    *((name, bad, f"{name}: ") for name in PATHS for bad in (3, "", 0.5)),
    ("transport", "pigeon", "transport: "),
    ("host", "", "host must"),
    ("host", "a b", "host must"),
    ("host", 5, "host: "),
    ("port", 0, "port must"),
    ("port", 65_536, "port must"),
    ("port", 1.5, "port: "),
    ("port", "8443", "port: "),
    ("deadline", 0, "deadline must"),
    ("deadline", -1.0, "deadline must"),
    ("deadline", float("nan"), "deadline must"),
    ("deadline", float("inf"), "deadline must"),
    ("deadline", 1e9, "deadline must"),
    ("deadline", "soon", "deadline: "),
    ("patience", 0, "patience must"),
    ("patience", True, "patience: "),
    ("version", 2, "version must be 1, got 2"),
    ("version", "1", "version: "),
    ("rooster", "roster.toml", "did you mean 'roster'"),
]


def written(folder: Path, values: dict[str, object]) -> Path:
    path = folder / "server.toml"
    path.write_bytes(msgspec.toml.encode(values))
    return path


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, {**SERVER, "test": "/srv/test.csv"}), ServerConfig)
    assert config.signing == tmp_path / "server" / "signing.pem"
    assert config.test == Path("/srv/test.csv")
    assert (config.columns, config.transport, config.port) == (None, "hub", 8443)
    assert read_config(written(tmp_path, {**SHUFFLER}), ShufflerConfig).state == tmp_path / "server" / "state"


@pytest.mark.parametrize(("field", "value", "says"), BAD)
def test_a_wrong_field_is_named_with_its_file(field: str, value: object, says: str, tmp_path: Path) -> None:
    path = written(tmp_path, {**SERVER, field: value})
    with pytest.raises(ParameterError) as found:
        read_config(path, ServerConfig)
    assert str(found.value).startswith(f"{path}: ")
    assert says in str(found.value)


@pytest.mark.parametrize("field", [*SERVER])
def test_a_missing_field_is_named(field: str, tmp_path: Path) -> None:
    path = written(tmp_path, {name: value for name, value in SERVER.items() if name != field})
    with pytest.raises(ParameterError, match=f"`{field}`"):
        read_config(path, ServerConfig)


@pytest.mark.parametrize("field", ["job", "opening", "authority", "out", "patience", "transport"])
def test_a_shuffler_knows_no_more_than_it_needs(field: str, tmp_path: Path) -> None:
    path = written(tmp_path, {**SHUFFLER, field: "x"})
    with pytest.raises(ParameterError, match="field must be one of"):
        read_config(path, ShufflerConfig)


@pytest.mark.parametrize("text", [b"roster = ", b"\xff", b"[[[", b"x" * (2**20 + 1)])
def test_what_is_no_toml_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_bytes(text)
    with pytest.raises(ParameterError, match=r"server\.toml"):
        read_config(tmp_path / "server.toml", ServerConfig)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"server\.toml cannot be read: No such file"):
        read_config(tmp_path / "server.toml", ServerConfig)
