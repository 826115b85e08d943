"""Cells of another encoding: the owner is told where they are, what would fit and what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tacit.data import Column, ColumnsSpec, Ignore, find_wrong_text, read_table

TEXT = "name,city,note,age\nJosé,Köln,ok,1\nAnna,Bonn,ok,2\nRené,Ulm,größer,3\n"


def said(path: Path, content: bytes, **described: Column) -> str:
    path.write_bytes(content)
    found = list(find_wrong_text(path, read_table(path, numeric=["age"]), ColumnsSpec(columns=described)))
    assert all((one.column, one.must) == (str(path), False) for one in found)
    return "\n".join(one.what for one in found)


def test_columns_are_named_with_the_encoding_that_fits_and_the_command(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    found = said(path, TEXT.encode("cp1252"))
    assert found.startswith("cells of 'name' (2), 'city' (1), 'note' (1) hold bytes that are not UTF-8")
    assert (
        f"WINDOWS-1252 would fit: save it as UTF-8, for instance with `iconv -f WINDOWS-1252 -t UTF-8 {path}"
        in found
    )
    assert "José" not in found
    assert said(path, TEXT.encode("cp1252"), note=Ignore()).startswith("cells of 'name' (2), 'city' (1) hold")
    assert "CP850 would fit" in said(path, (TEXT + "Jürgen,Zwickau,ok,4\n").encode("cp850"))


def test_a_packed_file_is_unpacked_first(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    found = said(path, gzip.compress(TEXT.encode("latin-1")))
    assert f"`gunzip -c {path} | iconv -f WINDOWS-1252 -t UTF-8 | gzip > NEW`" in found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_in_order_is_no_problem(encoding: str, tmp_path: Path) -> None:
    assert said(tmp_path / "a.csv", TEXT.encode(encoding)) == ""


def test_what_no_encoding_brings_back_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert "lost when the file was written" in said(path, TEXT.replace("é", "\ufffd").encode())
    both = TEXT.encode() + "Zoë,Jena,ok,4\n".encode("latin-1")
    assert "2 other lines are UTF-8, so this file was put together" in said(path, both)


def test_so_it_is_in_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    cells = arrow.array([b"Jos\xe9", b"Anna"]).view(arrow.string())
    parquet.write_table(arrow.table({"name": cells, "age": [1, 2]}), path := tmp_path / "a.parquet")
    (one,) = find_wrong_text(path, read_table(path), ColumnsSpec())
    assert one.what.startswith("cells of 'name' (1) hold bytes that are not UTF-8")
    assert "write it again" in one.what
