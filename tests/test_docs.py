"""What the documents say is true: code and commands run, links hold, names and errors are listed."""

from __future__ import annotations

import ast
import contextlib
import doctest
import functools
import importlib
import inspect
import io
import os
import pkgutil
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from tools import coins, figures, included

import tacit
from tacit.cli import main
from tacit.errors import TacitError
from tacit.learning.algorithms.registry import ALGORITHMS
from tacit.means import AnyNoise, Estimator
from tacit.privacy import Relation, TrustModel, Unit

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
POINTS = 3.0  # other processors round otherwise, which moves a simulated accuracy by a record or two

FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]\n]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(?P<text>.+?)[ #]*$", re.MULTILINE)
DIRECTIVE = re.compile(r"^::: +(?P<name>[\w.]+)[ \t]*$", re.MULTILINE)
PERCENT = re.compile(r"\b\d+(?:\.\d+)?(?=(?: ± [\d.]+)? %)")
TEST = re.compile(r"\btests/[\w/]+\.py(?:::\w+)?")
SNIPPET = re.compile(r'^--8<-- "(?P<path>[^"]+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block, with the line it starts on and what stands between it and the block before."""

    kind: str
    body: str
    line: int
    before: str


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match["kind"].strip(), match["body"], line, text[end : match.start()]))
        end = match.end()
    return found


def without_code(page: Path) -> str:
    """Return a page without fenced blocks and inline code: `[n](x)` there is no link."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def same_percentages(wanted: str, got: str) -> str:
    """Return `got` with the percentages of `wanted` where all of them are near; else `got` as it is."""
    shown, found = PERCENT.findall(wanted), PERCENT.findall(got)
    near = [abs(float(a) - float(b)) <= POINTS for a, b in zip(shown, found, strict=False)]
    if len(shown) != len(found) or not all(near):
        return got
    left = iter(shown)
    return PERCENT.sub(lambda _: next(left), got)


def expect(page: Path, line: int, wanted: str, got: str) -> None:
    """Fail unless an output is the one shown.

    `...` stands for anything, line breaks, spaces and the lengths of rules across tables do not count, and
    percentages may differ by `POINTS`.
    """
    wanted, got = (re.sub("─+", "─", text) for text in (wanted, same_percentages(wanted, got)))
    checker = doctest.OutputChecker()
    if not checker.check_output(wanted, got, LOOSE):
        shown = checker.output_difference(doctest.Example(source="", want=wanted), got, LOOSE)
        pytest.fail(f"{page_id(page)}:{line} shows another output.\n{shown}", pytrace=False)


def run_session(page: Path, block: Block, names: dict[str, Any]) -> None:
    """Run a block of `>>>` lines."""
    test = doctest.DocTestParser().get_doctest(block.body, names, page_id(page), str(page), block.line)
    test.globs = names
    report = io.StringIO()
    failed = doctest.DocTestRunner(optionflags=LOOSE).run(test, out=report.write, clear_globs=False).failed
    if failed:
        pytest.fail(report.getvalue(), pytrace=False)


def run_python(page: Path, block: Block, names: dict[str, Any], wanted: str | None) -> None:
    """Run a block of statements, and compare what it prints with the `text` block right below, if any."""
    printed = io.StringIO()
    # As a reader's own file: without what this one has imported from __future__.
    code = compile("\n" * block.line + block.body, page_id(page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(printed):
        exec(code, names)  # noqa: S102 - that the pages' code runs is what is tested
    if wanted is None:
        assert printed.getvalue() == "", (
            f"{page_id(page)}:{block.line} prints, but no output is shown below it"
        )
    else:
        expect(page, block.line, wanted, printed.getvalue())


def demo() -> list[str]:
    """Return the one command of `make demo`, after the installation."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    ((command,),) = [
        re.findall(r"\t\$\(BIN\)/(.+)\n", rule)
        for rule in re.findall(r"^demo:.*\n((?:\t.*\n)+)", rules, re.M)
    ]
    return shlex.split(command)


def commands(block: Block) -> Iterator[tuple[list[str], str | None, str]]:
    """Yield the arguments of every `$ tacit ...`, the file that it is redirected to, and the output shown."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        program, *words = shlex.split(command, comments=True)
        if [program, *words] == ["make", "demo"]:
            program, *words = demo()
        assert program == "tacit", f"a console block runs tacit only, not {program!r}"
        file = words[words.index(">") + 1] if ">" in words else None
        yield words[: words.index(">")] if ">" in words else words, file, shown


def run_console(page: Path, block: Block) -> None:
    """Run the commands of a block and compare what they print; `tacit: ...` shows that one is refused."""
    for words, file, shown in commands(block):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        refused = shown.startswith("tacit: ")
        where = f"{page_id(page)}:{block.line}: tacit {shlex.join(words)}"
        if "cannot be fetched for the data set" in err.getvalue() and "TACIT_DATA_HOME" not in os.environ:
            pytest.skip(f"{where} needs data of elsewhere.")
        assert (code != 0) == refused, f"{where} ended with exit code {code}.\n{err.getvalue()}"
        if file is not None:
            Path(file).write_text(out.getvalue(), encoding="utf-8")
        elif shown.strip():
            expect(page, block.line, shown, err.getvalue() if refused else out.getvalue())


def outputs(found: list[Block]) -> list[str | None]:
    """Return for every block the `text` block that stands right below it."""
    nexts: list[Block | None] = [*found[1:], None]
    return [b.body if b is not None and b.kind == "text" and not b.before.strip() else None for b in nexts]


EXTRAS = {"docs/how-to/pytorch.md": "torch"}
"""Pages whose code needs a package that may be missing, by that package."""

RUN = [page for page in PAGES if any(b.kind in ("python", "console") for b in blocks(page))]


def write_wards(folder: Path) -> None:
    """Write the example table again as a file of each clinic, and what is publicly known of them."""
    wards = folder / "wards"
    wards.mkdir()
    head, *lines = (folder / "clinics.csv").read_text().splitlines()
    for site in sorted({line.partition(",")[0] for line in lines}):
        own = [line.partition(",")[2] for line in [head, *lines] if line.startswith((f"{site},", "site,"))]
        (wards / f"{site.lower()}.csv").write_text("\n".join([*own, ""]))
    shutil.copy(folder / "clinics.columns.toml", wards / "columns.toml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with the example tables of the pages."""
    for name in ("clinics.csv", "clinics.columns.toml"):
        shutil.copy(ROOT / "tests" / "data" / name, tmp_path)
    write_wards(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", RUN, ids=page_id)
def test_code_and_commands_do_what_the_page_shows(page: Path) -> None:
    if page_id(page) in EXTRAS:
        pytest.importorskip(EXTRAS[page_id(page)])
    found, names = blocks(page), {"__name__": "__page__"}
    for block, wanted in zip(found, outputs(found), strict=True):
        if block.kind == "console":
            run_console(page, block)
        elif block.kind == "python" and block.body.lstrip().startswith(">>>"):
            run_session(page, block, names)
        elif block.kind == "python":
            run_python(page, block, names, wanted)


def test_the_pages_that_promise_code_have_some() -> None:
    assert {page_id(page) for page in RUN} >= {
        "README.md",
        "docs/tutorials/first-run.md",
        "docs/how-to/python-api.md",
        "docs/how-to/read-a-statement.md",
        "docs/how-to/train-on-your-table.md",
    }


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_says_what_it_is(page: Path) -> None:
    # A misspelt or missing kind would take a block out of the test above without a word.
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^[ \t]*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(blocks(page))
    assert {block.kind for block in blocks(page)} <= {"python", "console", "text", "toml", "json", "math"}


def test_a_wrong_output_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_docs.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n", encoding="utf-8")
    block, *_ = found = blocks(page)
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:1 shows another output"):
        run_python(page, block, {}, outputs(found)[0])
    for shown in ("accuracy 88.1 %", "accuracy 81.9 %", "accuracy"):
        with pytest.raises(pytest.fail.Exception, match="shows another output"):
            expect(page, 1, shown, "accuracy 85.0 %")
    with pytest.raises(pytest.fail.Exception, match="shows another output"):
        expect(page, 1, "accuracy 88.1 ± 1.5 %", "accuracy 85.0 ± 1.5 %")
    expect(page, 1, "accuracy 87.9 ± 1.5 %", "accuracy 85.0 ± 1.6 %")
    expect(page, 1, "accuracy 87.9 %", "accuracy\n85.0 %")
    with pytest.raises(pytest.fail.Exception, match="Expected"):
        run_session(page, Block("python", ">>> 1 + 1\n3\n", 1, ""), {})
    with pytest.raises(AssertionError, match="exit code 2"):
        run_console(page, Block("console", "$ tacit account epsilon --noise nan --delta 0\n", 1, ""))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site both make them."""
    plain = (
        re.sub(r"[`*]", "", match["text"]) for match in HEADING.finditer(FENCE.sub("", page.read_text()))
    )
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in plain}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for match in LINK.finditer(without_code(page)):
        target = match["target"]
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{page_id(page)} links to {target}, which is not there"
        assert file.is_relative_to(ROOT), f"{page_id(page)} links to {target}, outside the project"
        if anchor:
            assert anchor in anchors(file), f"{page_id(page)} links to {target}, but there is no such heading"


@functools.cache
def names_of_tests(path: str) -> frozenset[str]:
    """Return the tests of a file, which is read and not run."""
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    return frozenset(
        node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_tests_that_are_named_exist(page: Path) -> None:
    for named in TEST.findall(page.read_text(encoding="utf-8")):
        path, _, test = named.partition("::")
        assert (ROOT / path).is_file(), f"{page_id(page)} names {path}, which is not there"
        assert not test or test in names_of_tests(path), f"{page_id(page)} names {named}, which is no test"


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "benchmarks").glob("*.py"))], ids=page_id)
def test_pages_cite_works_that_readers_can_get(page: Path) -> None:
    found = re.findall(r"\b[Ss]pecs?[ .]*\d+.*", page.read_text(encoding="utf-8"))
    assert not found, f"{page_id(page)} cites a specification that is not in the repository: {found[0]}"


def errata() -> dict[str, list[dict[str, str]]]:
    """Return the rows of docs/errata.md by section, cells by column."""
    found: dict[str, list[dict[str, str]]] = {}
    section, columns = "", None
    for line in (DOCS / "errata.md").read_text(encoding="utf-8").splitlines():
        if heading := HEADING.match(line):
            section, columns = heading["text"], None
        elif line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if columns is None:
                columns = cells
            elif not set(line) <= set("|- "):
                found.setdefault(section, []).append(dict(zip(columns, cells, strict=True)))
    return found


def test_every_erratum_has_a_reason_and_a_test_and_those_of_privacy_come_first() -> None:
    effects = ["privacy", "error", "text"]
    assert len(errata()) == 7
    for section, rows in errata().items():
        assert len(rows) >= 3, section
        for row in rows:
            assert all(row.values()), (section, row)
            assert any("::" in test for test in TEST.findall(row["test"])), (section, row["where"])
            assert TEST.sub("", row["test"]).strip("`, ") == "", (section, row["where"])
        order = [effects.index(row["effect"]) for row in rows]
        assert order == sorted(order), f"errata of {section} are not in the order {', '.join(effects)}"


def test_snippets_are_there() -> None:
    included = [match["path"] for page in PAGES for match in SNIPPET.finditer(page.read_text())]
    assert set(included) == {"CHANGELOG.md", "CONTRIBUTING.md"}
    assert all((ROOT / path).is_file() for path in included)


def test_a_file_of_the_repository_is_a_page_whose_links_hold() -> None:
    for page in (DOCS / "changelog.md", DOCS / "contributing.md"):
        text = included.on_page_markdown(page.read_text(encoding="utf-8"))
        assert len(text) > 1000
        targets = [match["target"].partition("#")[0] for match in LINK.finditer(text)]
        here = [target for target in targets if "://" not in target]
        assert here
        assert not [target for target in here if not (DOCS / target).is_file()]


def test_the_navigation_lists_every_page_once() -> None:
    # Read without a YAML parser, which is no requirement of the tests.
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = text[text.index("\nnav:") : text.index("\nplugins:")]
    listed = re.findall(r"([\w/.-]+\.(?:md|ipynb))$", nav, re.MULTILINE)
    there = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in there)


def test_the_picture_of_the_coin_is_that_of_the_bound() -> None:
    assert coins.PICTURE.read_text(encoding="utf-8") == coins.drawn(), "run `python tools/coins.py`"
    page = (DOCS / "how-to" / "read-a-statement.md").read_text(encoding="utf-8")
    caption = page[page.index("![Guesses") : page.index("](../images/coins.svg)")]
    assert f"{coins.share(0.1):g} % of the time at epsilon 0.1" in caption
    assert all(f"{coins.share(level):g} % at {level:g}" in caption for level in (1.0, 2.0, 4.0))


def test_formulas_are_of_one_line_each() -> None:
    # What sets them for the site knows no alignment, and prints its marks.
    found = [block for page in PAGES for block in blocks(page) if block.kind == "math"]
    assert len(found) > 25
    assert not [block.body for block in found if "&" in block.body or "\\begin" in block.body]


def test_the_glossary_has_the_words_that_statements_are_made_of() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = [
        *Relation,
        *Unit,
        *TrustModel,
        "epsilon",
        "delta",
        "silo",
        "ledger",
        "statement",
        "clip",
        "bounds",
    ]
    assert not [word for word in words if not re.search(rf"\*{word}\b", text)]


def test_the_site_fetches_nothing_from_elsewhere() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for local in ("assets/iframe-worker.js", "assets/site.css"):
        assert local in text
        assert (DOCS / local).is_file()


@functools.cache
def modules() -> list[str]:
    """Return the names of all public modules."""
    found = [m.name for m in pkgutil.walk_packages(tacit.__path__, "tacit.")]
    return [name for name in found if not any(part.startswith("_") for part in name.split("."))]


ROOMS = sorted({".".join(name.split(".")[:2]) for name in modules()})


def listed_thing(name: str) -> object:
    """Return what a directive names; to the site, a module hides a function of its name."""
    if name in modules():
        return importlib.import_module(name)
    module, _, attribute = name.rpartition(".")
    home = importlib.import_module(module)
    assert attribute in home.__all__, f"{name} is in the reference, but not public"
    return getattr(home, attribute)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room: str) -> None:
    page = DOCS / "reference" / f"{room.removeprefix('tacit.')}.md"
    assert page.is_file(), f"{room} needs a page {page_id(page)}"
    names = DIRECTIVE.findall(page.read_text(encoding="utf-8"))
    assert len(set(names)) == len(names), "a name is listed twice"
    listed = {name.rpartition(".")[2]: listed_thing(name) for name in names}
    home = importlib.import_module(room)
    missing = [name for name in home.__all__ if listed.get(name, page) is not getattr(home, name)]
    assert not missing, f"{page_id(page)} does not list {', '.join(missing)}"


def test_the_reference_lists_what_exists() -> None:
    for page in sorted((DOCS / "reference").glob("*.md")):
        for name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            assert not inspect.ismodule(listed_thing(name)), f"{page_id(page)} lists the module {name}"


def error_classes() -> dict[str, type[BaseException]]:
    """Return every public error and warning that tacit defines."""
    homes = [importlib.import_module(name) for name in modules()]
    things = {thing for home in homes for thing in vars(home).values() if isinstance(thing, type)}
    return {
        thing.__name__: thing
        for thing in sorted(things, key=lambda thing: thing.__qualname__)
        if issubclass(thing, BaseException)
        and thing.__module__.startswith("tacit.")
        and thing.__module__ != "tacit.cli.interrupts"  # how a command ends on Ctrl-C, which is no error
        and not thing.__name__.startswith("_")
    }


def error_entries() -> dict[str, str]:
    """Return the entries of docs/errors.md by class."""
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))


def test_every_error_class_has_an_entry() -> None:
    assert set(error_entries()) == set(error_classes())


@pytest.mark.parametrize("name", error_classes())
def test_an_entry_gives_exit_code_cause_and_cure(name: str) -> None:
    kind, entry = error_classes()[name], error_entries()[name]
    if issubclass(kind, TacitError):
        assert re.findall(r"^Exit code (\d+)\.", entry, re.MULTILINE) == [str(kind.exit_code)]
    for parent in kind.__bases__:
        if parent is not TacitError:
            assert f"`{parent.__name__}`" in entry
    assert entry.count("**Cause.**") == 1
    assert entry.count("**Cure.**") == 1


def test_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {project['version']} " in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nlicense: {project['license']}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_licence_is_the_whole_apache_licence() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
    assert [
        line.split(".")[0].strip() for line in text.splitlines() if re.match(r" {3}\d\. [A-Z]", line)
    ] == [str(number) for number in range(1, 10)]


def named_methods() -> list[str]:
    """Names in the second column of the README's table of methods."""
    rows = [
        line.split("|") for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| ")
    ]
    (header,) = [cells for cells in rows if cells[1].strip() == "method"]
    assert header[2].strip() == "name"
    return [name for cells in rows[rows.index(header) + 1 :] for name in re.findall(r"`([^`]+)`", cells[2])]


def test_the_table_of_methods_has_every_algorithm_and_every_mean_once() -> None:
    named = named_methods()
    assert sorted(set(named)) == sorted(named)
    means = {kind.__name__ for kind in (*get_args(Estimator), *get_args(AnyNoise))} - {"NoNoise"}
    missing = (means | set(ALGORITHMS)) - set(named)
    assert not missing, f"the table of methods in README.md lacks {sorted(missing)}"
    elsewhere = set(named) - means - set(ALGORITHMS)
    public = {
        *importlib.import_module("tacit.means").__all__,
        *importlib.import_module("tacit.voting").__all__,
        *importlib.import_module("tacit.fairness").__all__,
    }
    assert elsewhere <= public, f"the table of methods in README.md names {sorted(elsewhere - public)}"


def test_the_readme_keeps_its_length() -> None:
    readme = ROOT / "README.md"
    assert len(readme.read_text().splitlines()) <= 125
    (code,) = [b.body for b in blocks(readme) if b.kind == "python"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 15


def test_a_picture_of_the_site_opens_in_full_size() -> None:
    picture = '<img alt="Figure 1: a > b" src="curves-5.3.png" />'
    linked = f'<a href="curves-5.3.png" title="in full size">{picture}</a>'
    assert figures.on_page_content(f"<p>{picture}</p>") == f"<p>{linked}</p>"
    assert figures.on_page_content(f"<p>{linked}</p>") == f"<p>{linked}</p>"
    inside = '<img alt="output" src="data:image/png;base64,AA==">'
    assert figures.on_page_content(inside) == inside
