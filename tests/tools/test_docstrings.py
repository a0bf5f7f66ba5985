from __future__ import annotations

import warnings

import polars as pl
import pytest

from core.tables import TABLES
from tools.demo import docstrings
from tools.demo.walk import MIN_CHARACTERS, walk

LONG = "Explain what this does in enough words to be worth a passage of its own."

PACKAGE = {
    "__init__.py": f'''
"""A package. {LONG}"""
import warnings
from sampled._hidden import Tool, alias_of_run, run
from sampled._hidden import Tool as AnotherName

class Fragile:
    """Fragile instances. {LONG}"""
    def __getattr__(self, name):
        raise RuntimeError(name)
    def member(self):
        """Member. {LONG}"""

fragile = Fragile()

class Gate:
    """Not the interesting part of a callable. {LONG}"""
    def __call__(self, key):
        """Open the gate. {LONG}"""

gate = Gate()

def __getattr__(name):
    if name == "old":
        warnings.warn("old is deprecated", DeprecationWarning)
        return run
    raise AttributeError(name)

__all__ = ["Tool", "AnotherName", "alias_of_run", "run", "old", "fragile", "gate", "gone", "short"]

def short():
    """Too short."""
''',
    "_hidden.py": f'''
class _Base:
    def inherited(self):
        """Inherited. {LONG}"""

class Words:
    def upper(self):
        """Upper. {LONG}"""

class WordsNameSpace(Words):
    def lower(self):
        """Lower. {LONG}"""

class Tool(_Base):
    """A tool. {LONG}"""
    @property
    def str(self) -> "WordsNameSpace":
        """The namespace. {LONG}"""
    @staticmethod
    def make(size: int = 3, where=object()):
        """Make one. {LONG}"""
    def _private(self):
        """Private. {LONG}"""

def run(x: int, *, fast: bool = True) -> int:
    """Run it. {LONG}

    Examples
    --------
    >>> run(1)
    """

alias_of_run = run
''',
    "deeper.py": f'''
"""Deeper. {LONG}"""
from sampled import run

def dig():
    """Dig. {LONG}"""
''',
    "broken.py": "import a_package_that_nobody_has",
    "tests.py": f'def check():\n    """Check. {LONG}"""',
}


@pytest.fixture
def sampled(tmp_path, monkeypatch):
    folder = tmp_path / "sampled"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return docstrings.passages(("sampled",))


@pytest.fixture(scope="module")
def corpus() -> pl.DataFrame:
    return docstrings.passages()


def test_names_are_the_public_ones(sampled):
    assert sampled["passage_id"].to_list() == [
        "sampled",
        "sampled.Tool",
        "sampled.Tool.inherited",
        "sampled.Tool.make",
        "sampled.Tool.str.lower",
        "sampled.Tool.str.upper",
        "sampled.deeper",
        "sampled.deeper.dig",
        "sampled.fragile",
        "sampled.fragile.member",
        "sampled.gate",
        "sampled.run",
    ]


def test_a_passage_tells_name_signature_text_tokens_and_module(sampled):
    row = sampled.filter(passage_id="sampled.run").row(0, named=True)
    assert row["title"] == "sampled.run(x, *, fast=True)"
    assert row["text"].startswith("Run it. ")
    assert "\nExamples\n--------" in row["text"]
    assert row["source"] == "sampled"
    assert row["tokens"] == docstrings.count_tokens([row["text"]])[0] > 15
    assert row["tokenizer"] == "o200k_base"


def test_a_default_without_a_literal_does_not_make_titles_differ_between_processes(sampled):
    title = sampled.filter(passage_id="sampled.Tool.make")["title"].item()
    assert title == "sampled.Tool.make(size=3, where=…)"


def test_a_callable_instance_is_documented_by_its_call(sampled):
    assert sampled.filter(passage_id="sampled.gate")["text"].item().startswith("Open the gate.")


def test_a_package_that_is_not_installed_is_an_error():
    with pytest.raises(ModuleNotFoundError):
        list(walk("a_package_that_nobody_has"))


def test_the_demo_corpus_has_the_declared_shape(corpus):
    assert corpus.schema == TABLES["passages"]
    assert 3000 < corpus.height < 4500
    assert corpus["passage_id"].is_unique().all()
    assert corpus["text"].is_unique().all()
    assert corpus["passage_id"].is_sorted()
    assert corpus["text"].str.len_chars().min() >= MIN_CHARACTERS
    assert corpus["tokens"].min() > 0
    assert not corpus["passage_id"].str.contains(r"\._|\.tests\b").any()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("numpy.cumsum", "Return the cumulative sum"),
        ("numpy.concatenate", "Join a sequence of arrays"),
        ("polars.DataFrame.group_by", "Start a group by operation"),
        ("polars.Expr.str.to_lowercase", "Modify strings to their lowercase"),
        ("streamlit.cache_resource", "Decorator to cache functions that return resource"),
        ("streamlit.session_state", "A dictionary-like object for persisting"),
        ("streamlit.dataframe", "Display a dataframe"),
    ],
)
def test_what_people_search_for_is_there_under_its_public_name(corpus, name, begins):
    assert corpus.filter(passage_id=name)["text"].item().startswith(begins)


@pytest.mark.slow
def test_reading_again_gives_the_same_corpus_without_warnings(corpus):
    docstrings._passages.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = docstrings.passages()
    assert again.equals(corpus)


def test_versions_name_every_package():
    assert set(docstrings.versions()) == set(docstrings.PACKAGES)


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("polars.DataFrame.group_by(*by)", "polars Data Frame group by"),
        ("numpy.fft.rfft2(a)", "numpy fft rfft 2"),
        ("polars.read_csv", "polars read csv"),
        ("polars.SQLContext", "polars SQL Context"),
    ],
)
def test_the_words_of_a_name_are_stored(title, words):
    name = title.partition("(")[0]
    assert docstrings.described(title, "Text.") == (f"{name} {words}", "Text.")


def test_examples_are_not_stored():
    text = "Summary.\n\nReturns\n-------\nA sum.\n\nExamples\n--------\n>>> 1 + 1\n2"
    assert docstrings.described("a.b", text) == ("a.b a b", "Summary.\n\nReturns\n-------\nA sum.")
    assert docstrings.described("a.b", "Examples\n--------\n>>> 1")[1].endswith(">>> 1")


def test_passages_to_store_keep_rows_and_columns(sampled):
    made = docstrings.to_store(sampled)
    assert made.schema == sampled.schema
    assert made["passage_id"].equals(sampled["passage_id"])
    row = made.filter(passage_id="sampled.run").row(0, named=True)
    assert (row["title"], row["text"][:7]) == ("sampled.run sampled run", "Run it.")
