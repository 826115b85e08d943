"""One hypothesis profile and one width of output for all: the same examples and lines on every run."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "tacit", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tacit")

# What is started in the background of a shell ignores Ctrl-C, and hands that on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
