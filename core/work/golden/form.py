"""The form of a golden set, and its specification."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from core.store import Snapshot
from core.toml_text import toml_text
from core.work.paid import embedders

BM25, RUNS = "BM25", "runs of this workspace"
LANGUAGES = {"English": "en", "French": "fr"}

REFINE = {"no": "none", "if it pays": "auto", "by locks (the paper)": "locks", "by probability (map)": "map"}
"""Names of the methods of refining in the form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenForm:
    """Values of the form's fields; empty = not specified."""

    name: str
    collection: str
    limit: int | None = None  # number of questions; None = all
    sources: tuple[str, ...] = (BM25, "wordllama")  # sources of candidates
    depth: int = 100  # number of candidates from each
    judges: tuple[str, ...] = ()  # chat models
    language: str = "English"
    grades: str = ""  # a golden set whose grades are used
    refine: str = "no"
    keep: int = 35  # passages of a question to refine
    budget: float | None = None


def sources() -> list[str]:
    """List the possible sources of candidates."""
    return [BM25, RUNS, *embedders()]


def judged(snapshot: Snapshot, collection_id: str) -> list[str]:
    """Return golden sets of a collection whose grades can be used."""
    known = snapshot.golden_sets(collection_id).filter(pl.col("judgements") > 0)
    return known["golden_set_id"].to_list()


def lacks(snapshot: Snapshot, collection_id: str) -> str:
    """Describe what a collection needs before it can be judged, or return "" if nothing."""
    row = snapshot.collections().filter(collection_id=collection_id).row(0, named=True)
    wanted = {"passages": "passages", "questions": "queries"}
    return " and ".join(name for name, column in wanted.items() if not row[column])


def specification(form: GoldenForm) -> str:
    """Return the form as the text of a specification (TOML)."""
    pool = {BM25: {"stack.sparse": "bm25"}, RUNS: {"runs": "workspace"}}
    return toml_text(
        ("", {
            "name": form.name, "collection.stored": form.collection, "queries.limit": form.limit,
            "budget_usd": form.budget,
        }),
        ("golden", {"language": LANGUAGES[form.language]}),
        *(
            ("[golden.pool]", {**pool.get(source, {"stack.embedder": source}), "depth": form.depth})
            for source in form.sources
        ),
        ("golden.judge", {"models": form.judges, "grades": form.grades}),
        ("golden.prune", {"keep": form.keep}),
        ("golden.refine", {"method": REFINE[form.refine]}),
    )  # fmt: skip
