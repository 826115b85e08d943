"""The shuffler as a process: behind TLS, one at a time, with the same memory after a restart."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import httpx
import pytest

from tacit.errors import AuthenticationError, TacitError
from tacit.federation.network.certificates import client_context, make_authority
from tacit.jobs.deployed.configs import ShufflerConfig, read_config
from tacit.jobs.deployed.demo import change_config, free_ports
from tacit.jobs.deployed.shuffler_role import shuffler_running
from tests.jobs.deployed.world import founded


def config_of(folder: Path) -> ShufflerConfig:
    fed = founded(folder, trust="shuffle")
    (port,) = free_ports(1)
    change_config(fed.folder / "shuffler.toml", {"port": port})
    return read_config(fed.folder / "shuffler.toml", ShufflerConfig)


def test_it_listens_behind_tls_and_remembers(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    url, trust = f"https://127.0.0.1:{config.port}", client_context(tmp_path / "fed" / "ca.pem")
    with shuffler_running(config) as shuffling, httpx.Client(verify=trust, trust_env=False) as client:
        session = shuffling.session
        assert client.get(f"{url}/health").status_code == 200
        with pytest.raises(TacitError, match="nothing can listen"), shuffler_running(config):
            pass
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{config.port}/health", trust_env=False)
    with shuffler_running(config) as again:
        assert again.session == session


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    then = dt.datetime.now(dt.UTC) - dt.timedelta(days=3)
    for path in (config.certificate, config.certificate_key):
        path.unlink()
    issued = make_authority("ward", now=then).issue(["127.0.0.1"], now=then, days=2)
    issued.save(config.certificate, config.certificate_key)
    with pytest.raises(AuthenticationError, match="has expired on"), shuffler_running(config):
        pass
