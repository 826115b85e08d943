"""`tacit account verify --keys`: who stands behind each claim, and that nobody else can be made to."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.cli import main
from tacit.federation.network.roster import SERVER
from tacit.federation.network.signatures import sign_claims
from tacit.privacy import Gaussian, guarantee
from tacit.privacy.guarantee import Guarantee
from tests.cli.signing import SILOS, key_of, roster, signatures, trained, written
from tests.cli.verifying import VERDICT, Data, reworded, statement_of

SIGNED = "arithmetic verified; every guarantee signed by a key of the roster"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A signed run of every trust model."""
    return {
        trust: written(tmp_path_factory.mktemp(trust), trust) for trust in ("local", "shuffle", "central")
    }


@pytest.fixture
def folder(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the run under local trust, which a test may change."""
    return Path(shutil.copytree(folders["local"], tmp_path / "fed"))


def verify(folder: Path, *more: str) -> int:
    keys = str(folder / "roster.toml")
    return main(["account", "verify", "--keys", keys, str(folder / "run" / "statement.json"), *more])


def refused(folder: Path, data: object, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Fail unless a statement is refused with exit code 1 and one line on the error stream."""
    (folder / "run" / "statement.json").write_text(json.dumps(data))
    assert verify(folder) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith("tacit: the statement ")
    assert said in captured.err


def _alone(folder: Path) -> Path:
    """Take away what lies beside the statement, so that only signatures can contradict it."""
    for name in ("plan.toml", "model.json", "columns.toml"):
        (folder / "run" / name).unlink()
    return folder


@pytest.mark.parametrize("trust", ["local", "shuffle", "central"])
def test_who_stands_behind_each_claim_is_said(
    trust: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folders[trust]
    assert verify(folder) == 0
    out = " ".join(capsys.readouterr().out.split())
    by = (
        "by the server, for what it publishes"
        if trust == "central"
        else "by silos 'a', 'b', 'c', each for itself"
    )
    assert f"signed by the roster of 'lab': {by}" in out
    assert out.endswith(SIGNED)
    assert VERDICT not in out
    assert verify(folder, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    about = statement_of(folder / "run")["about"]
    assert found["origin_verified"] is True
    assert found["federation"] == "lab"
    assert found["signed_by"] == [one["silo"] or SERVER for one in about]
    assert len(found["signed_by"]) == {"local": 3, "shuffle": 6, "central": 1}[trust]


def test_without_keys_signatures_are_not_taken_for_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(folder / "run" / "statement.json")
    assert main(["account", "verify", path]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not verified: 3 signatures; --keys takes the roster of the federation" in out
    assert out.endswith(VERDICT)
    assert main(["account", "verify", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["origin_verified"] is False
    assert "signed_by" not in found


def test_a_statement_without_signatures_stays_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, "local", [])
    data = statement_of(folder / "run")
    assert "signatures" not in data
    refused(folder, data, "no signature of silo 'a' stands behind guarantee 1.", capsys)
    assert main(["account", "verify", str(folder / "run" / "statement.json")]) == 0


def _simulated(data: Data) -> object:
    data["notes"] = []
    return reworded(data, 0, simulated=True)


def _more_epsilon(data: Data) -> object:
    """Return a true guarantee about a weaker release, which its silo never signed."""
    part = data["guarantees"][0]
    other = guarantee(Gaussian(0.5), part["delta"], observer=part["observer"])
    return reworded(data, 0, epsilon=other.epsilon, event=other.to_builtins()["event"], method=other.method)


def _renamed(data: Data) -> object:
    """Return the statement with another name for a silo, wherever it stands."""
    text = json.dumps(data).replace("silo 'a'", "silo 'z'").replace('"silo": "a"', '"silo": "z"')
    return json.loads(text.replace('"a": 48', '"z": 48').replace('"signer": "a"', '"signer": "z"'))


def _left_out(data: Data) -> Data:
    """Return the statement without all that there is of a silo; what is left is signed."""
    for part in ("guarantees", "about", "signatures"):
        del data[part][1]
    data["count"] -= 1
    data["data"]["silos"] -= 1
    del data["data"]["sizes"]["b"]
    return data


def _resized(data: Data) -> object:
    for about in data["about"]:
        about["units"] = 10**6
    data["data"]["sizes"] = dict.fromkeys(SILOS, 10**6)
    return data


def _swapped(data: Data) -> object:
    first, second = data["signatures"][:2]
    first["signature"], second["signature"] = second["signature"], first["signature"]
    return data


def _without(data: Data) -> object:
    del data["signatures"][1]
    return data


def _bent(data: Data) -> object:
    one = data["signatures"][0]["signature"]
    data["signatures"][0]["signature"] = ("B" if one[0] == "A" else "A") + one[1:]
    return data


def _twice(data: Data) -> object:
    data["signatures"].append(data["signatures"][0])
    return data


def _nobody(data: Data) -> object:
    data["signatures"].append({**data["signatures"][0], "signer": SERVER})
    return data


def _one(name: str, value: str) -> Callable[[Data], object]:
    def change(data: Data) -> object:
        data["signatures"][0][name] = value
        return data

    return change


def _all(name: str, value: str) -> Callable[[Data], object]:
    def change(data: Data) -> object:
        for one in data["signatures"]:
            one[name] = value
        return data

    return change


def _run(data: Data) -> object:
    data["run"] = "summer"
    return _all("run", "summer")(data)


EDITED = "silo 'a' did not sign what the statement says of it"


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda d: reworded(d, 0, observer="everybody outside silo 'a', but for the server"), EDITED),
        (lambda d: reworded(d, 0, assumptions=[*d["guarantees"][0]["assumptions"], "x"]), EDITED),
        (_without, "no signature of silo 'b' stands behind guarantee 2."),
        (
            _left_out,
            "silo 'b' of the roster is missing: the data of the statement are of 2 silos, the roster is",
        ),
        (_resized, "silo 'a' has 48 units in the roster, 1000000 in the statement."),
        (_swapped, EDITED),
        (_bent, EDITED),
        (_twice, "the signature of 'a' comes twice."),
        (_nobody, "the signature of 'server' is about no guarantee that is there."),
        (_one("signer", "z"), "the signature of 'z' is about no guarantee that is there."),
        (_one("run", "summer"), "the signature of 'a' is of the run 'summer', the statement of 'winter'."),
        (_run, EDITED),
        (_one("plan", "0" * 64), "the signature of 'a' is of the plan '00"),
        (
            _one("federation", "bal"),
            "the signature of 'b' is of the federation 'lab', the statement of 'bal'.",
        ),
        (
            _all("federation", "bal"),
            "the signature of silo 'a' is of the federation 'bal', the roster of 'lab'.",
        ),
        (_one("signature", "not base64!"), "the signature of 'a' is not the base64 of 64 bytes."),
        (_one("signature", "AAAA"), "the signature of 'a' is not the base64 of 64 bytes."),
        (_renamed, "silo 'z' is not in the roster of 'lab'."),
    ],
)
def test_an_edited_statement_is_refused(
    forge: Callable[[Data], object], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(_alone(folder), forge(statement_of(folder / "run")), said, capsys)


def test_a_silo_cannot_be_left_out_beside_the_plan_that_asks_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = _left_out(statement_of(folder / "run"))
    said = "the plan that lies beside it, plan.toml, asks 3 silos, its data are of 2."
    refused(folder, forged, said, capsys)


@pytest.mark.parametrize("forge", [_simulated, _more_epsilon])
def test_arithmetic_alone_takes_what_signatures_refuse(
    forge: Callable[[Data], object], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A seed, and another event with its true price: a forger who changes both passes without --keys."""
    from tacit.privacy.guarantee import CONTINUOUS
    from tacit.privacy.run_clauses import SIMULATED

    data: Any = forge(statement_of(folder / "run"))
    if forge is _simulated:
        data["notes"] = [*statement_of(folder / "run")["notes"], SIMULATED]
    else:
        data["guarantees"][0]["assumptions"].append(CONTINUOUS)
    unsigned = {name: value for name, value in data.items() if name != "signatures"}
    path = _alone(folder) / "run" / "statement.json"
    path.write_text(json.dumps(unsigned))
    assert main(["account", "verify", str(path)]) == 0
    capsys.readouterr()
    refused(folder, data, EDITED, capsys)


def test_a_signature_of_another_plan_or_run_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = trained("local")
    other = trained("central").results[0].trained.plan
    for k, signed in enumerate((signatures(result, plan=other), signatures(result, run="summer"))):
        folder = tmp_path / str(k)
        folder.mkdir()
        written(folder, "local", signed)
        data = statement_of(folder / "run")
        if k:
            assert data["run"] == "summer"  # the statement calls the run as its parties do
            data["run"] = "winter"
        what = "plan" if k == 0 else "run"
        for forged in (data, json.loads(json.dumps(data))):
            refused(folder, forged, f"the signature of 'a' is of the {what} ", capsys)
        # With the fields made to agree, the signature itself does not.
        for one in data["signatures"]:
            one["plan"], one["run"] = data["digests"]["plan.toml"], data["run"]
        refused(folder, data, EDITED, capsys)


def test_keys_that_do_not_count_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = statement_of(folder / "run")
    made = dt.datetime.fromisoformat(data["created"]).date()
    stranger = key_of("a stranger").public.to_text()
    for changed, said in (
        ({"revoked": True}, "silo 'a' is revoked in the roster, when the statement was made"),
        ({"expires": made - dt.timedelta(days=1)}, "the key of silo 'a' has expired on"),
        ({"verify": stranger}, EDITED),
        ({"name": "z"}, "silo 'a' is not in the roster of 'lab'."),
        ({"federation": "bal"}, "is of the federation 'lab', the roster of 'bal'."),
    ):
        (folder / "roster.toml").unlink()
        roster(**changed).save(folder / "roster.toml")
        refused(folder, data, said, capsys)
    # A key that expired after the statement was made has signed it while it counted.
    (folder / "roster.toml").unlink()
    roster(expires=made).save(folder / "roster.toml")
    assert verify(folder) == 0


def test_the_server_cannot_sign_for_a_silo_nor_a_silo_for_it(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for trust, signer, other in (("local", "a", SERVER), ("central", SERVER, "a")):
        folder = Path(shutil.copytree(folders[trust], tmp_path / trust))
        data = statement_of(folder / "run")
        claim = Guarantee.from_builtins(data["guarantees"][0])
        plan = trained(trust).results[0].trained.plan
        forged = sign_claims(key_of(other), [claim], federation="lab", run="winter", plan=plan, signer=signer)
        data["signatures"][0] = msgspec.to_builtins(forged)
        who = "silo 'a'" if signer == "a" else "the server"
        refused(folder, data, f"{who} did not sign what the statement says of it", capsys)


def test_guarantees_about_all_silos_without_a_trusted_server_have_nobody_to_sign_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One guarantee for all silos together is true as far as arithmetic goes, and nobody's word."""
    folder = written(tmp_path, "local", [])
    data = statement_of(folder / "run")
    data["guarantees"], data["count"] = data["guarantees"][:1], 1
    data["about"] = [{**data["about"][0], "silo": None, "units": 48 * len(SILOS)}]
    refused(_alone(folder), data, "guarantee 1 is about all silos together: nobody can sign it.", capsys)


def test_a_statement_that_is_no_run_carries_no_signatures(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["account", "epsilon", "--noise", "3", "--delta", "1e-5", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    signed = statement_of(folder / "run")["signatures"]
    refused(folder, data, "nobody signs a statement that is not of a run.", capsys)
    data["signatures"] = signed
    refused(folder, data, "a statement of kind 'account epsilon' carries no signatures.", capsys)


def test_a_roster_that_cannot_be_read_is_the_users_mistake(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "roster.toml").unlink()
    assert verify(folder) == 2
    assert "roster.toml cannot be read: No such file or directory." in capsys.readouterr().err
