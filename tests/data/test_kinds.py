"""Files of another kind than they should be: one line that names the file and says what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tacit.cli.app import main
from tacit.data import ColumnsSpec, read_table
from tacit.errors import DataError
from tacit.ledger import beside

TEXT = "site,age,y\nnorth,31,0\nsouth,58,1\n"
TABLES = {
    "little.csv": (TEXT.encode("utf-16-le"), "UTF-16", "iconv -f UTF-16LE -t UTF-8"),
    "big.csv": (TEXT.encode("utf-16-be"), "UTF-16", "iconv -f UTF-16BE -t UTF-8"),
    "wide.csv": (TEXT.encode("utf-32"), "UTF-32", "iconv -f UTF-32 -t UTF-8"),
    "it is latin.csv": (TEXT.replace("age", "\xe2ge").encode("latin-1"), "not UTF-8", "is latin.csv' > NEW"),
    "nul.csv": (TEXT.replace("site", "si\0te").encode(), "NUL bytes", "export the table again"),
    "book.csv": (b"PK\x03\x04\x14\0", "spreadsheet", "export it as a CSV"),
    "old.csv": (b"\xd0\xcf\x11\xe0\xa1\xb1", "spreadsheet", "export it as a CSV"),
    "packed.csv": (b"\x1f\x8b\x08\0", "gzip", "rename it to .csv.gz"),
    "no.csv.gz": (TEXT.encode(), "no whole gzip file", "pack it again"),
    "part.csv.gz": (gzip.compress(TEXT.encode())[:-9], "no whole gzip file", "copy it again"),
    "columns.csv": (b"PAR1\x15", "Parquet", "rename it to .parquet"),
    "base.csv": (b"SQLite format 3\0", "data base", "export it as a CSV"),
    "book.xlsx": (b"PK\x03\x04", "spreadsheet", "export it as a CSV"),
    "latin.csv.gz": (gzip.compress("\xe2ge".encode("latin-1")), "not UTF-8, but Latin-1", "WINDOWS-1252"),
    "table.gz": (b"", "packed", "unpack it"),
    "table.txt": (b"a\tb", "without the ending .csv", "rename it to .csv"),
    "table.json": (b"{}", "'.json'", "export it as a CSV"),
    "table": (TEXT.encode(), "''", "export it as a CSV"),
    "text.parquet": (TEXT.encode(), "no Parquet file", "rename it to .csv"),
    "nothing.parquet": (b"", "empty", "copy it again"),
    "short.parquet": (b"PAR1 and then", "only a part", "copy it again"),
    "bad.parquet": (b"PAR1 and then PAR1", "cannot be read as Parquet", "or give a CSV"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_another_kind_costs_nothing_and_says_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "bad.parquet":
        pytest.importorskip("pyarrow")
    content, found, cure = TABLES[name]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_bytes(content)
    command = ["mean", name, "--columns", "age", "--lower", "0", "--upper", "99", "--epsilon", "1"]
    assert main(command) == DataError.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert all(part in said.err for part in (name, found, cure)), said.err
    assert sorted(tmp_path.iterdir()) == [path]  # no ledger, no run, nothing beside it


def test_training_on_it_leaves_no_run_and_no_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    ledgers = str(beside(path))
    made = ["--silos-from", "t.csv", "--silo-column", "site", "--epsilon", "1", "--delta", "1e-3"]
    assert main(["ledger", "create", ledgers, *made]) == 0
    before = {file: file.read_bytes() for file in Path(ledgers).iterdir()}
    path.write_bytes(TEXT.encode("utf-16-le"))
    capsys.readouterr()
    assert main(["train", "--data", "t.csv", "--label", "y", "--silo-column", "site"]) == 3
    assert "UTF-16" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in Path(ledgers).iterdir()} == before
    assert not Path("runs").exists()


def test_what_a_header_may_hold(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for header, names in {
        '"a;b"': ["a;b"],
        "a;b,c": ["a;b", "c"],
        '"a;b;c",d': ["a;b;c", "d"],
        '"x\ny;z",b': ["x\ny;z", "b"],
        "\xe9\xe8": ["\xe9\xe8"],
        "\ufeffa": ["a"],
        "a" * 2**20 + "\xe9;,b": ["a" * 2**20 + "\xe9;", "b"],
    }.items():
        path.write_text(f"{header}\n{','.join('1' * len(names))}\n", encoding="utf-8")
        assert read_table(path).columns.tolist() == names


def test_what_a_cell_holds_is_no_reason_to_refuse_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for cell in (b"\0", b"\xe9", b"a;b", b"PK\x03\x04", b"\xff\xfe"):
        path.write_bytes(b"a,b\n1,2\n" + cell + b",2\n")
        assert len(read_table(path)) == 2


def test_a_folder_or_nothing_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(DataError, match=r"f\.csv is a folder; name a table in it, which ends in"):
        read_table(tmp_path / "f.csv")
    with pytest.raises(DataError, match=r"g\.csv is not there"):
        read_table(tmp_path / "g.csv")


@pytest.mark.parametrize(
    ("content", "cure"),
    [
        ('data = "Malm\xf6"\n'.encode("latin-1"), "line 1: the text is not UTF-8; save it as UTF-8"),
        ('data = "x"\n'.encode("utf-16"), "line 1: the text is UTF-16; save it as UTF-8"),
        (b"site,age\n", "is no"),
        (b"d\0ata = 1", "is no"),
    ],
)
def test_settings_in_another_encoding_are_refused_with_a_cure(
    content: bytes, cure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(content)
    assert main(["train", str(path)]) == DataError.exit_code
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert str(path) in error
    assert cure in error
    with pytest.raises(DataError, match=cure):
        ColumnsSpec.read(path)


def test_a_mark_in_front_of_settings_is_none_of_them(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(b'\xef\xbb\xbf[columns.a]\nkind = "ignore"\n')
    assert set(ColumnsSpec.read(path).columns) == {"a"}


def test_other_things_than_statements_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "verify", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"tacit: a statement is a file, got the folder {tmp_path}: give the statement.json of a run folder.\n"
    )
    path = tmp_path / "statement.json"
    path.write_text('{"version": 1, "results": []}')
    assert main(["account", "verify", str(tmp_path)]) == 2
    assert f"give `tacit account verify {path}`" in capsys.readouterr().err
    assert main(["account", "verify", str(path)]) == 1
    assert "it is JSON, but no statement" in capsys.readouterr().err
