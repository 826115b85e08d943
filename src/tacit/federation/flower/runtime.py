"""Flower's simulation runtime, started and ended around a block of code."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from types import TracebackType
from typing import Final, Self

import ray
from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from tacit.errors import ParameterError, TacitError
from tacit.federation.flower.messages import QUERY
from tacit.federation.flower.processes import Process, descendants, end_processes
from tacit.federation.flower.virtual import VirtualSilos

__all__ = ["SimulationRuntime"]

_START: Final = 300.0
"""Seconds that Ray and all virtual nodes have to start."""
_SHARED: Final = 2**28
"""Bytes of memory that Ray's processes share; it would take a third of the machine."""


class SimulationRuntime:
    """Virtual nodes that answer as long as a `with` block runs; no process is left when it ends.

    Flower's function for this returns when its ServerApp does. So the ServerApp hands out its grid and waits
    for the block to end, in a thread of its own.
    """

    def __init__(self, silos: VirtualSilos, nodes: int, *, workers: int, address: str) -> None:
        if ray.is_initialized():
            raise ParameterError(
                "Ray is in use in this process, and Flower would shut it down: call ray.shutdown() first, or "
                "simulate in a process of its own."
            )
        self._silos, self._nodes, self._workers, self._address = silos, nodes, workers, address
        self._started: Queue[Grid | BaseException] = Queue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flower-simulation")
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            found = self._started.get(timeout=_START)
        except BaseException:
            self._end()
            raise
        if isinstance(found, BaseException):
            self._end()
            raise TacitError(f"Flower's simulation did not start: {type(found).__name__}: {found}") from found
        self.grid = found
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def node_ids(self) -> list[int]:
        """Return the nodes, when all of them are there."""
        end = time.monotonic() + _START
        while len(found := list(self.grid.get_node_ids())) < self._nodes:
            if time.monotonic() > end:
                raise TacitError(f"only {len(found)} of {self._nodes} virtual nodes came up.")
            self.sleep(0.05)
        return found

    def sleep(self, seconds: float) -> None:
        """Wait; refuse to wait for a runtime that has ended."""
        if not self._thread.is_alive():
            raise TacitError("Flower's simulation has ended early.") from self._error
        time.sleep(seconds)

    def _end(self) -> None:
        """Let the ServerApp return, and wait until every worker has ended."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        """Run the simulation until the block has ended."""
        server, client = ServerApp(), ClientApp()
        ours: set[Process] = set()
        client.query(QUERY)(self._silos)

        @server.main()
        def hand_out(grid: Grid, context: Context) -> None:  # noqa: ARG001 - Flower's signature
            self._started.put(grid)
            self._ended.wait()
            ours.update(descendants(os.getpid()) - before)  # while their parents still run

        before, folder = descendants(os.getpid()), tempfile.mkdtemp(prefix="tacit-ray-")
        init = {
            "address": self._address,
            "include_dashboard": False,
            "log_to_driver": False,
            "logging_level": logging.ERROR,
        }
        if self._address == "local":
            init |= {"num_cpus": self._workers, "object_store_memory": _SHARED, "_temp_dir": folder}
        try:
            with _quiet(), _same_environment():
                run_simulation(
                    server,
                    client,
                    num_supernodes=self._nodes,
                    backend_config={
                        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                        "init_args": init,  # type: ignore[dict-item]  # Flower hands them on to Ray
                    },
                )
        except BaseException as error:  # noqa: BLE001 - told to who waits for the grid or for a reply
            self._error = error
            self._started.put(error)
        finally:
            ours.update(descendants(os.getpid()) - before)
            end_processes(ours, asked=True)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _same_environment() -> Iterator[None]:
    """Take back what Flower writes into the environment of this process."""
    before = os.environ.get("PYTHONPATH")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Hush that the function is deprecated, and all else that is no error."""
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
