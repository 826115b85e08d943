"""The shuffler as a process: what `tacit shuffler` runs until it is stopped."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator

from tacit.federation.network.certificates import check_certificate
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.roster import Roster
from tacit.federation.network.services import app_running, listening, tls_of
from tacit.federation.network.shuffler_app import shuffler_config
from tacit.federation.network.shuffling import Shuffling
from tacit.jobs.deployed.configs import ShufflerConfig

__all__ = ["shuffler_running"]


@contextlib.contextmanager
def shuffler_running(config: ShufflerConfig) -> Iterator[Shuffling]:
    """Run a shuffler while the block runs.

    Args:
        config: Of the role.

    Yields:
        The shuffler, which listens.

    Raises:
        TacitError: A file, a key or the address cannot be used.
    """
    roster, key = Roster.load(config.roster), SigningKey.load(config.signing)
    check_certificate(config.certificate, now=dt.datetime.now(dt.UTC))
    folder = make_private_folder(config.state)
    with listening(config.host, config.port) as place:  # also keeps a second process from the same memory
        shuffling = Shuffling(folder / "releases.sqlite", roster=roster, key=key)
        try:
            app = shuffler_config(shuffling, host=config.host, port=config.port)
            with app_running(tls_of(app, config.certificate, config.certificate_key), place):
                yield shuffling
        finally:
            shuffling.close()
