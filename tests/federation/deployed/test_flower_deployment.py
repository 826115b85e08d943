"""Flower's SuperLink and SuperNodes on this machine: TLS, authenticated nodes, a node that goes and comes."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.federation.flower.loopback import LoopbackFlower, ServerTls
from tacit.federation.flower.processes import descendants
from tacit.federation.network.certificates import make_authority
from tacit.federation.network.silo_doors import serve_socket
from tacit.federation.network.silo_service import SiloService
from tacit.learning import in_process, train
from tacit.learning.preparation import prepare
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget
from tests.federation.deployed.flower_job import PARTIES, SETTINGS, SIZES, silo
from tests.federation.network.deployed_world import consent, service

pytestmark = pytest.mark.deployed

ROOT = Path(__file__).parents[3]
JOB = "tests.federation.deployed.flower_job:run"


@contextlib.contextmanager
def on_socket(found: SiloService, path: Path) -> Iterator[None]:
    """Serve a silo as its own process would."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve_socket(found, path, stop=stop))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        found.close()


@pytest.fixture
def tls(tmp_path: Path) -> ServerTls:
    authority, now = make_authority("lab", now=dt.datetime.now(dt.UTC)), dt.datetime.now(dt.UTC)
    files = ServerTls(tmp_path / "ca.pem", tmp_path / "link.pem", tmp_path / "link.key")
    authority.save(files.authority, tmp_path / "ca.key")
    authority.issue(["127.0.0.1"], now=now).save(files.certificate, files.key)
    return files


def wait_for(path: Path, lines: int, *, deadline: float) -> None:
    end = time.monotonic() + deadline
    while not path.exists() or len(path.read_text(encoding="utf-8").splitlines()) < lines:
        assert time.monotonic() < end, f"{path.name} has not {lines} lines after {deadline:g} s"
        time.sleep(0.1)


def test_a_model_is_trained_while_a_node_goes_and_comes(tmp_path: Path, tls: ServerTls) -> None:
    """The model is that of one process bit for bit, and every ledger is charged once."""
    before = descendants(os.getpid())
    names, config = [one.name for one in PARTIES.roster.silos], tmp_path / "run.toml"
    sockets = {name: tmp_path / f"{name}.sock" for name in names}
    plan = prepare(SETTINGS, SIZES).plan
    with contextlib.ExitStack() as stack:
        ledgers = []
        for k, name in enumerate(names):
            state = tmp_path / name
            consent(PARTIES, plan, SETTINGS.run, state)
            limit = PrivacyBudget(9.0, 1e-4)
            ledgers.append(
                stack.enter_context(
                    Ledger.create(state / "ledger.sqlite", limit=limit, neighbours=Neighbours())
                )
            )
            stack.enter_context(on_socket(service(PARTIES, silo(k, ledgers[k]), state), sockets[name]))
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        flower = stack.enter_context(
            LoopbackFlower(tmp_path / "flower", tls, sockets, environment={"PYTHONPATH": path})
        )
        run = flower.start(JOB, config)
        wait_for(config.with_suffix(".rounds"), 1, deadline=60)
        flower.stop_node(names[0])
        flower.start_node(names[0])
        flower.wait(run, deadline=60)
        with pytest.raises(TacitError, match="cannot be imported"):
            flower.run("tests.no_such_module:run", config, deadline=30)
        entries = [ledger.entries() for ledger in ledgers]
    wanted = train(in_process([silo(k, None) for k in range(2)]), SETTINGS)
    assert np.array_equal(np.load(config.with_suffix(".npy")), wanted.w)
    assert [len(one) for one in entries] == [1, 1]
    assert len(config.with_suffix(".rounds").read_text(encoding="utf-8").splitlines()) == 3
    assert not [one for one in descendants(os.getpid()) - before if one.alive]
