"""Masks: what hides every message of a sum, and cancels in the sum of all of them.

Needs `cryptography`, of the extra `tacit[federation]`; nothing outside this folder imports it for masks. The
modules are imported one by one (`from tacit.federation.masking.roster import MaskingRoster`).
"""

from importlib.util import find_spec

from tacit.errors import TacitError, install_extra

__all__: list[str] = []

if find_spec("cryptography") is None:  # every module of this folder comes through here
    raise TacitError(
        f"masked sums need the extra: {install_extra('federation')} installs it (cryptography is not there)."
    )
