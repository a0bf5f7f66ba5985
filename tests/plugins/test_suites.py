"""The suites of models, indexes and sections find what broken ones break, not the product's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from core.conformance.indexes import index_faults
from core.conformance.models import model_faults
from core.conformance.sections import section_faults
from core.pipeline.index import DatabaseIndex
from core.pipeline.index.kinds import IndexEngine, shared
from core.pipeline.index.outside import DatabaseFacts
from core.plugins import plugins
from core.providers.base import Reply
from core.providers.chat import FakeChat
from core.providers.embed.local import FakeEmbedder
from core.providers.rerank.lexical import Bm25Reranker
from core.providers.rerank.local import FakeReranker
from core.views.blocks import Answer, Chart, Table, Text, section
from core.views.columns import Rows
from core.views.pages import PAGES


class Leaning(FakeEmbedder):
    """Adds the number of texts to their vectors."""

    def embed_batch(self, texts, purpose):
        reply = super().embed_batch(texts, purpose)
        reply.value[:, 0] += len(texts)
        reply.value[:] /= np.linalg.norm(reply.value, axis=1, keepdims=True)
        return reply


class Long(FakeEmbedder):
    """Says nothing of the length of its vectors."""

    def embed_batch(self, texts, purpose):
        reply = super().embed_batch(texts, purpose)
        reply.value[:] *= 3
        return reply


class Same(FakeEmbedder):
    """Gives all texts one vector."""

    def embed_batch(self, texts, purpose):
        reply = super().embed_batch(texts, purpose)
        reply.value[:] = np.eye(1, self.dim)
        return reply


class Uneven(FakeEmbedder):
    """Forgets a text."""

    def embed_batch(self, texts, purpose):
        return super().embed_batch(texts[:-1] or texts, purpose)


class Placed(FakeReranker):
    """Scores by place, and calls itself pointwise."""

    def score_batch(self, query, passages, *, extra=""):
        del query, extra
        return Reply(np.arange(len(passages), dtype=np.float64))


class Moody(FakeReranker):
    """Scores at random."""

    pointwise = False

    def score_batch(self, query, passages, *, extra=""):
        del query, extra
        return Reply(np.random.default_rng().random(len(passages)))


class Dear(FakeReranker):
    """Expects to use a number."""

    def expected(self, query_tokens, passage_tokens):
        return query_tokens + sum(passage_tokens)


class Mute(FakeChat):
    """Answers nothing."""

    def __init__(self, config, wired):
        del config, wired
        super().__init__()

    def complete(self, system, user, **options):
        return Reply(None)


class Unpaid(FakeChat):
    """A vendor's, which is not asked."""

    local = False

    def __init__(self, config, wired):
        del config, wired
        super().__init__()

    def complete(self, system, user, **options):
        raise AssertionError


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (FakeEmbedder, []),
        (Bm25Reranker, []),
        (FakeReranker, []),
        (Unpaid, []),
        (Leaning, ["how many are embedded at once"]),
        (Long, ["a vector of length 3, not 1"]),
        (Same, ["the same vector"]),
        (Uneven, ["ProviderError"]),
        (Placed, ["depends on the passages beside it"]),
        (Moody, ["differs when asked again"]),
        (Dear, ["no tuple of amounts"]),
        (Mute, ["no text, but NoneType", "characters and chars_per_second"]),
    ],
)
def test_a_model(kind: type, said: list[str]):
    found = list(model_faults("tried", kind))
    assert len(found) == len(said), found
    assert all(words in fault for fault, words in zip(found, said, strict=True))


class Plain(DatabaseIndex):
    """Keeps vectors in a file of numpy."""

    engine = IndexEngine(
        name="plain", title="Plain", text="A file.", options=shared("", id="id", vector="vector"),
        package="numpy", requirements="requirements.txt", example="", schemes=(),
        vector_bytes=lambda dim, _options: 4.0 * dim, folder=True,
    )  # fmt: skip

    @property
    def file(self) -> Path:
        return self._place.folder / f"{self._place.table}.npy"

    def _create(self, vectors):
        np.save(self.file, vectors)

    def _drop(self):
        self.file.unlink()

    def _look(self):
        count, dim = np.load(self.file).shape
        return DatabaseFacts(dim, count, None)

    def _scores(self, query):
        vectors = np.load(self.file)
        if self.metric == "l2":
            return -np.linalg.norm(vectors - query, axis=1)
        return vectors @ (query / np.linalg.norm(query) if self.metric == "cosine" else query)

    def _nearest(self, query, k, text, only=None):
        scores = self._scores(query)
        return [(int(at), float(scores[at])) for at in np.argsort(-scores)[:k]]


class Furthest(Plain):
    """Takes a distance for a score."""

    def _scores(self, query):
        return -super()._scores(query)


class Unscaled(Plain):
    """Finds the right ones, and scores them otherwise."""

    def _scores(self, query):
        return 2 * super()._scores(query)


class Open(Plain):
    """Says that it filters, and does not."""

    selects = True


class Short(Plain):
    """Leaves the last vector out."""

    def _create(self, vectors):
        super()._create(vectors[:-1])


class Reshuffled(Plain):
    """Is another one when it is opened again."""

    @classmethod
    def load(cls, path, about, ids=()):
        index = super().load(path, about, ids)
        index.metric = "l2" if index.metric == "ip" else "ip"
        index._scores = lambda query: -Plain._scores(index, query)  # type: ignore[method-assign]
        return index


class Serving(Plain):
    """Needs a server, and is not tried."""

    engine = IndexEngine(
        name="serving", title="Serving", text="A server.", options=shared("X", id="id", vector="vector"),
        package="numpy", requirements="requirements.txt", example="", schemes=("http",),
        vector_bytes=lambda dim, _options: 4.0 * dim,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Plain, []),
        (Serving, []),
        (Furthest, ["of the nearest"] * 3),
        (Unscaled, ["scores are off"] * 3),
        (Open, ["a filter forbids"] * 3),
        (Short, ["states 199 vectors"] * 3),
        (Reshuffled, ["opened again"] * 3),
    ],
)
def test_an_index(kind: type[DatabaseIndex], said: list[str]):
    found = list(index_faults(kind.engine.name, kind))
    assert len(found) == len(said), found
    assert all(words in fault for fault, words in zip(found, said, strict=True))


def test_an_index_is_called_as_its_engine():
    assert "would not be found" in " ".join(index_faults("other", Plain))


@section("tried", "What is tried?")
def fine(view, ask):
    least = ask.number("Latency at least (ms)", "least", 0.0, 0.0)
    yield Answer(f"{view.table.height} stacks, from {least:g} ms.")
    yield Table(view.table, Rows("stacks", "name n"))


@section("tried", "What is tried?")
def unknown(view, ask):
    yield Answer(f"{view.table['latency_ms'].max():.0f} ms.")


@section("tried", "What is tried?")
def silent(view, ask):
    yield Table(view.table, Rows("stacks", "name n"))
    yield Table(view.table, Rows("stacks", "name"))


@section("tried", "What is tried?")
def wordless(view, ask):
    yield Answer("A chart.")
    yield Chart(go.Figure(), "chart", "")


_times = iter(range(1000))


@section("tried", "What is tried?")
def counting(view, ask):
    yield Answer(f"Drawn {next(_times)} times.")


@section("tried", "What is tried?")
def foreign(view, ask):
    yield Answer("A word.")
    yield Text("A word.")
    yield "a word"


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (fine, []),
        (unknown, ["with means alone it raises TypeError"]),
        (silent, ["it has no answer", "several tables are called stacks"] * 2),
        (wordless, ["does not say in words"] * 2),
        (counting, ["something else when drawn again"] * 2),
        (foreign, ["str, which is no block"] * 2),
    ],
)
def test_a_section(drawn: Any, said: list[str]):
    found = list(section_faults(PAGES["headroom"], drawn))
    assert len(found) == len(said), found
    assert all(words in fault for fault, words in zip(found, said, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [page.name for page in PAGES.values() if page.home])
def test_the_products_own_sections_keep_it(name: str):
    page = PAGES[name]
    assert {part.name: found for part in page.drawn() if (found := list(section_faults(page, part)))} == {}


def test_what_a_plug_in_makes_is_what_is_tried():
    built_in = [plug_in for plug_in in plugins() if plug_in.package == "built in"]
    assert built_in
    assert all(plug_in.made is not None for plug_in in built_in)
