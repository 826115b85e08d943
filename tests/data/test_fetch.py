"""Downloads from a server on this machine: right bytes arrive whole, all else is refused and removed."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tacit.data import DATASETS, DataFile, DatasetInfo, fetch, load, recipes
from tacit.errors import DataError, ParameterError, UnknownNameError

CONTENT = b"a,b\n" + b"1,2\n" * 50_000


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inner.csv", content)
    return buffer.getvalue()


class Handler(BaseHTTPRequestHandler):
    """Serves a few fixed paths."""

    pages: ClassVar[dict[str, bytes]] = {
        "/tiny/table.csv": CONTENT,
        "/wrong/tiny/table.csv": CONTENT[:-1] + b"!",
        "/table.zip": zipped(CONTENT),
        "/no.zip": b"no archive",
        "/short/tiny/table.csv": CONTENT[:1000],
    }

    def do_GET(self) -> None:
        body = self.pages.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) if self.path.startswith("/short") else len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join(timeout=10)


def register(monkeypatch: pytest.MonkeyPatch, file: DataFile) -> None:
    """Put a data set of one file beside the real ones."""
    info = DatasetInfo(
        name="tiny",
        title="",
        source="",
        licence="",
        page="https://example.org/tiny",
        task="classification",
        target="",
        rows=1,
        n_features=1,
        folder="tiny",
        files=(file,),
    )
    monkeypatch.setitem(DATASETS, "tiny", info)


SUM = hashlib.sha256(CONTENT).hexdigest()
PLAIN = DataFile(name="table.csv", sha256=("0" * 64, SUM))


def test_a_right_file_arrives_and_is_not_fetched_twice(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, PLAIN)
    seen: list[tuple[int, int | None]] = []
    (path,) = fetch(
        "tiny", home=tmp_path, base_url=server, progress=lambda done, total: seen.append((done, total))
    )
    assert path == tmp_path / "tiny" / "table.csv"
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert len(seen) > 1
    assert [p.name for p in path.parent.iterdir()] == ["table.csv"]
    fetch("tiny", home=tmp_path, base_url=server, progress=lambda *_: seen.append((-1, -1)))
    assert (-1, -1) not in seen


def test_a_damaged_file_is_replaced(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, PLAIN)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "table.csv").write_bytes(b"damaged")
    assert fetch("tiny", home=tmp_path, base_url=f"{server}/")[0].read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("/wrong", "gave a file with SHA-256"),
        ("/absent", "404"),
        ("/short", r"cut short after 1000 of 200004 bytes"),
    ],
)
def test_other_answers_are_refused_and_leave_nothing(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, message: str
) -> None:
    register(monkeypatch, PLAIN)
    with pytest.raises(DataError, match=message) as caught:
        fetch("tiny", home=tmp_path, base_url=server + place)
    assert "tiny" in str(caught.value)
    assert "get it from https://example.org/tiny and place table.csv in $TACIT_DATA_HOME/tiny/" in str(
        caught.value
    )
    assert list((tmp_path / "tiny").iterdir()) == []


def test_archives_and_recipes_are_applied_before_the_check(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = hashlib.sha256(b"x" + CONTENT).hexdigest()
    inner = DataFile(
        name="t.csv",
        sha256=(prepared,),
        url=f"{server}/table.zip",
        member="inner.csv",
        recipe="tiny",
        header="x",
    )
    register(monkeypatch, inner)
    monkeypatch.setitem(recipes.RECIPES, "tiny", lambda raw, header: header.encode() + raw)
    assert fetch("tiny", home=tmp_path)[0].read_bytes() == b"x" + CONTENT
    for url, member in ((f"{server}/no.zip", "inner.csv"), (f"{server}/table.zip", "absent.csv")):
        register(monkeypatch, DataFile(name="u.csv", sha256=(SUM,), url=url, member=member))
        with pytest.raises(DataError, match="does not have the expected form"):
            fetch("tiny", home=tmp_path)
    assert not (tmp_path / "tiny" / "u.csv").exists()


def test_no_server_and_no_folder_are_clear_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, PLAIN)
    # Port 9 (discard) of this machine: nobody listens.
    with pytest.raises(DataError, match="cannot be fetched for the data set tiny"):
        fetch("tiny", home=tmp_path, base_url="http://127.0.0.1:9")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be fetched for the data set tiny"):
        fetch("tiny", home=tmp_path / "file", base_url="http://127.0.0.1:9")


def test_files_without_an_address_are_placed_by_hand(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"place parkinsons_updrs\.data in \$TACIT_DATA_HOME/parkinsons/"):
        fetch("parkinsons", home=tmp_path)
    with pytest.raises(DataError, match=r"dataset/350"):
        load("credit-default", home=tmp_path)


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'adult'"):
        fetch("adlut", home=tmp_path)
    with pytest.raises(ParameterError, match="base_url must start with"):
        fetch("adult", home=tmp_path, base_url="file:///etc")
    assert fetch("digits", home=tmp_path) == []


def test_recipes_give_the_registered_form() -> None:
    headers = {file.recipe: file.header for info in DATASETS.values() for file in info.files}
    assert set(headers) == {None, *recipes.RECIPES}
    adult = recipes.adult(b"|1x3 Cross validator\n25, Private, <=50K.\n\n", headers["adult"]).decode()
    assert adult.splitlines()[1:] == ["25,Private,<=50K."]
    assert len(adult.splitlines()[0].split(",")) == 15
    german = recipes.german(b"A11 6 1 \nA12 48 2\n", headers["german"]).decode().splitlines()
    assert (len(german[0].split(" ")), german[1:]) == (21, ["A11 6 1", "A12 48 0"])
    communities = recipes.communities(b"8,?,0.2\n", headers["communities"]).decode().splitlines()
    assert (len(communities[0].split(",")), communities[1]) == (128, "8,?,0.2")
    header = "name,sex,age,age_cat,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,dob,"
    header += (
        "days_b_screening_arrest,c_charge_degree,is_recid,decile_score,score_text,two_year_recid,priors_count"
    )
    rows = "A,Male,30,x,y,0,0,0,2,d,-1,F,0,1,Low,0,2\nB,Male,30,x,y,0,0,0,2,d,,F,0,1,Low,0,2\n"
    compas = recipes.compas(f"{header}\n{rows}".encode(), headers["compas"]).decode().splitlines()
    assert compas[1:] == ["Male,30,x,y,0,0,0,2,-1.0,F,0,1,Low,0", "Male,30,x,y,0,0,0,2,,F,0,1,Low,0"]
