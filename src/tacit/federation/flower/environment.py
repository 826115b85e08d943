"""What must be said to Flower and Ray before they are imported."""

from __future__ import annotations

import os
from importlib.util import find_spec

from tacit.errors import TacitError, install_extra

__all__ = ["QUIET", "prepare_for_flower"]

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""No reports to anybody, no look for updates, no package that is installed while a run goes on."""


def prepare_for_flower() -> None:
    """Switch off what Flower and Ray would send or fetch, for this process and for those that it starts.

    Raises:
        TacitError: Flower is not installed.
    """
    if find_spec("flwr") is None:
        raise TacitError(f"a federation on Flower needs flwr; {install_extra('flower')} installs it.")
    os.environ.update(QUIET)
