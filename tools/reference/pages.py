"""The pages of docs/reference, and which of them are stale."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from core import api, contrib, report, views
from core.analysis.workspace.question import Question
from core.choices import Choice, declared
from core.exporters import FORMATS as EXPORTS
from core.importers import FORMATS, GRADE_MAPPINGS
from core.metrics import REGISTRY
from core.metrics.info import MeasureInfo
from core.params import show
from core.paths import ROOT
from core.prices.calculator import CostInputs
from core.ui.address.state import SETTINGS
from core.views.columns import COLUMNS, Rows
from core.views.link import parameter_key
from core.views.measures.words import better, needs
from core.views.pages import PAGES
from core.work.imports.imports import ALWAYS, described
from tools.reference import commands, house, library, shapes
from tools.reference.markdown import cell, code, table

FOLDER = ROOT / "docs" / "reference"
PICTURED = "../architecture.md"
DECLARING = (CostInputs, Question)
"""Dataclasses whose fields declare choices."""


def formats() -> str:
    """Return importers and exporters, with what each takes and leaves out."""
    rows = [
        (f"[{known.title}](#{known.name})", code(known.name), ", ".join(known.brings)) for known in FORMATS
    ]
    return "\n\n".join(
        [
            "`python -m core formats NAME` says the same of one format. How to import: [Import "
            "results](../import.md).",
            table(("format", "`--as`", "brings"), rows),
            "Which files are which is told by their content; `--as` insists. " + ALWAYS,
            "## What each takes",
            *(_format(known.name, known.title) for known in FORMATS),
            "## Grades\n\nGrades of other scales become 1 to 5; `--grades` names a mapping, or "
            "spells one out, as in "
            "`--grades '0→1, 1→3, 2→5'`.",
            table(
                ("mapping", "grade as given → grade"),
                ((code(name), ", ".join(f"{a} → {b}" for a, b in grades.items()))
                 for name, grades in GRADE_MAPPINGS.items()),
            ),
            "## Exports",
            table(
                ("`export --format`", "what it is", "holds"),
                [(code(name), known.title, known.holds) for name, known in EXPORTS.items()]
                + [(code("mlflow"), "MLflow tracking server", "parameters and metrics of runs")],
            ),
        ]
    )  # fmt: skip


def _format(name: str, title: str) -> str:
    items = "\n".join(f"- {what}: {how}" for what, how in described(name))
    return f'<a id="{name}"></a>\n\n### {title}\n\n{items}'


def measures() -> str:
    """Return every measure with definition, source, range, direction and parameters."""
    plain = [info for info in REGISTRY.values() if "[" not in info.name]
    rows = [(code(info.name), info.text, info.range, better(info)) for info in plain]
    return "\n\n".join(
        [
            "`python -m core measures NAME` and page *Measures* work each of them out by hand on a "
            "small example.",
            "A measure is written `NAME@K(parameter=value)`, as in `RA-nWG@10(alpha=0.5,cap3=0.2)`. "
            "`PROC[X]` is X of the best order of the candidate pool, `%PROC[X]` the share of it that "
            "is reached (mean X / mean PROC[X]; `%PROC-per-query[X]` is the mean of X / PROC[X]), "
            "`Robust[X]` the worst of X over the query as it is and as it is perturbed.",
            table(("measure", "what it says", "range", "better"), rows),
            *map(_measure, plain),
            *map(
                _measure,
                (
                    REGISTRY[name]
                    for name in ("PROC[RA-nWG]", "%PROC[RA-nWG]", "%PROC-per-query[RA-nWG]", "Robust[RA-nWG]")
                ),
            ),
        ]
    )


def _measure(info: MeasureInfo) -> str:
    wrapped = "[" in info.name
    found = {
        "At K": info.formula,
        "Range": f"{info.range}; {better(info)} is better",
        "Needs": needs(info),
        "Not applicable": info.na or "never",
        "Other tools": info.differs,
        "Ceiling": f"`PROC[{info.name}]`, `%PROC[{info.name}]`" if info.ceiling and not wrapped else "",
        "Defined in": info.section,
    }
    lines = [f"- {what}: {cell(how)}" for what, how in found.items() if how]
    params = [
        (code(param.name), show(param.default), param.range, code(parameter_key(param) or ""), param.text)
        for param in info.params
    ]
    heads = ("parameter", "default", "range", "in the address", "what it does")
    return "\n\n".join(
        [f"## {info.name}", info.text, "\n".join(lines), *([table(heads, params)] if params else [])]
    )


MONEY = "dollars with their unit: `2.5per1k`, `0.2per1M`; a bare number is per 1,000"


def choices() -> str:
    """Return every URL setting, with the texts of its declaration."""
    said = {each.choice.key: each.choice for kind in DECLARING for each in declared(kind).values()}
    rows = [
        (
            code(key),
            known.word,
            MONEY if known.money else ("number" if known.number else "word") + _bounds(said.get(key)),
            "Settings" if known.rare else "page",
            "yes" if known.dependent else "",
            said[key].about if key in said else "",
        )
        for key, known in SETTINGS.items()
    ]
    heads = ("key", "what it sets", "value", "stands in", "forgotten with the workspace", "help")
    return "\n\n".join(
        [
            "An address of the dashboard holds what differs from the defaults: "
            "`/confidence?ws=clq-paper&sla_ms=600&sec=what+flips+it`. *Share* copies it with the data "
            "revision (`rev`). What cannot be followed is named on the page with the reason, and the default "
            "holds.",
            "`python -m core page NAME --set KEY=VALUE` takes the choices that a section asks by the same "
            "keys; with `--format json` it lists them under `choices`, with the options that the data offer.",
            table(heads, rows),
        ]
    )


def _bounds(choice: Choice | None) -> str:
    ends = () if choice is None else (("from", choice.low), ("to", choice.high))
    return "".join(f" {word} {end:g}" for word, end in ends if end is not None)


def columns() -> str:
    """Return the columns shared by tables, and the tables with the columns that each declares itself."""
    rows = [(code(each.name), each.label, each.form, each.help) for each in COLUMNS.values()]
    tables = {
        each.name: each for module in _modules() for each in vars(module).values() if isinstance(each, Rows)
    }
    return "\n\n".join(
        [
            "`name` is the column's key in JSON and its head in CSV, `label` what stands above it on "
            "screen. Forms: "
            "score 0 to 1 with three decimals; share 0 to 1, shown as percent; usd dollars; signed "
            "with its sign. "
            "An empty cell is unknown or not applicable, never 0. `…_low` and `…_high` are the ends of an "
            "interval.",
            table(("name", "label", "form", "what it holds"), rows),
            "## Tables\n\nWhat a table declares otherwise, or for itself, is told below its columns.",
            *(_rows(each) for _, each in sorted(tables.items())),
        ]
    )


def _modules() -> Iterator[ModuleType]:
    """Yield the modules that declare tables."""
    for package in (api, report, views, contrib):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def _rows(one: Rows) -> str:
    own = [
        (code(each.name), each.label, each.form, each.help)
        for each in one.every
        if each not in COLUMNS.values()
    ]
    names = ", ".join(code(each.name) for each in one.every)
    heads = ("name", "label", "form", "what it holds")
    return "\n\n".join([f"### {one.name}", names, *([table(heads, own)] if own else [])])


def pages() -> str:
    """Return the pages of the dashboard with their URLs and sections."""
    rows = [
        (page.group, page.title, code(f"/{page.name}"), ", ".join(page.sections),
         ", ".join(page.behind(None)), page.tells,
         ", ".join(code(f"/{old}") for old in page.moved if old != page.name))
        for page in PAGES.values()
    ]  # fmt: skip
    printed = ", ".join(code(page.name) for page in PAGES.values() if page.home)
    return "\n\n".join(
        [
            "A section opens by `?sec=NAME`; the first one needs none. Those behind *More* come forward in "
            "a workspace whose data make them tell something. Old addresses lead to the page of now.",
            table(
                (
                    "group",
                    "page",
                    "address",
                    "sections",
                    "behind More",
                    "what it tells or does",
                    "old addresses",
                ),
                rows,
            ),
            f"In the command line, by `python -m core page NAME`: {printed}.",
        ]
    )


PAGES_OF: Mapping[str, tuple[str, Callable[[], str]]] = {
    "pages": ("Pages", pages),
    "commands": ("Command line", commands.commands),
    "api": ("Python", library.library),
    "formats": ("Formats", formats),
    "measures": ("Measures", measures),
    "specifications": ("Specifications", shapes.specifications),
    "choices": ("Choices in the address", choices),
    "columns": ("Columns", columns),
    "json": ("JSON shapes", shapes.shapes),
    "house": ("Packages and their order", house.house),
}
"""File in docs/reference without extension: its title, and the writer of the rest."""


def page(name: str) -> str:
    """Return the text of a page."""
    title, write = PAGES_OF[name]
    return f"# {title}\n\n<!-- Written by `make docs`; change the code instead. -->\n\n{write()}\n"


def index() -> str:
    """Return the list of the pages."""
    links = "\n".join(f"- [{title}]({name}.md)" for name, (title, _) in PAGES_OF.items())
    return f"# Reference\n\nWritten from the code by `make docs`.\n\n{links}\n"


def written() -> dict[str, str]:
    """Return the text of every page by its file name."""
    return {"README.md": index(), PICTURED: pictured(), **{f"{name}.md": page(name) for name in PAGES_OF}}


def pictured() -> str:
    """Return the architecture page with the current diagram of the packages."""
    text = (FOLDER / PICTURED).read_text(encoding="utf-8")
    before, rest = text.split("<!-- house -->\n")
    after = rest.partition("<!-- /house -->")[2]
    return f"{before}<!-- house -->\n{house.mermaid()}\n<!-- /house -->{after}"


def stale(pages: Mapping[str, str]) -> list[str]:
    """Return the names of outdated files."""
    paths = {name: FOLDER / name for name in pages}
    there = {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.exists()}
    return sorted(name for name in pages if pages[name] != there.get(name))
