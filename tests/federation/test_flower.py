"""The channel over Flower, its relay and its bundle: on a grid of this process, without Flower's programs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from types import SimpleNamespace
from typing import Any, cast

import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.object_ref import validate
from flwr.supercore.task_identity import TaskIdentity

from tacit.errors import DataError, ParameterError
from tacit.federation.flower import FlowerChannel, by_key, by_name, client_app, server_app, write_bundle
from tacit.federation.flower.apps import RELAY_PATH, relay, serve
from tacit.federation.flower.environment import QUIET
from tacit.federation.flower.messages import NO_SILO, bytes_of, content_of

SERVER = 1


@pytest.fixture(autouse=True)
def _a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are made in a run only."""
    for name, number in (("_task_id", 1), ("_run_id", 7), ("_node_id", SERVER)):
        monkeypatch.setattr(TaskIdentity, name, number)


@dataclass
class Node:
    """A node of the fake grid.

    Attributes:
        replies: What becomes of the first message, the second, ...: seconds until it comes back, and bytes,
            the number of an error, or None for nothing at all. The last is for all later messages too.
        offline: From when to when the node is away, in seconds.
    """

    name: str
    replies: list[tuple[float, bytes | int | None]]
    offline: tuple[float, float] = (0.0, 0.0)
    key: bytes = b""
    asked: list[bytes] = field(default_factory=list)


class FakeGrid:
    """What a ServerApp sees of nodes, with a clock of its own."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = {100 + k: node for k, node in enumerate(nodes)}
        self.time = 0.0
        self.on_the_way: dict[str, tuple[float, Message]] = {}
        self.sent: list[Message] = []
        self.takes: Callable[[Message], bool] = lambda _: True
        self.twice = False

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.time += seconds

    def get_nodes(self) -> list[Any]:
        return [
            SimpleNamespace(node_id=k, name=node.name, public_key=node.key)
            for k, node in self.nodes.items()
            if not node.offline[0] <= self.time < node.offline[1]
        ]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for message in messages:
            if not self.takes(message):
                continue
            number = f"m{len(self.sent)}"
            message.metadata.__dict__["_message_id"] = number
            self.sent.append(message)
            ids.append(number)
            node = self.nodes[message.metadata.dst_node_id]
            data = bytes_of(message.content)
            assert data is not None
            node.asked.append(data)
            after, what = node.replies[min(len(node.asked), len(node.replies)) - 1]
            if what is None:
                continue
            content = Error(what, "a record: 4711") if isinstance(what, int) else content_of(what)
            self.on_the_way[number] = (self.time + after, Message(content, reply_to=message))
        return ids

    def pull_messages(self, ids: Iterable[str]) -> list[Message]:
        here = [one for one in ids if one in self.on_the_way and self.on_the_way[one][0] <= self.time]
        found = [self.on_the_way.pop(one)[1] for one in here]
        return found + found if self.twice else found

    def channel(self, **options: Any) -> FlowerChannel:
        grid = cast(Grid, self)
        return FlowerChannel(grid, clock=lambda: self.time, sleep=self.sleep, **options)


def exchanged(grid: FakeGrid, deadline: float = 60.0, **options: Any) -> dict[str, bytes]:
    """Replies to one request each."""
    requests = {node.name: b"to " + node.name.encode() for node in grid.nodes.values()}
    found = list(grid.channel(**options).exchange(requests, deadline=deadline))
    assert len(dict(found)) == len(found)
    return dict(found)


def test_every_silo_is_asked_once_and_replies_come_in_their_order() -> None:
    grid = FakeGrid(Node("a", [(2.0, b"A")]), Node("b", [(1.0, b"B")]), Node("c", [(9.0, b"C")]))
    assert grid.channel().present() == {"a", "b", "c"}
    requests = {"a": b"1", "b": b"2"}
    assert list(grid.channel().exchange(requests, deadline=60)) == [("b", b"B"), ("a", b"A")]
    assert [node.asked for node in grid.nodes.values()] == [[b"1"], [b"2"], []]
    assert grid.time < 2.5
    assert {message.metadata.message_type for message in grid.sent} == {"query.tacit"}


@pytest.mark.parametrize("code", [2, 3, 5, 8])
def test_a_silo_that_failed_is_asked_again(code: int) -> None:
    grid = FakeGrid(Node("a", [(0.1, code), (0.1, b"A")]), Node("b", [(0.1, b"B")]))
    assert exchanged(grid) == {"a": b"A", "b": b"B"}
    assert [len(node.asked) for node in grid.nodes.values()] == [2, 1]


def test_a_node_that_went_away_is_asked_again_when_it_is_back() -> None:
    grid = FakeGrid(Node("a", [(0.5, 5), (0.1, b"A")], offline=(0.2, 30.0)))
    assert exchanged(grid) == {"a": b"A"}
    assert 30.0 <= grid.time < 32.0
    assert len(grid.sent) == 2


def test_a_node_that_is_not_there_yet_is_waited_for() -> None:
    grid = FakeGrid(Node("a", [(0.1, b"A")], offline=(0.0, 5.0)))
    assert grid.channel().present() == set()
    assert exchanged(grid) == {"a": b"A"}
    assert len(grid.sent) == 1


def test_a_relay_without_its_silo_is_asked_again() -> None:
    grid = FakeGrid(Node("a", [(0.1, NO_SILO), (0.1, NO_SILO), (0.1, b"A")]))
    assert exchanged(grid) == {"a": b"A"}
    assert 2.0 < grid.time < 4.0  # a service that restarts is not flooded


def test_the_exchange_ends_at_its_deadline() -> None:
    grid = FakeGrid(Node("a", [(0.1, b"A")]), Node("b", [(99.0, b"B")]), Node("c", [(0.1, None)]))
    assert exchanged(grid, deadline=20.0) == {"a": b"A"}
    assert 20.0 <= grid.time < 20.2


def test_a_silent_silo_is_asked_once_more_when_patience_ends() -> None:
    grid = FakeGrid(Node("a", [(0.1, None), (0.1, b"A")]))
    assert exchanged(grid, patience=10.0) == {"a": b"A"}
    assert 10.0 <= grid.time < 11.0


def test_a_slow_reply_counts_when_it_comes_after_the_second_question() -> None:
    grid = FakeGrid(Node("a", [(12.0, b"A"), (40.0, b"A")]))
    assert exchanged(grid, patience=10.0) == {"a": b"A"}
    assert 12.0 <= grid.time < 13.0


def test_late_replies_are_dropped() -> None:
    """What belongs to an exchange that is over is not taken for a reply of the next one."""
    grid = FakeGrid(Node("a", [(9.0, b"old"), (1.0, b"new")]))
    channel = grid.channel()
    assert list(channel.exchange({"a": b"1"}, deadline=5.0)) == []
    grid.time = 20.0
    assert list(channel.exchange({"a": b"2"}, deadline=5.0)) == [("a", b"new")]


def test_replies_that_come_twice_count_once() -> None:
    grid = FakeGrid(Node("a", [(0.1, b"A")]), Node("b", [(0.3, b"B")]))
    grid.twice = True
    assert exchanged(grid) == {"a": b"A", "b": b"B"}


def test_a_reply_of_another_node_is_dropped() -> None:
    grid = FakeGrid(Node("a", [(0.1, b"A")]))
    channel = grid.channel()
    found = channel.exchange({"a": b"1"}, deadline=3.0)
    push = grid.push_messages

    def from_elsewhere(messages: Iterable[Message]) -> list[str]:
        ids = push(messages)
        for _, reply in grid.on_the_way.values():
            reply.metadata.__dict__["_src_node_id"] = 999
        return ids

    grid.push_messages = from_elsewhere  # type: ignore[method-assign]
    assert list(found) == []


def test_a_message_that_is_not_taken_is_sent_again() -> None:
    grid = FakeGrid(Node("a", [(0.1, b"A")]), Node("b", [(0.1, b"B")]))
    grid.takes = lambda message: message.metadata.dst_node_id == 100 or grid.time > 3
    assert exchanged(grid) == {"a": b"A", "b": b"B"}
    assert grid.nodes[101].asked == [b"to b"]


def test_attempts_are_bounded_where_that_is_wanted() -> None:
    grid = FakeGrid(Node("a", [(0.1, 8)]), Node("b", [(0.1, b"B")]))
    assert exchanged(grid, attempts=3) == {"b": b"B"}
    assert len(grid.nodes[100].asked) == 3
    assert grid.time < 5.0


def test_a_name_of_two_nodes_is_nobodys() -> None:
    grid = FakeGrid(Node("a", [(0.1, b"A")]), Node("a", [(0.1, b"mine")]), Node("b", [(0.1, b"B")]))
    assert by_name(cast(Grid, grid)) == {"b": 102}
    assert list(grid.channel().exchange({"a": b"1", "b": b"2"}, deadline=2.0)) == [("b", b"B")]


def test_silos_are_found_by_the_keys_of_their_nodes() -> None:
    grid = FakeGrid(Node("x", [(0.1, b"A")], key=b"KEY A\n"), Node("a", [(0.1, b"no")], key=b"KEY B"))
    directory = by_key({"a": b"KEY A"})
    assert dict(directory(cast(Grid, grid))) == {"a": 100}
    assert list(grid.channel(directory=directory).exchange({"a": b"1"}, deadline=2.0)) == [("a", b"A")]


def test_an_errors_text_is_not_written_down(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    exchanged(FakeGrid(Node("a", [(0.1, 2), (0.1, b"A")])))
    assert "error 2" in caplog.text
    assert "4711" not in caplog.text


def test_messages_carry_bytes_and_nothing_else() -> None:
    for data in (b"", b"\x00\xff" * 1000):
        assert bytes_of(content_of(data)) == data
    assert bytes_of(RecordDict({})) is None
    assert bytes_of(RecordDict({"tacit": ConfigRecord({"b": "text"})})) is None
    assert bytes_of(RecordDict({"tacit": ConfigRecord({"c": b""})})) is None


class _Service(BaseHTTPRequestHandler):
    """A silo service that replies with what it got, and fails where it is told to."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200 if self.path == RELAY_PATH and body != b"fail" else 500)
        reply = b"reply to " + body
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Path]:
    path = Path(os.path.relpath(tmp_path / "silo.sock"))  # the path of a socket is short
    with ThreadingUnixStreamServer(str(path), _Service) as server:
        server.get_request = lambda: (server.socket.accept()[0], ("silo", 0))  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def relayed(request: bytes | None, **config: Any) -> bytes | None:
    """What comes back from the relay of a node."""
    content = RecordDict({}) if request is None else content_of(request)
    message = Message(content, dst_node_id=5, message_type="query.tacit")
    message.metadata.__dict__["_message_id"] = "1"
    context = Context(run_id=7, node_id=5, node_config=config, state=RecordDict(), run_config={})
    reply = client_app(message, context)
    assert reply.metadata.dst_node_id == SERVER
    assert len(context.state) == 0
    return bytes_of(reply.content)


def test_the_relay_hands_on_bytes(service: Path) -> None:
    assert relayed(b"\x00 a request", socket=str(service)) == b"reply to \x00 a request"


def test_the_relay_says_the_same_whatever_goes_wrong(service: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no socket", encoding="utf-8")
    with socket.socket(socket.AF_UNIX) as listening:  # nobody accepts
        listening.bind(os.path.relpath(tmp_path / "dead.sock"))
    for config in (
        {},
        {"socket": 3},
        {"socket": str(tmp_path / "none.sock")},
        {"socket": str(tmp_path / "file")},
        {"socket": os.path.relpath(tmp_path / "dead.sock")},
    ):
        assert relayed(b"request", **config) == NO_SILO
    assert relayed(b"fail", socket=str(service)) == NO_SILO
    assert relayed(None, socket=str(service)) == NO_SILO


def test_the_relay_answers_one_kind_of_message() -> None:
    assert relay.__doc__
    message = Message(content_of(b"x"), dst_node_id=5, message_type="train")
    context = Context(run_id=7, node_id=5, node_config={}, state=RecordDict(), run_config={})
    with pytest.raises(ValueError, match="train"):
        client_app(message, context)


_JOBS: list[tuple[set[str], Path]] = []


def job(channel: FlowerChannel, config: Path) -> None:
    """A server's job."""
    _JOBS.append((channel.present(), config))


def served(**config: Any) -> None:
    """Run the ServerApp."""
    grid = cast(Grid, FakeGrid(Node("a", [(0.1, b"A")])))
    serve(grid, Context(run_id=7, node_id=1, node_config={}, state=RecordDict(), run_config=config))


def test_the_server_runs_the_job_that_the_run_names() -> None:
    _JOBS.clear()
    served(job=f"{__name__}:job", config="/etc/tacit/server.toml")
    assert [({"a"}, Path("/etc/tacit/server.toml"))] == _JOBS


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({}, "must name the server's file as config"),
        ({"config": "a.toml"}, "must name a function as job"),
        ({"config": "a.toml", "job": "tacit.errors"}, "must name a function as job"),
        ({"config": "a.toml", "job": "tacit.no_such_room:job"}, "cannot be imported"),
        ({"config": "a.toml", "job": "tacit.errors:no_such_name"}, "cannot be imported"),
        ({"config": "a.toml", "job": "tacit.errors:LONGEST_NAME"}, "must name a function as job"),
    ],
)
def test_a_job_that_is_none_is_refused(config: dict[str, str], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        served(**config)


def test_the_bundle_names_what_is_installed_and_holds_no_code(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "bundle")
    assert [path.name for path in folder.iterdir()] == ["pyproject.toml"]
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    app = project["tool"]["flwr"]["app"]
    assert project["project"]["dependencies"] == []
    for reference in app["components"].values():
        assert validate(reference, check_module=True) == (True, None)
    assert server_app is not None
    with pytest.raises(DataError, match="must be empty"):
        write_bundle(folder)


def test_without_the_extra_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['flwr'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'flwr' else real(name, *a)\n"
        "import tacit.federation\n"
        "try:\n    import tacit.federation.flower\n"
        "except tacit.errors.TacitError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert "tacit[flower]" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_nothing_is_reported_fetched_or_installed() -> None:
    assert {name: os.environ.get(name) for name in QUIET} == QUIET


def test_the_relay_starts_without_what_a_silo_needs() -> None:
    code = "import sys, tacit.federation.flower; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert not {"scipy", "ray", "pandas", "dp_accounting"} & set(done.stdout.split())
