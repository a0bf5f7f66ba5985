"""The decision record as plain data: everything a reader needs to follow a choice, or to dispute it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime

import polars as pl

from core import __version__
from core.analysis.status import status_rows
from core.analysis.workspace.choices import choices, unknown_measure
from core.analysis.workspace.figures.latencies import how_timed
from core.analysis.workspace.noise import Noise, noise_words, noisy_rows
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.sure import drawn, draws, joint
from core.analysis.workspace.view import View
from core.decide.rules import Decision
from core.decide.selection import Assessment
from core.decide.ties import Paired
from core.errors import NothingKnownError
from core.prices import PRICED_AS
from core.records import Origin
from core.report.summary import summary, terms
from core.report.words import question
from core.store import Snapshot
from core.views.confidence.hold import shares
from core.views.decision import words as decision_words
from core.views.decision.sections import all_handed
from core.views.headroom import limiting
from core.views.link import elsewhere
from core.views.words import moving
from core.views.words import verdict as standing
from core.views.words.advice import advice, first_step, found_again, objection, second_row
from core.views.words.bills import one_machine, rented_words
from core.views.words.choice import decided_by, kind_of_search, meaning
from core.views.words.facts import if_judged, record, soundness
from core.views.words.judging import check_first
from core.views.words.late import slow
from core.views.words.lead import nearest_rival
from core.views.words.trade import pass_mark
from core.views.words.users import hurts

FORMAT = "clq-explorer/decision-record"
VERSION = 1
"""Version of the JSON: increases when a field changes its meaning or is removed; not for new fields."""
_ABOUT_PRICE = (
    "provider",
    "price",
    "per",
    "currency",
    "valid_from",
    "looked_up",
    "confirmed",
    "source",
    "note",
)


@dataclass(frozen=True)
class Verdict:
    """A decision, and the figures behind it."""

    table: pl.DataFrame  # the stack table
    decision: Decision  # the selection from it
    chances: pl.DataFrame  # the confidence, row by row; see `core.views.confidence.hold.shares`
    sure: Assessment  # confidence in the decision, and the alternatives it gives up
    paired: Paired | None = None  # quality per query of the stacks, if known
    noise: Noise | None = None  # the judge noise included in the probabilities; None = none

    @property
    def sure_table(self) -> pl.DataFrame:
        """The stack table with the probabilities beside the numbers."""
        shares = self.chances.drop("reason")
        return self.table.join(shares, on="run_id", how="left", maintain_order="left")


def verdict(view: View) -> Verdict:
    """Decide for a workspace.

    Returns:
        The decision, its table and its confidence.

    Raises:
        UnknownNameError: If the measure is neither computed nor reported here.
        NothingKnownError: If no stack has a number on an axis that a limit or the rule needs.
    """
    table, quality = view.table, view.quality
    if quality.measure is None and table["quality"].is_null().all():
        raise unknown_measure(quality, choices(view.snapshot, view.scope).measures)
    if axis := decision_words.unknown(view.decision):
        raise NothingKnownError(
            f"No stack here has a known {axis.word}.", do=f"{axis.remedy[:1].upper()}{axis.remedy[1:]}."
        )
    chances = shares(table, joint(view), (view.constraints, view.rule), seed=view.seed)
    return Verdict(table, view.decision, chances, view.sure, view.paired, drawn(view, view.noise))


def decision_data(view: View, verdict: Verdict) -> dict[str, object]:
    """Return the decision itself, and its inputs: the output of `decide --format json`.

    Returns:
        The result of `facts.record`, with verdict, doubt (what speaks against shipping), no_clear_winner
        (whether the heading names the chosen stack and that of `trade`), check_grades (what to do about
        grades that nobody checked, or None), pass_mark (what shows that they fail), advice, objection
        (the advice, if it speaks against shipping and no offered stack says it), stay_or_switch
        (None if no stack is marked), collection, golden_set, prices, seed, resamples and revision.
    """
    decision = record(verdict.table, view, chances=verdict.chances)
    return {
        **decision,
        "verdict": standing.verdict(view),
        "doubt": standing.doubt(view) or None,
        "no_clear_winner": view.once(first_step).rather is not None,
        "check_grades": check_first(view) or None,
        "pass_mark": pass_mark(view) if check_first(view) else None,
        "advice": advice(view) or None,
        "objection": objection(view) or None,
        "stay_or_switch": moving.told(view),
        "collection": view.scope.collection_id,
        "golden_set": view.scope.golden_set_id,
        "prices": view.book.title,
        "seed": view.seed,
        "resamples": draws(view),
        "judge_noise": judge_noise(view, verdict),
        "revision": view.snapshot.revision,
    }


def judge_noise(view: View, verdict: Verdict) -> dict[str, object] | None:
    """Return the judge noise in the probabilities, with the chosen stack's quality under it, or None."""
    drawn, chosen = verdict.noise, verdict.decision.chosen
    if drawn is None:
        return None
    rows = noisy_rows(verdict.table, drawn)
    return {
        "golden_set": drawn.golden_set_id,
        "passages": drawn.passages,
        "chosen": None if chosen is None else rows.drop("run_id").row(chosen, named=True),
        "in_words": noise_words(verdict.table, verdict.decision, drawn, view.quality),
    }


def record_data(
    view: View, verdict: Verdict, *, link: str, made_at: datetime, command: str | None = None
) -> dict[str, object]:
    """Return the decision with its full context.

    Args:
        link: The URL that opens it in a dashboard; one only known to this machine is left out.
        command: The command line that decides the same; None if there is none.
    """
    row = verdict.decision.chosen
    chosen = None if row is None else verdict.table.row(row, named=True)
    late = None if chosen is None else slow(view, str(chosen["run_id"]))
    said = decision_words.answer(view)
    handing = all_handed(view, verdict.table, verdict.decision)
    second, at = view.once(first_step).rather, second_row(view)
    other = None if at is None else replace(verdict.decision, chosen=at)
    made: dict[str, object] = {
        "made_at": made_at.isoformat(timespec="seconds"),
        "made_by": {"name": "CLQ Explorer", "version": __version__},
        "link": elsewhere(link),
        "command": command,
        "question": question(view),
        "answer": {
            "title": decision_words.title(view),
            "sentence": said.sentence,
            "reason": said.reason,
            "warning": said.warning or None,
            "kind": kind_of_search(chosen) if chosen else "",
            "either": decision_words.level_words(view),
        },
        **decision_data(view, verdict),
        "definition": definition(view.quality),
        "meaning": meaning(view.quality),
        "remarks": list(view.compared.remarks),
        **_weighed(view, verdict, verdict.decision, ""),
        **({} if other is None else _weighed(view, verdict, other, "_second")),
        "pgs_if_judged": if_judged(view),
        "savings_in_words": rented_words(view) or None,
        "one_machine_queries": one_machine(view),
        "more_queries_in_words": None if view.sure.ahead else found_again(view) or None,
        "note_in_words": decision_words.note_words(view) or None,
        "rule_in_words": decided_by(verdict.decision) or None,
        "lead_in_words": " ".join(filter(None, decision_words.lead_words(view))) or None,
        "hurts_users": [hurt.data for hurt in view.once(hurts)],
        "slow": late,
        "slow_second": None if second is None else slow(view, second.run_id),
        "slow_in_words": decision_words.late_words(view) or None,
        "environment": how_timed(verdict.table, view.quality.k),
        "workspace": workspace(view.snapshot, view.scope),
        "ship": None if chosen is None else asdict(next(iter(handing.values()))),
        "ship_second": asdict([*handing.values()][1]) if len(handing) > 1 else None,
        "runs": _runs(view.snapshot, view.scope),
        "revision_made": revision_made(view.snapshot),
        "price_book": {
            "name": view.book.title,
            "digest": view.book.digest,
            "changes": list(view.book.changes),
        },
        **_prices(view, verdict),
        "stacks": status_rows(verdict.sure_table, verdict.decision, weak=view.weak).to_dicts(),
    }
    explained = [{"term": term, "means": means} for term, means in terms(made, view).items()]
    first = {"summary": summary(made, view), "terms": explained}
    return {"format": FORMAT, "version": VERSION, **first, **made}


def _weighed(view: View, verdict: Verdict, decision: Decision, end: str) -> dict[str, object]:
    """Return what limits a stack, how far its numbers can be trusted, and its components.

    Args:
        decision: With that stack as the chosen one.
        end: The end of the keys.
    """
    table, paired = verdict.table, verdict.paired
    row = None if decision.chosen is None else table.row(decision.chosen, named=True)
    if row is None:
        return {f"limiting{end}": None, f"soundness{end}": [], f"stack{end}": None}
    found = soundness(row, nearest_rival(table, decision, paired), view.quality, paired)
    return {
        f"limiting{end}": limiting(row, view.quality, table, decision.feasible.tolist(), paired),
        f"soundness{end}": [{"good": sign.good, "finding": sign.sentence} for sign in found],
        f"stack{end}": _stack(row),
    }


def definition(quality: Quality) -> str:
    """Describe a measure and its computation; one not computed here is as it was reported."""
    measure = quality.measure
    if measure is None:
        return f"{quality.name}, as it was reported."
    return f"{quality.name}. {measure.info.text} {measure.info.formula} ({measure.info.section})"


def workspace(snapshot: Snapshot, scope: Scope) -> dict[str, object]:
    """Return the collection and the golden set of a workspace: names, sizes, who judged."""
    collection = snapshot.collections().row(
        by_predicate=pl.col("collection_id") == scope.collection_id, named=True
    )
    shown = ("collection_id", "name", "source", "queries", "passages")
    golden = None
    if scope.golden_set_id is not None:
        golden_sets = snapshot.golden_sets(scope.collection_id)
        row = golden_sets.row(by_predicate=pl.col("golden_set_id") == scope.golden_set_id, named=True)
        kept = ("golden_set_id", "name", "judge", "mapping", "queries", "judgements", "spans")
        golden = {name: row[name] for name in kept}
    return {**{name: collection[name] for name in shown}, "golden_set": golden}


def revision_made(snapshot: Snapshot, number: int | None = None) -> dict[str, object] | None:
    """Return the origin of a revision: revision, at, action and note; None if there is no such one.

    Args:
        number: None = the one shown.
    """
    known = snapshot.revisions().sort("revision")
    last = (known if number is None else known.filter(revision=number)).tail(1)
    if last.is_empty():
        return None
    row = last.row(0, named=True)
    return {**row, "at": row["at"].isoformat(timespec="seconds")}


def _stack(row: dict[str, object]) -> dict[str, object]:
    """Return the components of the chosen stack and the origin of its run."""
    spec, environment = json.loads(str(row["spec"])), json.loads(str(row["environment"]))
    created = row["created_at"]
    return {
        "run_id": row["run_id"],
        "stack_id": row["stack_id"],
        "spec": spec,
        "origin": row["origin"],
        "pool": row["proc_pool"] or row["pool"],
        "environment": environment,
        "created_at": created.isoformat() if isinstance(created, datetime) else None,
    }


def _runs(snapshot: Snapshot, scope: Scope) -> dict[str, object]:
    """Return the number of compared runs, by origin, and which ones if they were chosen."""
    origins = runs_in(snapshot, scope)["origin"].to_list()
    return {
        "count": len(origins),
        "origins": {
            origin.value: origins.count(origin.value) for origin in Origin if origin.value in origins
        },
        "chosen": sorted(scope.run_ids) or None,
    }


def _prices(view: View, verdict: Verdict) -> dict[str, object]:
    """Return the price book's entries behind the costs, and usage without a price."""
    ids = verdict.table["run_id"].to_list()
    chosen = verdict.decision.chosen
    priced = pl.col("unit").replace(PRICED_AS).alias("unit")
    used = (
        view.snapshot.usage(ids)
        .select("run_id", "item", priced)
        .unique()
        .group_by("item", "unit")
        .agg(
            pl.col("run_id").n_unique().alias("runs"),
            pl.col("run_id").is_in([] if chosen is None else [ids[chosen]]).any().alias("chosen"),
        )
        .sort("item", "unit")
    )
    entries, unpriced = [], []
    for item, unit, runs, own in used.iter_rows():
        price = view.book.find(item, unit)
        if price is None:
            unpriced.append({"item": item, "unit": unit, "runs": runs, "of_chosen": own})
            continue
        about = {name: getattr(price, name) for name in _ABOUT_PRICE}
        days = {
            name: about[name].isoformat() if about[name] else None for name in ("valid_from", "looked_up")
        }
        entries.append({"item": item, "unit": unit, **about, **days, "runs": runs, "of_chosen": own})
    return {"price_entries": entries, "unpriced": unpriced}
