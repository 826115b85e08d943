"""The files of one silo of a federation, as its owner has them on a machine of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster, ServerEntry, ShufflerEntry, SiloEntry
from tests.jobs.tables import SILOS, write_charges, write_patients

PATIENTS = {"data": "patients.csv", "trust": "local", "epsilon": 4.0, "delta": 1e-5, "rounds": 5}
DIGITS = {"data": "digits-odd-even", "silos": "iid:4", "trust": "local", "epsilon": 4.0, "delta": 1e-5}


def write_silo(
    folder: Path,
    *,
    trained: Mapping[str, Any] = PATIENTS,
    sizes: tuple[int, ...] = (60, 60, 60),
    place: int = 1,
    **config: Any,
) -> Path:
    """Write roster, job, columns, table and configuration of silo `place` of several.

    Args:
        folder: Where.
        trained: The job.
        sizes: Of the silos, in the roster.
        place: Whose files.
        config: Changes to the configuration; None takes a field out.

    Returns:
        The configuration.
    """
    folder.mkdir(exist_ok=True)
    names = [f"silo-{k}" for k in range(1, len(sizes) + 1)]
    keys = [SigningKey.make() for _ in names]
    server, shuffler = SigningKey.make(), SigningKey.make()
    Roster(
        federation="wards",
        server=ServerEntry(
            verify=server.public.to_text(),
            seal=OpeningKey.make().public.to_text(),
            url="https://127.0.0.1:8443",
        ),
        shuffler=ShufflerEntry(verify=shuffler.public.to_text(), url="https://127.0.0.1:8444"),
        silos=tuple(
            SiloEntry(name=name, size=size, verify=key.public.to_text())
            for name, size, key in zip(names, sizes, keys, strict=True)
        ),
    ).save(folder / "roster.toml")
    own, regression = str(trained["data"]).endswith(".csv"), trained.get("task") == "regression"
    label = "charges" if regression else "ill"
    (folder / "job.toml").write_bytes(
        msgspec.toml.encode({"label": label} | dict(trained) if own else dict(trained))
    )
    keys[place].save(folder / "signing.pem")
    server.save(folder / "server.pem")
    values: dict[str, Any] = {
        "name": names[place],
        "roster": "roster.toml",
        "job": "job.toml",
        "signing": "signing.pem",
        "authority": "ca.pem",
        "state": "state",
    }
    if own:
        write_own_table(folder, place=place, regression=regression)
        values |= {"data": "own.csv", "columns": "columns.toml"}
    values |= config
    path = folder / f"{names[place]}.toml"
    path.write_bytes(msgspec.toml.encode({k: v for k, v in values.items() if v is not None}))
    return path


def write_own_table(folder: Path, *, place: int = 1, regression: bool = False) -> pd.DataFrame:
    """Write the records of one of three silos, and the description that all of them share."""
    whole = write_charges(folder, per_silo=60) if regression else write_patients(folder)
    frame = pd.read_csv(whole)
    own = frame[frame.site == SILOS[place]]
    own.to_csv(folder / "own.csv", index=False)
    (folder / "columns.toml").write_bytes(whole.with_name(f"{whole.stem}.columns.toml").read_bytes())
    whole.unlink()
    assert np.all(own.site == SILOS[place])
    return own
