"""Page K curves: every cutoff with every reranker and chunking, beside the thesis's tables 7.6 and 7.7."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from core.analysis import prompt_tokens
from core.analysis.cache import cached
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.paths import PUBLISHED
from core.records import canonical_json
from core.tables import remembered
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask, named
from core.views.blocks import Answer, Blocks, Fold, Table, section
from core.views.curves import cuts
from core.views.text import score
from core.views.within import with_limits

_NONE = "none"
PAPER = "The thesis's tables 7.6 and 7.7"
ABOUT = (
    "Stacks that differ from the chosen one in reranker and chunking alone. Passages kept and F1 are means "
    "over the queries whose scores order the ranking. The best of many rows flatters itself; what is tuned "
    "on other queries does not: a fifth at a time, by the way that is best for the other four."
)
OTHER = (
    "{} was run with one reranker and one chunking alone. Shown is the family of {}, the best of those that "
    "were run with several."
)
_APART = ("reranker", "chunker", "cut")
_MEASURES = ("precision", "recall", "f1", "items_passed", "docs_passed")
NAMES = (cols.text("reranker"), cols.text("chunking"), "way")
THESIS = (
    "precision recall f1",
    cols.points("items_passed", "items", "Chunks or pages kept."),
    cols.points("docs_passed", "documents", "Documents of which something is kept."),
)
SHOWN = cols.Rows(
    "cut_off_table",
    *NAMES,
    "f1 f1_low f1_high kept",
    cols.signed("gain", "against the cutoff", "F1 less that of the cutoff for all."),
    "precision recall n beyond",
    more=(
        "gain_low gain_high",
        "tokens name",
    ),
)


def chunking(spec: Mapping[str, Any]) -> str:
    """Describe the chunking of a stack."""
    made = spec.get("chunker")
    if not isinstance(made, Mapping):
        return "as the collection has them"
    return " ".join(str(made[name]) for name in ("method", "size") if made.get(name) is not None)


@remembered
def _families(table: pl.DataFrame) -> pl.DataFrame:
    """Group stacks by their other settings: run_id, reranker, chunking, whether cut, and family."""
    rows = []
    for run, written in table.select("run_id", "spec").iter_rows():
        spec = json.loads(written)
        rest = canonical_json({name: value for name, value in spec.items() if name not in _APART})
        rows.append((run, str(spec.get("reranker") or _NONE), chunking(spec), bool(spec.get("cut")), rest))
    columns = ("run_id", "reranker", "chunking", "cut", "family")
    return pl.DataFrame(rows, schema=columns, orient="row")


def relatives(table: pl.DataFrame, run_id: str) -> pl.DataFrame:
    """Return stacks that differ from a run in reranker and chunking only: run_id, reranker and chunking."""
    families = _families(table)
    own = families.filter(pl.col("run_id") == run_id)["family"][0]
    alike = families.filter(pl.col("family") == own, ~pl.col("cut"))
    return alike.select("run_id", "reranker", "chunking").sort("chunking", "reranker")


def _reranked(view: View, run_id: str) -> str:
    """Return the run, or the best one with relatives if it has none and others do.

    Runs within the limits come first.
    """
    families = _families(view.table)
    several = families.filter(~pl.col("cut")).group_by("family").len().filter(pl.col("len") > 1)
    related = set(families.join(several, on="family", how="semi")["run_id"])
    rows = with_limits(view.table, view)
    down = [False, view.quality.higher_is_better]
    order = rows.sort(pl.col("beyond").is_not_null(), "quality", descending=down, nulls_last=True)["run_id"]
    return next((run for run in (run_id, *order) if run in related), run_id)


@cached("Cutting the rankings of every reranker…")
def grid(view: View, run_id: str, counts: str) -> pl.DataFrame:
    """Cut the rankings of a stack's relatives: name, reranker, chunking and the columns of `cuts.COLUMNS`."""
    names = dict(view.table.select("run_id", "name").iter_rows())
    own = dict.fromkeys(("name", "reranker", "chunking"), pl.String())
    parts = [pl.DataFrame(schema={**own, **cuts.COLUMNS})]
    for run, reranker, chunked in relatives(view.table, run_id).iter_rows():
        made = cuts.cuts(view.snapshot, view.scope, run, counts=counts, fixed=view.quality.k).rows
        told = {"name": names[run], "reranker": reranker, "chunking": chunked}
        parts.append(made.select(*(pl.lit(words).alias(name) for name, words in told.items()), pl.all()))
    return pl.concat(parts)


def printed() -> pl.DataFrame:
    """Read the thesis's tables: reranker, chunking, way, precision, recall, f1, items_ and docs_passed."""
    rows = pl.read_csv(PUBLISHED / "thesis_thresholds.csv", schema_overrides={"table": pl.String})
    wide = rows.pivot("metric", index=["reranker", "chunking", "threshold"], values="value")
    return wide.rename({"threshold": "way"}).select("reranker", "chunking", "way", *_MEASURES)


def answer(rows: pl.DataFrame) -> tuple[str, str]:
    """Say whether the method of the highest F1 beats the best fixed depth, among stacks within the limits.

    If none is within them, all count. Chance is unknown between two rerankers or chunkings.
    """
    within = rows.filter(pl.col("beyond").is_null())
    rows = rows if within.is_empty() else within
    several = rows["reranker"].n_unique() > 1
    best = rows.sort("f1", descending=True).row(0, named=True)
    fixed = rows.filter(~pl.col("dynamic")).sort("f1", descending=True).row(0, named=True)
    who = f"{'tuning' if best['way'] == cuts.TUNED else best['way']}{_after(best, several=several)}"
    f1, n = f"F1 {score(best['f1'])}{text.interval(best['f1_low'], best['f1_high'])}", text.sample(best["n"])
    if not best["dynamic"]:
        return f"{who} has the highest {f1} ({n}).", ""
    keeps = f"It keeps {best['kept']:.1f} passages."
    if any(best[name] != fixed[name] for name in ("reranker", "chunking")):
        depth = f"{fixed['way']}{_after(fixed, several=several)}"
        return f"{who} has {f1}, {depth} {score(fixed['f1'])} ({n}).", keeps
    return f"{who} {cuts.verdict(best)} {fixed['way']}: {f1} against {score(fixed['f1'])} ({n}).", keeps


def _after(cut: Mapping[str, Any], *, several: bool) -> str:
    """Name the reranker that ordered the cut ranking, or return "" if there are several."""
    if cut["reranker"] == _NONE:
        return " without reranking" * several
    return f" after {cut['reranker']}"


@section("cutoff table", "Which cutoff suits which reranker and chunking?", seldom)
def cut_off_table(view: View, ask: Ask) -> Blocks:
    """Yield every reranker, chunking and cutoff of a stack's family with its score and passages kept."""
    run_id = ask.stack(view.table, view.decision, "Stack", "cutof")
    paper = Fold(PAPER, [Table(printed(), cols.Rows("thesis_thresholds", *NAMES, *THESIS))])
    if run_id is None:
        yield Answer("No stack is chosen.")
        yield paper
        return
    asked, run_id = run_id, _reranked(view, run_id)
    rows = with_limits(grid(view, run_id, prompt_tokens.vocabulary(None, view.book)), view)
    if rows.is_empty():
        yield Answer("No ranking of this stack has scores that it is ordered by.")
        yield paper
        return
    other = "" if run_id == asked else OTHER.format(named(view.table, asked), named(view.table, run_id))
    said, more = answer(rows)
    yield Answer(said, f"{more} {other}".strip(), caveats={"how to read": ABOUT})
    yield Table(rows, SHOWN)
    yield paper
