"""Parties on other machines: keys, messages, the shuffler, and the two ends of a round.

Needs the extra `tacit[federation]`; nothing below imports it. The modules are imported one by one
(`from tacit.federation.network.roster import Roster`), since no party needs all of them.
"""

from importlib.util import find_spec

from tacit.errors import TacitError, install_extra

__all__: list[str] = []

for _name in ("cryptography", "starlette", "uvicorn", "httpx", "prometheus_client"):
    if find_spec(_name) is None:  # every module of this folder comes through here
        raise TacitError(
            f"a federation over a network needs the extra: {install_extra('federation')} installs it "
            f"({_name} is not there)."
        )
