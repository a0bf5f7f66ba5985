"""Adding one thing touches few files: those that name a measure or a page are its own."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from inspect import getfile
from pathlib import Path

import pytest

from core.analysis.workspace.question import Question
from core.choices import declared
from core.importers import FORMATS
from core.metrics import REGISTRY
from core.paths import DATA, ROOT
from core.prices.calculator import CostInputs
from core.ui.address.state import SETTINGS
from core.views.pages import PAGES

CHOICES = (CostInputs, Question)
"""Dataclasses whose fields declare choices."""
OF_THE_PRODUCT = re.compile(r"(Novelty-)?(RA-nWG|N-Recall[45]?\+?|Precision4\+|Harm(Upper)?|Hole|Hit)")
"""Measures that pages rest on by name; what is said here holds for the others."""


@cache
def sources(*folders: str) -> dict[str, str]:
    """Text of the product's files, by path."""
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def naming(pattern: str, *folders: str) -> set[str]:
    """Return the files that a pattern stands in."""
    return {path for path, text in sources(*folders).items() if re.search(pattern, text)}


@pytest.mark.parametrize(
    "name",
    [name for name in REGISTRY if "[" not in name and not OF_THE_PRODUCT.match(name)],
)
def test_a_measure_is_its_declaration_its_example_and_its_cases(name):
    family = {path for path in sources("core") if path.startswith("core/metrics/")}
    example = {"core/views/measures/worked.py"}
    foretelling = {"core/views/measures/outcome.py"}
    planning = {"core/analysis/spread.py"}
    gaining = {"core/views/readers/gains.py"}  # What a reader gains is held against recall.
    declared = naming(rf'(MeasureInfo\(\s*|\bname=)"{re.escape(name)}"', "core/metrics")
    assert len(declared) == 1
    assert declared <= family - {"core/metrics/measure.py"}
    named = naming(rf'Measure\(\s*"{re.escape(name)}"|parse\(\s*f?"{re.escape(name)}[@("]', "core", "pages")
    assert named <= family | example | foretelling | planning | gaining


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_its_entry_its_views_and_its_tests(name):
    frame = {
        "app.py",
        *(f"core/ui/{file}.py" for file in ("shell", "navigation", "sidebar", "startup")),
    }
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in frame if (ROOT / path).exists()}
    assert texts
    assert not {
        path for path, text in texts.items() if re.search(rf"pages/{name}\.py|['\"]{name}['\"]", text)
    }
    views = ROOT / "core" / {"add": "work/imports"}.get(name, f"views/{name}")
    assert (views / "__init__.py").is_file() or views.with_suffix(".py").is_file()
    assert naming(rf"['\"/]{name}\b", "tests")


def test_pages_lists_the_pages_of_the_sidebar():
    """Whoever opens the folder sees them; a page of one module that is sections alone needs none."""
    names = {path.stem for path in (ROOT / "pages").glob("*.py")}
    assert names <= set(PAGES)
    assert {name for name, page in PAGES.items() if not page.home or page.home.endswith(".sections")} <= names


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if page.home])
def test_a_section_is_a_function_in_the_package_of_its_page(name):
    """A page is an entry of the list and a script beside it, which draws whatever sections there are."""
    home, own = PAGES[name].home.removesuffix(".sections"), PAGES[name].declared()
    assert {section.draw.__module__.removeprefix(home).split(".")[0] for section in own} == {""}


USED_TOO = {"beir", "judged-spans", "table"}
"""Formats that corpora, chunkings and workbooks are read by as well."""


@pytest.mark.parametrize(
    "each", [each for each in FORMATS if each.name not in USED_TOO], ids=lambda each: each.name
)
def test_an_importer_is_its_file(each):
    own = Path(getfile(type(each))).relative_to(ROOT)
    own_files = {own.as_posix()} if own.name != "__init__.py" else set(sources(own.parent.as_posix()))
    imported = rf"from {re.escape(type(each).__module__)} import [^)\n]*\b{type(each).__name__}\b"
    assert naming(imported, "core", "pages") <= own_files


EXAMPLES = {
    *(f"core/providers/{kind}/__init__.py" for kind in ("embed", "rerank", "chat")), "core/providers/base.py",
    "core/tables.py", "core/prices/__init__.py", "core/cli/golden.py",
    "core/views/cost/bill.py", "core/views/cost/sections.py",
}  # fmt: skip
"""Files that name some model for an example, or as the first that a form shows."""
VENDORS_OF = tomllib.loads((DATA / "models.toml").read_text(encoding="utf-8"))
MODELS = [
    own["model"] for kind in VENDORS_OF.values() for vendor in kind.values() for own in vendor["models"]
]


@pytest.mark.parametrize("model", MODELS)
def test_a_model_of_a_known_vendor_is_data(model):
    assert naming(rf"['\":]{re.escape(model)}['\"]", "core", "pages") <= EXAMPLES
    prices = {
        path.name for path in (DATA / "prices").glob("*.toml") if f'"{model}"' in path.read_text("utf-8")
    }
    assert prices


@pytest.mark.parametrize("way", ["typo", "accents"])
def test_a_perturbation_is_declared_done_and_put_into_specification_and_address(way):
    declared = {
        "core/metrics/robust.py", "core/pipeline/query/perturb.py", "core/pipeline/sweep/model.py",
        "core/ui/address/state.py",
    }  # fmt: skip
    named = naming(rf"\b{way}: Many\[|\bname=\"{way}\"|\.get\(\"{way}\"|\"{way}\": Setting", "core", "pages")
    assert named == declared


def test_an_axis_with_a_step_of_its_own_is_its_key_its_methods_and_its_step():
    assert naming(r"\b_?dedups?\b", "core", "pages") == {
        "core/axes.py", "core/pipeline/sweep/model.py", "core/pipeline/ranking/pool.py",
        "core/pipeline/evaluate/steps.py", "core/pipeline/evaluate/asking.py",
    }  # fmt: skip


def test_a_limit_beside_the_quality_is_its_axis_its_source_and_its_type():
    assert naming(r"refusal_rate\b|\bREFUSING\b", "core", "pages") == {
        "core/api/options.py", "core/decide/axes.py", "core/analysis/workspace/figures/beside.py",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHOICES, ids=lambda kind: kind.__name__)
def test_a_choice_is_a_field_whose_key_stands_nowhere_else(kind):
    path = f"{kind.__module__.replace('.', '/')}.py"
    for field in declared(kind).values():
        if not (key := re.escape(field.choice.key)):
            continue
        assert naming(rf'(linked\(|bound\()"{key}"|"{key}": Setting', "core", "pages") <= {path}
        assert SETTINGS[field.choice.key].word == field.choice.word


def test_a_question_becomes_a_view_in_one_place():
    assert naming(r"(?<!class )\bView\(\n|\bView\([a-z]+=", "core", "pages") == {
        "core/analysis/workspace/resolve.py"
    }


def test_every_folder_of_modules_is_a_package_which_the_import_contracts_see():
    folders = {path.rpartition("/")[0] for path in sources("core")}
    assert {folder for folder in folders if f"{folder}/__init__.py" not in sources("core")} == set()
