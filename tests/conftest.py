"""One hypothesis profile, one width of output and one source of keys for all: every run sees the same."""

import hashlib
import os
import random
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import HealthCheck, settings

settings.register_profile(
    "tacit", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tacit")

# What is started in the background of a shell ignores Ctrl-C, and hands that on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The cryptography package asks OpenSSL for its keys: here they are the system's bytes, as all that is secret.
for _key in (Ed25519PrivateKey, X25519PrivateKey):
    setattr(_key, "generate", classmethod(lambda key: key.from_private_bytes(os.urandom(32))))  # noqa: B010


@contextmanager
def _keys_of(name: str) -> Iterator[None]:
    """Let the random bytes of the system, which key secure generators, follow from a name."""
    number, parent = count(), os.getpid()

    def urandom(size: int) -> bytes:
        said = f"{name} {next(number)} {os.getpid() - parent}"  # forked children have bytes of their own
        return hashlib.shake_256(said.encode()).digest(size)

    patch = pytest.MonkeyPatch()
    patch.setattr(os, "urandom", urandom)
    patch.setattr(random, "_urandom", urandom)  # what `secrets` and unseeded generators ask
    try:
        yield
    finally:
        patch.undo()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """No examples are looked for in tests: they would be read and walked through for nothing."""
    return [found for found in (yield) if type(found) is pytest.Module]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that draws secretly draws the same whenever it runs."""
    with _keys_of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """What several tests share does not depend on which of them comes first."""
    with _keys_of(f"{request.node.nodeid} {fixturedef.argname}"):
        return (yield)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the width of the terminal that the tests were started from."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """PyTorch on one thread: products of several may round otherwise."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
