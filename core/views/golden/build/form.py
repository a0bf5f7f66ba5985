"""The form that builds a golden set, and the specification that it makes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from core.pipeline.sweep.known import Known
from core.providers.chat import CHATS
from core.store import Snapshot
from core.toml import toml

BM25, RUNS = "BM25", "runs of this workspace"
LANGUAGES = {"English": "en", "French": "fr"}
REFINE = {
    "no": "none",
    "if it pays": "auto",
    "by locks (the paper)": "locks",
    "by probability (map)": "map",
}
"""What the form calls the ways to refine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What the fields of the form hold; empty = nothing is said."""

    name: str
    collection: str
    limit: int | None = None  # how many questions; None = all
    sources: tuple[str, ...] = (BM25, "wordllama")  # where candidates come from
    depth: int = 100  # how many of each
    judges: tuple[str, ...] = ()  # chat models
    language: str = "English"
    grades: str = ""  # a golden set whose grades are taken
    refine: str = "no"
    keep: int = 35  # passages of a question that are refined
    budget: float | None = None


def sources() -> list[str]:
    """What candidates can come from."""
    return [BM25, RUNS, *sorted(Known().names("embedder"), key=lambda name: (name != "wordllama", name))]


def models() -> list[str]:
    """Chat models that are known by name."""
    return sorted(CHATS, key=lambda name: (name == "fake", name))


def judged(snapshot: Snapshot, collection_id: str) -> list[str]:
    """Golden sets of a collection whose grades can be taken."""
    known = snapshot.golden_sets(collection_id).filter(pl.col("judgements") > 0)
    return known["golden_set_id"].to_list()


def lacks(snapshot: Snapshot, collection_id: str) -> str:
    """What a collection lacks to be judged; empty where it lacks nothing."""
    row = snapshot.collections().filter(collection_id=collection_id).row(0, named=True)
    missing = [
        name for name, count in (("passages", row["passages"]), ("questions", row["queries"])) if not count
    ]
    return " and ".join(missing)


def specification(form: Form) -> str:
    """The form as the text of a specification (TOML)."""
    return "\n".join(
        [
            f"name = {toml(form.name)}",
            f"collection.stored = {toml(form.collection)}",
            *([f"queries.limit = {form.limit}"] if form.limit is not None else []),
            *([f"budget_usd = {form.budget:g}"] if form.budget is not None else []),
            "",
            "[golden]",
            f"language = {toml(LANGUAGES[form.language])}",
            *(line for source in form.sources for line in _source(source, form.depth)),
            "",
            "[golden.judge]",
            f"models = {toml(form.judges)}",
            *([f"grades = {toml(form.grades)}"] if form.grades else []),
            "",
            "[golden.prune]",
            f"keep = {form.keep}",
            "",
            "[golden.refine]",
            f"method = {toml(REFINE[form.refine])}",
            "",
        ]
    )


def _source(source: str, depth: int) -> list[str]:
    told = {
        BM25: 'stack = { sparse = "bm25" }',
        RUNS: 'runs = "workspace"',
    }.get(source, f"stack = {{ embedder = {toml(source)} }}")
    return ["", "[[golden.pool]]", told, f"depth = {depth}"]
