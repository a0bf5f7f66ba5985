"""A build of a golden set: the form and its specification, sentences and tables, and what it lands as.

In the store it stands under its own id, or as the next version that names the one before.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

import polars as pl

from core.analysis.export import StoreShelf
from core.number_format import count, usd
from core.records import Batch
from core.store import Snapshot, Store
from core.tables import Frame
from core.toml_text import toml_text
from core.work.paid import closing, embedders, fact, listed, now, press

if TYPE_CHECKING:  # the engines take a second to load
    from core.golden.job import GoldenJob
    from core.golden.plan import GoldenPlan
    from core.golden.refine.base import Refinement
    from core.golden.spec import GoldenSpec
    from core.pipeline.evaluate import Status
    from core.pipeline.sweep.problems import Problem
    from core.prices import PriceBook


RISK = (
    "Passages may carry instructions for the judge; they stand between marks that they cannot foresee and "
    "answers of another form are refused, but a model can still be swayed: have people judge a sample."
)
WHAT = "A judge model grades what the sources find for each question; have people check a sample of it."
NO_JUDGE = "Choose a judge; “fake” tries it out without a key or money."
JUDGES = (
    "Of several the majority counts; ties take the lower grade. “fake” compares words: for trying out, never "
    "for results."
)
PROMPTS = {
    "grade": "To grade a passage",
    "order": "To put five passages in order",
    "nuggets": "To list nuggets",
    "support": "To tell which nuggets a passage supports",
}


def headline(known: Sequence[Status]) -> str:
    """Say how many were built and which are now."""
    if not known:
        return "No golden set built yet."
    if doing := now(known, "being built", ""):
        return f"{doing}."
    built = sum(str(status.state) == "finished" for status in known)
    return f"{count(built, 'golden set')} built here{'' if built == len(known) else ', some unfinished'}."


def size_of(plan: GoldenPlan) -> str:
    """Say how much will be judged: ``64 questions, 3,200 passages in the pools, 2,950 texts to judge``."""
    about = "" if plan.pools_known else "≈ "
    taken = f", {plan.grades_taken:,} grades taken over" if plan.grades_taken else ""
    passages = f"{about}{plan.pool:,} passages in the pools"
    judged = f"{about}{count(plan.to_judge, 'text')} to judge{taken}"
    return f"{count(plan.questions, 'question')}, {passages}, {judged}"


def planned(plan: GoldenPlan) -> str:
    """Return `size_of`, and what each way to put the best in order would bring."""
    return f"{size_of(plan)}{refining(plan)}"


def refining(plan: GoldenPlan) -> str:
    """Say what each way to refine would bring and take, and which is recommended; empty where none is."""
    ways = []
    for way in plan.ways:
        name = "grades alone" if way["method"] == "none" else way["method"]
        paid = "" if way["usd"] is None or not way["usd"] else f", {usd(way['usd'])}"
        calls = f" ({way['turns']:.0f} calls a question{paid})" if way["turns"] else ""
        ways.append(f"{name} {way['tau']:.2f}{calls}")
    chosen = "".join(way["method"] for way in plan.ways if way["recommended"])
    advice = {"": "", "none": "do not refine"}.get(chosen, f"{chosen} is recommended")
    if not ways:
        return ""
    return (
        f". Order of the best, Kendall tau to the true one, simulated at an assumed judge noise of 1 grade: "
        f"{', '.join(ways)}; {advice}"
    )


def button(plan: GoldenPlan) -> str:
    """Name the button: ``Judge 2,950 texts · $0.84 · about 5 min``."""
    act = f"Judge {count(plan.to_judge, 'text')}" if plan.to_judge else "Build it"
    return press(act, plan, plan.seconds)


def ended(status: Status) -> str:
    """Say how it ended, in a sentence or two."""
    name, ungraded = (status.facts.get(fact) for fact in ("golden_set_id", "ungraded"))
    remarks = [f"{count(int(ungraded), 'text')} got no grade in three tries."] if ungraded else []
    return closing(status, f"the golden set {name} is in the store" if name else "", remarks)


def pays(ways: pl.DataFrame) -> str:
    """Say what is recommended, and what it gains over the grades alone."""
    chosen = ways.filter("recommended").row(0, named=True)
    if chosen["method"] == "none":
        return "At the judge's noise as measured, refining would lose or gain nothing sure; grades decide."
    grades = ways.filter(method="none")["tau"].item()
    return f"{chosen['method']} pays: tau {chosen['tau']:.2f} instead of {grades:.2f} by grades alone."


def came_to_rest(state: Refinement) -> str:
    """Say how the refinement of one question ended."""
    why = {"stable": "the Top-20 came to rest", "limit": "it stopped at the limit of turns"}
    skipped = f", {state.skips} skipped" if state.skips else ""
    against = count(len(state.contradictions), "judgement against a lock", "judgements against locks")
    ended = why.get(state.stopped, "too few passages to order" if state.stopped else "it is under way")
    return f"{count(state.turns, 'turn')}{skipped}, {against}; {ended}."


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all of them, newest first: name, state, stage, golden_set, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "golden_set": fact("golden_set_id")})


def land(store: Store, batch: Batch) -> str:
    """Write a finished golden set; one with the same grades, orders and nuggets is left alone."""
    (golden,) = batch.golden_sets
    snapshot = store.read()
    versions = versions_of(snapshot, golden.golden_set_id)
    there = {str(name) for name in snapshot.golden_sets(golden.collection_id)["golden_set_id"]}
    last = next((name for name in reversed(versions) if name in there), None)
    if last is not None and _same(snapshot, last, batch):
        return last
    name = golden.golden_set_id
    if versions:
        numbered = (f"{name}-{number}" for number in itertools.count(len(versions) + 1))
        name = next(name for name in numbered if name not in versions)
    parents = tuple(dict.fromkeys((*golden.parents, *([last] if last else []))))
    record = replace(golden, golden_set_id=name, parents=parents)
    own = pl.lit(name).alias("golden_set_id")
    frames = {table: rows.lazy().with_columns(own).collect() for table, rows in batch.frames.items()}
    with store.write("build golden set", f"{name}: {record.notes}"[:500]) as writer:
        writer.add(Batch(golden_sets=(record,), frames=frames))
    return name


def versions_of(snapshot: Snapshot, name: str) -> list[str]:
    """Return ids of a golden set and its later versions, oldest first, deleted ones included."""
    pattern = re.compile(rf"{re.escape(name)}(?:-(\d+))?")
    known = snapshot.with_deleted().golden_sets(parts=True)["golden_set_id"].to_list()
    versions = [(int(match[1] or 1), version) for version in known if (match := pattern.fullmatch(version))]
    return [version for _, version in sorted(versions)]


def _same(snapshot: Snapshot, known: str, batch: Batch) -> bool:
    def comparable(rows: Frame) -> pl.DataFrame:
        return rows.lazy().collect().drop("golden_set_id").sort(pl.all())

    held = {"judgements": snapshot.judgements(known), "orders": snapshot.orders(known)}
    held["nuggets"] = snapshot.nuggets(known)
    return all(
        comparable(batch.frames.get(table, rows.clear())).equals(comparable(rows))
        for table, rows in held.items()
    )


def read(
    snapshot: Snapshot, spec: GoldenSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[GoldenJob, list[Problem]]:
    """Read what a specification names, with a store as its shelf."""
    from core.golden.job import read_job  # noqa: PLC0415 - with the engines, a second

    return read_job(spec, shelf=StoreShelf(snapshot), books=books, to_run=to_run)


def ways(snapshot: Snapshot, golden_set_id: str) -> pl.DataFrame:
    """List what each way to refine was predicted to bring: method, tau, low, high, turns, usd, recommended.

    No rows where that was not asked, or there is no such golden set.
    """
    manifests = snapshot.golden_sets().filter(golden_set_id=golden_set_id)["manifest"].to_list()
    rows = json.loads(manifests[0]).get("refined", {}).get("ways", []) if manifests else []
    return pl.DataFrame(rows, schema=_WAYS, orient="row")


_WAYS = {
    "method": pl.String,
    **dict.fromkeys(("tau", "low", "high", "turns", "usd"), pl.Float64),
    "recommended": pl.Boolean,
}


BM25, RUNS = "BM25", "runs of this workspace"
LANGUAGES = {"English": "en", "French": "fr"}
REFINE = {"no": "none", "if it pays": "auto", "by locks (the paper)": "locks", "by probability (map)": "map"}
"""Names of the ways to refine in the form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Values of the form's fields; empty = nothing is said."""

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
    """List where candidates can come from."""
    return [BM25, RUNS, *embedders()]


def models() -> list[str]:
    """Return chat models that are known by name."""
    from core.providers.chat import CHATS  # noqa: PLC0415 - with the engines, a second

    return sorted(CHATS, key=lambda name: (name == "fake", name))


def judged(snapshot: Snapshot, collection_id: str) -> list[str]:
    """Return golden sets of a collection whose grades can be taken."""
    known = snapshot.golden_sets(collection_id).filter(pl.col("judgements") > 0)
    return known["golden_set_id"].to_list()


def lacks(snapshot: Snapshot, collection_id: str) -> str:
    """Say what a collection lacks to be judged; empty where it lacks nothing."""
    row = snapshot.collections().filter(collection_id=collection_id).row(0, named=True)
    wanted = {"passages": "passages", "questions": "queries"}
    return " and ".join(name for name, column in wanted.items() if not row[column])


def specification(form: Form) -> str:
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
