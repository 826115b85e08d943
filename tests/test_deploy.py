"""What is in `deploy/`: units and images say what they start, and what keeps a role in its place."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.cli import main

DEPLOY = Path(__file__).parents[1] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
IMAGES = sorted((DEPLOY / "containers").glob("*.Containerfile"))
ROLES = ("server", "shuffler", "silo")
HARDENING = {
    "NoNewPrivileges": "true",
    "ProtectSystem": "strict",
    "ProtectHome": "true",
    "PrivateTmp": "true",
    "PrivateDevices": "true",
    "ProtectKernelTunables": "true",
    "ProtectControlGroups": "true",
    "RestrictNamespaces": "true",
    "RestrictSUIDSGID": "true",
    "LockPersonality": "true",
    "CapabilityBoundingSet": "",
    "UMask": "0077",
    "LimitCORE": "0",
    "StateDirectoryMode": "0700",
}


def settings(unit: Path) -> dict[str, dict[str, list[str]]]:
    """Return a unit by section; a setting may stand several times, and a line goes on after a backslash."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in unit.read_text().replace("\\\n", " ").splitlines():
        if not line or line.startswith("#"):
            continue
        if named := re.fullmatch(r"\[(\w+)\]", line):
            section = found.setdefault(named[1], {})
            continue
        name, equals, value = line.partition("=")
        assert equals, line
        assert re.fullmatch(r"[A-Za-z]+", name), line
        section.setdefault(name, []).append(value)
    return found


def command(unit: Path) -> list[str]:
    (line,) = settings(unit)["Service"]["ExecStart"]
    return shlex.split(line)


def test_there_is_a_unit_and_an_image_for_every_role() -> None:
    names = {unit.stem for unit in UNITS}
    assert names == {
        *(f"tacit-{role}" for role in ROLES),
        "tacit-superlink",
        "tacit-supernode",
        "tacit-superexec",
    }
    assert [image.stem for image in IMAGES] == sorted(ROLES)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_keeps_its_role_in_its_place(unit: Path) -> None:
    service = settings(unit)["Service"]
    for name, value in HARDENING.items():
        assert service[name] == [value], name
    assert service["User"] == service["Group"] == [unit.stem], "every role is a user of its own"
    assert service["StateDirectory"] == [unit.stem]
    assert service["Restart"][0] in ("on-failure", "always")
    assert int(service["RestartSec"][0]) >= 15
    assert set(settings(unit)) == {"Unit", "Service", "Install"}
    assert all(len(values) == 1 for name, values in service.items() if name != "Environment")


@pytest.mark.parametrize("role", ROLES)
def test_entry_points_of_units_and_images_start(role: str) -> None:
    program, *words = command(DEPLOY / "systemd" / f"tacit-{role}.service")
    assert program == "/opt/tacit/bin/tacit"
    assert words == [role, "--config", f"/etc/tacit/{role}.toml"]
    assert main([role, "--help"]) == 0
    image = (DEPLOY / "containers" / f"{role}.Containerfile").read_text()
    assert f'ENTRYPOINT ["/opt/tacit/bin/tacit", "{role}"]' in image
    assert f'CMD ["--config", "/etc/tacit/{role}.toml"]' in image
    assert main([role, "--config", f"/etc/tacit/no-such-{role}.toml"]) == 2


@pytest.mark.parametrize("name", ["superlink", "supernode", "superexec"])
def test_programs_of_flower_know_the_options(name: str) -> None:
    program, *words = command(DEPLOY / "systemd" / f"tacit-{name}.service")
    path = Path(sys.executable).with_name(Path(program).name)
    assert path.is_file()
    told = subprocess.run(  # noqa: S603
        [path, "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"FLWR_TELEMETRY_ENABLED": "0"},
    ).stdout
    for word in (one for one in words if one.startswith("--")):
        assert word in told, word
    text = " ".join(words)
    assert "--host 0" not in text, "what is published is published by a proxy"
    assert name == "superexec" or "--insecure" not in words
    assert name != "superlink" or "--enable-supernode-auth" in words
    assert name != "supernode" or "--isolation process" in text


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.stem)
def test_an_image_runs_as_nobody_else(image: Path) -> None:
    lines = [line for line in image.read_text().splitlines() if line and not line.startswith("#")]
    words = {line.split()[0] for line in lines}
    assert words <= {
        "FROM",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "EXPOSE",
        "VOLUME",
        "STOPSIGNAL",
        "ENTRYPOINT",
        "CMD",
    }
    assert lines[0].startswith("FROM ")
    assert "USER tacit" in lines
    assert lines.index("USER tacit") > max(k for k, line in enumerate(lines) if line.startswith("RUN "))
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (DEPLOY.parent / source).exists(), source
    assert ("EXPOSE" in words) == (image.stem != "silo"), "a silo dials out"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    program = Path(sys.executable).parent
    for unit in UNITS:
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/tacit/bin/", f"{program}/"))
    said = subprocess.run(  # noqa: S603
        ["systemd-analyze", "verify", "--man=no", *sorted(map(str, tmp_path.iterdir()))],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (said.returncode, said.stdout + said.stderr) == (0, "")
