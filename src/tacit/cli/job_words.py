"""Words of the command line as settings of a job: its TOML file, data, options and numbers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tacit.errors import DataError, ParameterError, shown

__all__ = ["number_of", "options_of", "read_job", "with_slash"]


def with_slash(said: Any) -> Any:
    """Return data with a slash behind every folder, which tells it from the name of a data set."""
    from tacit.data import names, prepared_names

    if not isinstance(said, str):
        return [with_slash(one) for one in said] if isinstance(said, list) else said
    known = said in names() or said in prepared_names()
    folder = not known and not said.endswith("/") and Path(said).is_dir()
    return f"{said}/" if folder else said


def read_job(config: Path) -> dict[str, Any]:
    """Return the settings of a TOML file."""
    from tacit.data.kinds import utf8_text

    try:
        found = tomllib.loads(utf8_text(config.read_bytes(), str(config)))
    except OSError as error:
        raise DataError(f"the job {config} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"the job {config} is not TOML: {error}.") from error
    if isinstance(found.get("columns"), dict) or isinstance(found.get("label"), dict):
        raise DataError(
            f"{config} is a column description and no job: name the tables, and this file after --columns."
        )
    return found


def options_of(given: list[str]) -> dict[str, Any]:
    """Return options that were written as KEY=VALUE."""
    pairs = [text.partition("=") for text in given]
    for text, (name, equals, value) in zip(given, pairs, strict=True):
        if not (name and equals and value):
            raise ParameterError(f"option must be KEY=VALUE, got {text!r}.")
    names = [name.replace("-", "_") for name, _, _ in pairs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ParameterError(f"option must name each option once, got {min(twice)} several times.")
    return {name: _value(name, text) for name, (_, _, text) in zip(names, pairs, strict=True)}


def _value(name: str, text: str) -> Any:
    """Return the value of an option: a number or a word, or what TOML marks as anything else."""
    if text[0] not in "{[\"'" and text not in ("true", "false"):
        return number_of(text)
    try:
        found = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        found = {}
    if len(found) != 1:  # more than one: the text goes on with settings of its own
        raise ParameterError(f"{name} must be a number, a word, or a value of TOML, got {shown(text)}.")
    return found["value"]


def number_of(text: str) -> str | int | float:
    """Return a flag that may be a word or a number as what it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
