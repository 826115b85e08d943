"""`tacit messages`: files of messages and counts, from honest clients and from others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.errors import DataError, ParameterError
from tacit.frequencies import (
    MECHANISMS,
    BinaryHadamard,
    CountsFile,
    MessagesHead,
    UnaryEncoding,
    count_files,
    make_oracle,
    message_files,
    read_counts,
    write_messages,
)
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget

VALUES = np.repeat([0, 1, 2, 3], [500, 300, 150, 50])


def head(mechanism: Any, batch: int = 1, **fields: Any) -> MessagesHead:
    facts = {"collection": "c", "n": len(VALUES), "domain": "0" * 64, "simulated": True, **fields}
    return MessagesHead(mechanism=mechanism, batch=f"{batch:032x}", **facts)


def written(path: Path, mechanism: Any, batch: int = 1, **fields: Any) -> Path:
    one = head(mechanism, batch, **fields)
    with path.open("wb") as file:
        write_messages(file, np.resize(VALUES, one.n), one, np.random.default_rng(batch))
    return path


@pytest.mark.parametrize("name", MECHANISMS)
def test_files_are_counted_as_their_messages_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_files, "_AT_ONCE", 64)  # many blocks
    oracle = make_oracle(name, 4, 2.0)
    paths = [written(tmp_path / f"{k}.bin", oracle, k) for k in (1, 2, 3)]
    found = count_files(paths)
    assert (found.n, len(found.batches), found.closed) == (3000, 3, False)
    whole = [oracle.aggregate(oracle.from_bytes(path.read_bytes().split(b"\n", 1)[1])) for path in paths]
    assert found.values == (whole[0] + whole[1] + whole[2]).values.tolist()
    assert np.abs(oracle.estimate(found.counts) - [0.5, 0.3, 0.15, 0.05]).max() < 0.2
    # Counts of parts merge to the same bytes, in any order and grouping.
    part = tmp_path / "part.json"
    part.write_bytes(count_files(paths[1:]).to_bytes())
    assert count_files([part, paths[0]]).to_bytes() == count_files(paths[::-1]).to_bytes()
    assert read_counts(part).to_bytes() == part.read_bytes()


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    oracle = BinaryHadamard(k=4, epsilon=1.0)
    first = written(tmp_path / "1.bin", oracle)
    for k, (mechanism, fields, said) in enumerate(
        [
            (BinaryHadamard(k=4, epsilon=1.5), {}, "another mechanism"),
            (UnaryEncoding(k=4, epsilon=1.0), {}, "another mechanism"),
            (oracle, {"collection": "d"}, "another collection"),
            (oracle, {"domain": "1" * 64}, "another domain"),
        ]
    ):
        other = written(tmp_path / f"other{k}.bin", mechanism, 2, **fields)
        with pytest.raises(DataError, match=said):
            count_files([first, other])
    with pytest.raises(DataError, match="which is counted already"):
        count_files([first, first])
    closed = tmp_path / "closed.json"
    one = json.loads(count_files([first]).to_bytes())
    closed.write_text(json.dumps({**one, "closed": True}) + "\n")
    late = written(tmp_path / "late.bin", oracle, 2)
    for files in ([closed, late], [late, closed]):
        with pytest.raises(DataError, match="takes no more messages"):
            count_files(files)
    assert count_files([closed]).closed
    with pytest.raises(ParameterError, match="files must be at least one"):
        count_files([])
    with pytest.raises(ParameterError, match="assignment must be 'random' in files"):
        head(BinaryHadamard(k=4, epsilon=1.0, assignment="blocks"))
    for name in ("", "two words", "a/b", "a\n", "x" * 65):
        with pytest.raises(ParameterError, match="collection must be a name of up to 64 letters"):
            head(oracle, collection=name)
    with (tmp_path / "x").open("wb") as file, pytest.raises(ParameterError, match="values must have shape"):
        write_messages(file, VALUES[1:], head(oracle), np.random.default_rng(1))
    with (
        (tmp_path / "x").open("wb") as file,
        pytest.raises(ParameterError, match="whole numbers from 0 to 3"),
    ):
        write_messages(file, VALUES + 1, head(oracle), np.random.default_rng(1))


def test_hostile_files_give_one_clear_error(tmp_path: Path) -> None:
    oracle = BinaryHadamard(k=4, epsilon=1.0)
    good = written(tmp_path / "good.bin", oracle).read_bytes()
    line, body = good.split(b"\n", 1)
    counts = json.loads(count_files([tmp_path / "good.bin"]).to_bytes())

    def lied(**fields: Any) -> bytes:
        return json.dumps({**json.loads(line), **fields}).encode() + b"\n" + body

    def miscounted(**fields: Any) -> bytes:
        return json.dumps({**counts, **fields}).encode() + b"\n"

    law = counts["mechanism"]
    hostile = [
        b"",
        b"\n",
        b"{}\n",
        b"\x00" * 9000,
        b"{" * 100_000 + b"\n",
        b'{"type": "messages"' + b" " * 5000 + b"}\n",
        good[:-1],
        good + b"\x11",
        line + b"\n",
        line + b"\n" + b"\xff" * len(body),
        line + b"\n" + bytes(len(body)),
        lied(n=0),
        lied(n=-1),
        lied(n=10**30),
        lied(n=True),
        lied(n=999),
        lied(version=2),
        lied(surprise=1),
        lied(batch="g" * 32),
        lied(batch="0" * 31),
        lied(collection="a\nb"),
        lied(collection=""),
        lied(domain="0"),
        lied(mechanism={**law, "epsilon": 1e9}),
        lied(mechanism={**law, "epsilon": -1}),
        lied(mechanism={**law, "k": 2**40}),
        lied(mechanism={**law, "k": 1}),
        lied(mechanism={**law, "k": 400}),
        lied(mechanism={**law, "assignment": "blocks"}),
        lied(mechanism={"type": "magic"}),
        lied(mechanism=None),
        miscounted(n=999),
        miscounted(n=2**70),
        miscounted(values=[-1, *counts["values"][1:]]),
        miscounted(values=counts["values"][1:]),
        miscounted(values=[2**70, *counts["values"][1:]]),
        miscounted(values=[1.5, *counts["values"][1:]]),
        miscounted(values=[counts["values"][2], 0, 0, *counts["values"][3:]]),
        miscounted(mechanism={**law, "assignment": "blocks"}),
        miscounted(collection="two words"),
        miscounted(batches=[]),
        miscounted(batches=[counts["batches"][0]] * 2),
        miscounted(closed=1),
        miscounted() + b"more",
        json.dumps(counts).encode(),
    ]
    path = tmp_path / "hostile"
    for bad in hostile:
        path.write_bytes(bad)
        with pytest.raises(DataError, match="holds no messages or counts of frequencies") as caught:
            read_counts(path)
        assert len(str(caught.value)) < 400, bad[:80]
    with pytest.raises(DataError, match="cannot be read"):
        read_counts(tmp_path / "none")
    path.write_bytes(good)
    assert isinstance(read_counts(path), CountsFile)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    pd.DataFrame({"item": [["a", "b", "c", "x"][k] for k in VALUES]}).to_csv(path, index=False)
    return path


def ran(line: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(line.split()) == code
    said = capsys.readouterr()
    return said.err if code else said.out


def test_a_column_goes_to_messages_counts_and_estimates(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = f"messages encode --data {table} --column item --values a,b,c --epsilon 3 --collection items"
    ledger = table.with_suffix(".ledger")
    Ledger.create(ledger, limit=PrivacyBudget(4.0), neighbours=Neighbours()).close()
    one, two, sums = tmp_path / "1.bin", tmp_path / "2.bin", tmp_path / "sums.json"
    sent = json.loads(ran(f"{base} --out {one} --json", capsys))
    assert (sent["n"], sent["k"], sent["epsilon"], sent["simulated"]) == (1000, 4, 3.0, False)
    assert "epsilon" in ran(f"{base} --out {two}", capsys, 4)  # the ledger paid once, and has no more
    assert not two.exists()
    assert "column must be one, got item, x" in ran(f"{base} --column x --out {two}", capsys, 2)
    assert "collection must be a name" in ran(f"{base}/b --out {two}", capsys, 2)
    assert "messages of" in ran(f"{base} --seed 1 --out {two}", capsys)
    assert "not there yet" in ran(f"{base} --seed 1 --out {two}", capsys, 2)
    done = json.loads(ran(f"messages count {one} {two} --out {sums} --close --json", capsys))
    assert (done["n"], done["batches"], done["closed"], done["simulated"]) == (2000, 2, True, True)
    found = json.loads(ran(f"messages estimate {sums} --values a,b,c --confidence 0.9999999 --json", capsys))
    assert list(found["estimates"]) == ["a", "b", "c", "other"]
    for name, true in zip("abc", (0.5, 0.3, 0.15), strict=True):
        low, high = found["intervals"][name]
        assert low <= true <= high
    assert found["local_epsilon"] == 3.0
    said = ran(f"messages estimate {sums}", capsys)
    assert "2000 messages of 2 batches" in said
    assert "protects nobody" in said  # the second file came from a seed
    assert "protects nobody" not in ran(f"messages estimate {one}", capsys)
    for name in MECHANISMS:
        ran(f"{base} --seed 2 --mechanism {name} --out {tmp_path / name}", capsys)
        assert "1000 messages" in ran(f"messages estimate {tmp_path / name} --values a,b,c", capsys)
    assert "values must be those of the messages" in ran(
        f"messages estimate {sums} --values a,c,b", capsys, 2
    )
    assert "counted already" in ran(f"messages estimate {sums} {one}", capsys, 3)
    assert "counted already" in ran(f"messages count {one} {one} --out {tmp_path / 'x'}", capsys, 3)
    assert not (tmp_path / "x").exists()
    assert "holds no messages" in ran(f"messages estimate {table}", capsys, 3)
    assert "simulation" in ran(f"{base} --out {tmp_path / 'y'} --seed 1 --ledger {ledger}", capsys, 2)
