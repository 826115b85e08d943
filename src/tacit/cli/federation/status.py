"""`tacit federation status`: how far the run of a server is, as the server itself says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.output import JsonFlag, print_facts, print_json, print_table, print_text
from tacit.errors import TacitError

__all__ = ["status"]

_ROUNDS = 10
_LONGEST = 2**24


def status(
    config: Annotated[Path, typer.Option(help="TOML file of the server, as `tacit federation init` writes.")],
    json: JsonFlag = False,
) -> None:
    """Ask a running server how far its run is: rounds, silos, bytes, the price so far; all of it public."""
    from tacit.jobs.deployed.configs import ServerConfig, read_config

    found = _asked(read_config(config, ServerConfig))
    if json:
        print_json(found)
    else:
        _show(found)


def _asked(config: Any) -> dict[str, Any]:
    """Return what the server says."""
    import httpx
    import msgspec

    from tacit.federation.network.certificates import client_context
    from tacit.federation.network.roster import Roster

    url = Roster.load(config.roster).server.url.rstrip("/")
    trust = client_context(config.authority)
    try:
        with (
            httpx.Client(verify=trust, trust_env=False, timeout=10.0) as client,
            client.stream("GET", f"{url}/status.json") as reply,
        ):
            if reply.status_code != httpx.codes.OK:
                raise TacitError(f"the server at {url} has no status to show (status {reply.status_code}).")
            data = bytearray()
            for part in reply.iter_bytes():
                data += part
                if len(data) > _LONGEST:
                    raise TacitError(f"the server at {url} says more than {_LONGEST:,} bytes.")
        found = msgspec.json.decode(bytes(data), type=dict[str, Any])
    except (httpx.HTTPError, OSError) as error:
        raise TacitError(
            f"the server at {url} cannot be reached: {str(error) or type(error).__name__}."
        ) from error
    except msgspec.MsgspecError as error:
        raise TacitError(f"what answers at {url} is no server of a federation.") from error
    return found


def _show(found: dict[str, Any]) -> None:
    """Print the facts of a run, its silos and its last rounds."""
    print_facts(
        {
            "run": found["run"],
            "trust": found["trust"],
            "state": found["state"],
            "rounds": f"{found['done']} of {found['rounds']}, {found['skipped']} skipped",
            "epsilon so far": _number(found["epsilon_so_far"]),
            "sent": f"{found['bytes_up']:,} bytes up, {found['bytes_down']:,} down",
        },
        title=found["federation"],
    )
    print_table(
        ("silo", "here", "units", "answered", "refused", "epsilon"),
        [
            (
                one["name"],
                "yes" if one["present"] else "no",
                f"{one['size']:,}",
                one["answered"],
                one["refused"],
                _number(one.get("epsilon")),
            )
            for one in found["silos"]
        ],
        right=("units", "answered", "refused", "epsilon"),
    )
    if not found["table"]:
        print_text("\nNo round is over yet.")
        return
    columns = ("round", "silos", "bytes up", "bytes down", "seconds", "epsilon")
    rows = [
        (
            one["step"] + 1,
            f"{len(one['answered'])} of {one['asked']}",
            f"{one['bytes_up']:,}",
            f"{one['bytes_down']:,}",
            f"{one['seconds']:.3f}",
            _number(one["epsilon"]),
        )
        for one in found["table"][-_ROUNDS:]
    ]
    print_table(columns, rows, right=columns)


def _number(value: float | None) -> str:
    """Return an epsilon, where there is one."""
    from tacit.reports.tables import format_epsilon

    return "-" if value is None else format_epsilon(value)
