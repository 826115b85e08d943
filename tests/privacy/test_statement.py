"""Statements as objects: written and read back equal, bounded, and never without what must be said."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tacit.errors import ParameterError, VerificationError
from tacit.privacy import CONTINUOUS, Gaussian, Guarantee, PureDP, Unit, guarantee
from tacit.privacy import statement as module
from tacit.privacy.run_clauses import OPEN as OPEN_WORDS
from tacit.privacy.run_clauses import clauses_of_start, compared_note
from tacit.privacy.statement import About, DataFacts, OpenModel, Statement, digest_of
from tacit.privacy.statement_file import read_statement
from tacit.privacy.strict_json import MOST_BYTES

OPEN = OpenModel(trust="none", sentence=OPEN_WORDS)


def claim(name: str, epsilon: float = 1.0) -> Guarantee:
    clauses = clauses_of_start("mlp:3")
    return guarantee(PureDP(epsilon), 0.0, observer=f"everybody outside silo {name!r}", assumptions=clauses)


def run_of(sizes: dict[str, int | None]) -> Statement:
    return Statement(
        kind="train",
        run="demo",
        created="2025-03-01T12:30:00+00:00",
        tacit="0.1.0",
        released="local",
        model="mlp:3, 17 parameters",
        guarantees=tuple(claim(name) for name in sizes),
        about=tuple(About(trust="local", silo=name, units=n) for name, n in sizes.items()),
        not_private=(OPEN,),
        data=DataFacts(
            name="digits", public=True, silos=len(sizes), unit=Unit.RECORD, sizes=sizes, read_off=()
        ),
        notes=("Look out.", compared_note("local")),
        digests={"model.json": "0" * 64},
    )


def read_again(statement: Statement) -> Statement:
    return read_statement(json.dumps(statement.to_builtins()).encode())


@pytest.mark.parametrize(
    "sizes", [{"a": 3, "it's": 4}, {"b": None}, {"c": 0, "d": None}, {str(k): k for k in range(50)}]
)
def test_what_is_written_is_read_back_equal_and_is_true(sizes: dict[str, int | None]) -> None:
    statement = run_of(sizes)
    assert read_again(statement) == statement
    read_again(statement).verify()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("mlp:3, 17 parameters", "the weights that training starts from are public random numbers"),
        ("cnn@28x20, 17 parameters", "the weights that training starts from are public random numbers"),
        ("my.nets:Net, 17 parameters", "the weights that the module starts from hold nothing of the data"),
        ("cnn_nets:Net, 17 parameters", "the weights that the module starts from hold nothing of the data"),
        (
            "linear.nets:Net, 17 parameters",
            "the weights that the module starts from hold nothing of the data",
        ),
        ("scattering@8x8, 17 parameters", ""),
        ("linear, 17 parameters", ""),
        ("scattering:2, 17 parameters", ""),
    ],
)
def test_the_statement_of_a_network_says_where_its_weights_start(model: str, said: str) -> None:
    bare = msgspec.structs.replace(claim("a"), assumptions=())
    statement = msgspec.structs.replace(run_of({"a": 3}), model=model, guarantees=(bare,))
    if not said:
        statement.verify()
        return
    with pytest.raises(VerificationError, match=said):
        statement.verify()
    full = msgspec.structs.replace(bare, assumptions=(said,))
    whole = msgspec.structs.replace(statement, guarantees=(full,))
    whole.verify()
    with pytest.raises(VerificationError, match="the statement says what its facts do not"):
        msgspec.structs.replace(whole, model="linear, 17 parameters").verify()


@pytest.mark.parametrize("model", [None, ""])
def test_a_model_cannot_be_cut_out_together_with_its_clause(model: str | None) -> None:
    bare = msgspec.structs.replace(claim("a"), assumptions=())
    cut = msgspec.structs.replace(run_of({"a": 3}), model=model, guarantees=(bare,))
    with pytest.raises(VerificationError, match="must have the fields `data`, `released` and `model`"):
        read_again(cut).verify()


def test_a_fact_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(ParameterError, match="a statement of kind 'mean' has no field 'score'"):
        Statement(kind="mean", guarantees=(claim("a"),), answer={"score": 1}).to_builtins()


def test_equal_guarantees_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    priced: list[Guarantee] = []
    monkeypatch.setattr(module, "verify", priced.append)
    run_of({str(k): 5 for k in range(50)}).verify()
    assert len(priced) == 1


def test_sizes_are_limited_before_anything_is_priced() -> None:
    data = run_of({"a": 3}).to_builtins()
    many = {**data, "guarantees": [3] * 10_001, "about": [], "count": 10_001}
    with pytest.raises(VerificationError, match="it may hold 10,000 guarantees at most, got 10,001"):
        read_statement(json.dumps(many).encode())
    with pytest.raises(VerificationError, match="must be at most 16,777,216 bytes"):
        read_statement(b" " * (MOST_BYTES + 1))
    with pytest.raises(VerificationError, match="nested deeper"):
        read_statement(b'{"version": 5, "guarantees": ' + b"[" * 200)


def test_floats_stand_for_real_numbers_only_where_that_is_said_or_nothing_left() -> None:
    def released(kind: str, *assumptions: str, simulated: bool = False) -> Statement:
        found = guarantee(Gaussian(2.0), 1e-5, observer="x", assumptions=assumptions, simulated=simulated)
        return Statement(kind=kind, guarantees=(found,))

    for kind in ("mean", "vote release"):
        with pytest.raises(VerificationError, match=CONTINUOUS):
            released(kind).verify()
        released(kind, CONTINUOUS).verify()
        released(kind, simulated=True).verify()
    for kind in ("guarantee", "account epsilon"):
        released(kind).verify()


def test_a_digest_is_that_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4, example
    assert digest_of(tmp_path / "file") == known
    statement = Statement(kind="mean", guarantees=(claim("a"),), digests={"file": known, "gone": known})
    assert statement.check_files(tmp_path) == {"file": True, "gone": False}
