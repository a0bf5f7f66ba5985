"""Judging by hand: what can be drawn, the cards, and how the grades get into the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from statistics import median

import polars as pl

from core.analysis.between import ranked_in
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.view import View
from core.answers import BY_PEOPLE, KEY
from core.errors import InputError
from core.golden.adding import name_for
from core.golden.book import FILE, PAIR, Book, Item, Queue, QueueMode
from core.golden.by_hand import (
    CORRECTNESS,
    OF_FIVE,
    RUBRIC,
    SCALE,
    SCORER,
    Sampling,
    arranged,
    draw,
    fives,
    golden_set_of_judge,
    keys,
    named,
    refuse_taken,
    scores,
    set_of,
    settled,
)
from core.golden.facts import by_query, together
from core.importers.runs import slug
from core.metrics.access import ALLOWED, UNFILTERED
from core.records import Batch, GoldenSet
from core.store import Snapshot, Store
from core.tables import TABLES
from core.views import text
from core.views.golden.adding import grades_in, grown, judged_in, landed_chunks, parts_of, whole_of
from core.views.golden.judges import write_new
from core.views.golden.soundness import disagreements, others_of
from core.views.words.advice import second_row
from core.views.words.judging import check_first

Opinion = tuple[str, int, str]  # One judge's opinion of a passage: golden set, grade, note
NO_TEXTS = "No text is stored for these passages."
EMPTY, GONE = "(The answer is empty.)", "(The answer is no longer stored.)"
_BRING_TEXTS = "Import the texts of the questions and the passages (a BEIR corpus, an export)."
TWO_JUDGES = (
    "It takes two golden sets of this workspace, one per judge.",
    "Import another one's judgements under another name, or a table with a column “judge”.",
)
BY_HAND = (
    "Judge passages yourself, blind to stacks, ranks and other grades.",
    "Each judge's grades become a golden set of their own; grades of answers become scores.",
)
HEADS: Mapping[QueueMode, str] = {
    "grade": "How well does the passage answer the question?",
    "order": "Which of the five passages answers best, which next?",
    "settle": "Two judges disagree: which grade is right?",
    "answers": "How correct is the answer?",
}
SHORT = {5: "clear", 4: "substantial", 3: "partial", 2: "tangential", 1: "not relevant"}
"""Meaning of each grade, on its button."""
KEYS = "Keys: 1 to 5 grade, S skip, U undo, N note. Every key is kept at once; close the page when you like."
ANSWERS = (
    f"Drawn at random, blind to stack, reader, k and other scores; written as scorer {SCORER}, scale {SCALE}."
)
WRITE_ANSWERS = "Undo first what is wrong: a score that is written stays."
FACTS = "Facts in this passage: choose or type one, Enter adds it"
ABOUT_FACTS = "A fact is vital unless it ends in (okay). It counts with the grade. Esc: back to the keys."
KEYS_OF_ORDER = "Drag the titles, or: 1 to 5 choose, Up and Down move, Enter next, S skip, U undo."
UNTAKEN = "Passages whose grades could change the choice: who judges them?"
UNTAKEN_BETWEEN = "Passages that decide between two stacks: who judges them?"
NO_VALUE = "No unjudged passage could change which stack is best."
SHEET = "For people without the dashboard: fill in the grades, then bring it to Add results."
ALONE = "On their own"
OWN_NAME = "Your grades are kept under it, apart from those of others: one person, one name."


@dataclass(frozen=True, slots=True)
class Card:
    """One passage as shown to the judge, without its origin."""

    question: str
    title: str  # "" if there is none
    text: str
    right: tuple[str, ...] = ()  # correct answers, if an answer is graded
    asker: str = ""  # the filter that says what the asker may see, as JSON; "" = everything


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """Progress of a queue."""

    done: int  # cards judged or skipped
    skipped: int  # of these, the skipped ones
    total: int
    each_s: float | None  # median of the seconds per card; None if unknown

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest will take at this pace."""
        return None if self.each_s is None else self.each_s * (self.total - self.done)


def book_path(store: Store) -> Path:
    """Return the path of a store's book of judgements."""
    return store.path.parent / FILE


def pool(
    snapshot: Snapshot, scope: Scope, base: str | None, k: int, within: str | None = None
) -> pl.DataFrame:
    """Return everything that may be drawn: passages that a golden set judges, and the stacks' Top-K.

    Args:
        within: The collection of the passages: the workspace's, or one with chunks of its documents.
    """
    collection = scope.collection_id if within is None else within
    own = None if base is None else judged_in(snapshot, base, collection)
    judged = pl.DataFrame(schema=TABLES["judgements"]) if own is None else snapshot.judgements(own)
    others = others_of(snapshot, collection, own, judged)
    apart = disagreements(judged, others).select(PAIR).unique()
    rows = (
        _shown(snapshot, scope, k, collection)
        .join(judged.select(*PAIR, "grade"), on=PAIR, how="full", coalesce=True)
        .join(apart.with_columns(disputed=pl.lit(value=True)), on=PAIR, how="left")
        .with_columns(pl.col("stacks").fill_null(0), pl.col("disputed").fill_null(value=False))
    )
    texts = snapshot.passages(collection, rows["passage_id"].unique().to_list())
    questions = snapshot.queries(scope.collection_id).filter(pl.col("text") != "")
    rows = rows.join(texts.filter(pl.col("text") != ""), on="passage_id", how="semi")
    rows = rows.join(questions, on="query_id", how="semi")
    access = snapshot.access(collection)
    if access is not None:  # a grade of what the asker may not see would be set aside
        states = pl.Series(access.states(rows["query_id"], rows["passage_id"]))
        rows = rows.filter(states.is_in([ALLOWED, UNFILTERED]))
    if rows.is_empty():
        raise InputError(NO_TEXTS, do=_BRING_TEXTS)
    return rows.sort(PAIR)


def _shown(snapshot: Snapshot, scope: Scope, k: int, collection_id: str) -> pl.DataFrame:
    """Return query_id, passage_id and the number of the workspace's stacks that show it in their Top-K."""
    own = [run for run, of in snapshot.searched(_ranked(snapshot, scope)).items() if of == collection_id]
    rows = snapshot.rankings(own, stage="final") if own else pl.DataFrame(schema=TABLES["rankings"])
    return rows.filter(pl.col("rank") <= k).group_by(PAIR).agg(stacks=pl.col("run_id").n_unique())


def _ranked(snapshot: Snapshot, scope: Scope) -> list[str]:
    return runs_in(snapshot, scope).filter("has_rankings")["run_id"].to_list()


def queues_of(book: Book, snapshot: Snapshot, collection_id: str) -> list[Queue]:
    """Return all queues of a collection's passages, including chunks of its documents, newest first."""
    wanted = {collection_id, *parts_of(snapshot, collection_id)}
    return [queue for queue in book.queues() if queue.collection_id in wanted]


def cards(snapshot: Snapshot, collection_id: str, items: Sequence[Item]) -> list[Card]:
    """Return the cards of a queue in order; a text no longer stored is ""."""
    queries = snapshot.queries(whole_of(snapshot, collection_id))
    questions = dict(queries.select("query_id", "text").iter_rows())
    passages = snapshot.passages(collection_id, sorted({item.passage_id for item in items}))
    texts = {
        name: (title or "", text)
        for name, title, text in passages.select("passage_id", "title", "text").iter_rows()
    }
    asker = askers(snapshot, collection_id)
    return [
        Card(
            questions.get(item.query_id, ""),
            *texts.get(item.passage_id, ("", "")),
            asker=asker.get(item.query_id, ""),
        )
        for item in items
    ]


def askers(snapshot: Snapshot, collection_id: str) -> dict[str, str]:
    """Return the filters that say what askers may see, by question, as JSON."""
    access = snapshot.access(collection_id)
    return {} if access is None else {query: asked.text for query, asked in access.filters.items()}


def answering(snapshot: Snapshot, scope: Scope) -> dict[str, str]:
    """Return the runs of a workspace that have answers: name → id."""
    having = snapshot.sizes("answers")["id"].to_list()
    return dict(runs_in(snapshot, scope).filter(pl.col("run_id").is_in(having))["name", "run_id"].iter_rows())


def answer_cards(snapshot: Snapshot, collection_id: str, items: Sequence[Item]) -> list[Card]:
    """Return the cards of a queue of answers, in order."""
    questions = dict(snapshot.queries(collection_id).select("query_id", "text").iter_rows())
    golds = snapshot.gold_answers(collection_id).group_by("query_id", maintain_order=True).agg("answer")
    asker = askers(snapshot, collection_id)
    right = {query: tuple(answers) for query, answers in golds.select("query_id", "answer").iter_rows()}
    wanted = keys(items)
    answers = snapshot.answers(_there(snapshot, collection_id, wanted)).select(*KEY, "text")
    texts = wanted.join(answers, on=KEY, how="left", nulls_equal=True, maintain_order="left")["text"]
    shown = [GONE if text is None else text or EMPTY for text in texts]
    return [
        Card(
            questions.get(item.query_id, ""),
            "",
            text,
            right.get(item.query_id, ()),
            asker.get(item.query_id, ""),
        )
        for item, text in zip(items, shown, strict=True)
    ]


def _there(snapshot: Snapshot, collection_id: str, rows: pl.DataFrame) -> list[str]:
    """Return the runs of some rows that are still stored."""
    return sorted({*rows["run_id"]} & {*snapshot.runs(collection_id)["run_id"]})


def opinions(snapshot: Snapshot, queue: Queue) -> dict[tuple[str, str], list[Opinion]]:
    """Return two judges' grades of the passages to settle, by query and passage."""
    said: dict[tuple[str, str], list[Opinion]] = {}
    for name in (queue.base, queue.other):
        notes = snapshot.gradings(name).drop_nulls("note").group_by(PAIR).agg(pl.col("note").last())
        rows = snapshot.judgements(name).join(notes, on=PAIR, how="left").select(*PAIR, "grade", "note")
        for query, passage, grade, note in rows.iter_rows():
            said.setdefault((query, passage), []).append((name, grade, note or ""))
    return said


def leading(view: View) -> tuple[str, ...]:
    """Return the run_ids of the two stacks whose grades are to be checked first; none if nothing is."""
    rival = second_row(view) if second_row(view) is not None else view.decision.runner_up
    rows = view.decision.chosen, rival
    if not check_first(view) or None in rows:
        return ()
    return tuple(view.table["run_id"].gather([row for row in rows if row is not None]))


def begin(
    book: Book,
    snapshot: Snapshot,
    scope: Scope,
    *,
    judge: str,
    base: str | None,
    sampling: Sampling,
    n: int,
    k: int,
    mode: QueueMode = "grade",
    worth: pl.DataFrame | None = None,
) -> Queue:
    """Draw a queue for a judge and record it; one by value comes from `worth`, the most valuable first.

    Raises:
        InputError: If the name is missing, misspelt or taken, or there is nothing to draw.
    """
    judge = _named(book, snapshot, scope.collection_id, judge)
    seed = token_hex(4)
    within = ranked_in(snapshot, _ranked(snapshot, scope), scope.collection_id)
    rows = pool(snapshot, scope, base, k, within)
    if mode == "order":  # refined grades if a golden set has them, otherwise the judged passages
        said = rows.drop_nulls("grade")
        refined = pl.DataFrame() if base is None else snapshot.orders(base)
        pairs = fives(said if refined.is_empty() else said.join(refined, on=PAIR, how="semi"), n, seed)
    else:
        known = book.said(within, judge).select(PAIR)
        fresh = rows.join(known, on=PAIR, how="anti")
        if worth is not None:
            order = worth.select(*PAIR, value=-pl.int_range(pl.len()))
            fresh = fresh.join(order, on=PAIR)
        if fresh.is_empty():
            raise InputError(f"{judge} has judged all of it.", do="Choose another golden set to draw from.")
        pairs = draw(fresh, sampling, n, seed)
    return _start(book, within, judge, pairs, mode=mode, base=base or "", sampling=sampling, seed=seed)


def begin_answers(
    book: Book, snapshot: Snapshot, collection_id: str, runs: Sequence[str], *, judge: str, n: int
) -> Queue:
    """Draw a judge's queue of answers of some runs at random, from those not graded by them, and record it.

    Raises:
        InputError: If the name is missing, misspelt or taken, or there is nothing to draw.
    """
    judge = _named(book, snapshot, collection_id, judge)
    own = snapshot.answer_scores(runs).filter(scorer=SCORER, judge=judge)
    if own.filter(pl.col("source").ne_missing(BY_PEOPLE)).height:
        raise InputError(f"There are imported or computed scores of {judge!r}.", do="Take another name.")
    questions = snapshot.queries(collection_id).filter(pl.col("text") != "")
    rows = named(snapshot.answers(runs).filter(pl.col("text").is_not_null()))
    rows = rows.join(questions, on="query_id", how="semi").join(named(own), on=PAIR, how="anti")
    rows = rows.join(book.said(collection_id, judge, "answers"), on=PAIR, how="anti")
    if rows.is_empty():
        raise InputError("No answer with its text and question is left to grade.", do="Choose other runs.")
    seed = token_hex(4)
    pairs = draw(rows.select(*PAIR, grade=pl.lit(None, pl.Int8)), "at random", n, seed)
    return _start(book, collection_id, judge, pairs, mode="answers", sampling="at random", seed=seed)


def begin_settling(book: Book, snapshot: Snapshot, first: str, second: str, *, judge: str) -> Queue:
    """Record a queue of the disagreements between two golden sets of a collection."""
    collection = snapshot.golden_sets().filter(golden_set_id=first)["collection_id"][0]
    judge = _named(book, snapshot, collection, judge)
    rows = disagreements(snapshot.within(first), snapshot.within(second))
    if rows.is_empty():
        raise InputError(f"{first} and {second} disagree on nothing.", do="Choose two others.")
    seed = token_hex(4)
    pairs = arranged(rows, seed)
    return _start(book, collection, judge, pairs, mode="settle", base=first, other=second, seed=seed)


def propose(
    book: Book,
    collection_id: str,
    rows: pl.DataFrame,
    base: str = "",
    *,
    sampling: str = "by value",
    seed: str = "",
) -> Queue:
    """Record a queue, not yet taken, of passages (query_id, passage_id) chosen elsewhere."""
    pairs = list(rows.select(PAIR).unique(maintain_order=True).iter_rows())
    return _start(book, collection_id, "", pairs, base=base, sampling=sampling, seed=seed)


def take(book: Book, snapshot: Snapshot, queue: Queue, judge: str) -> Queue:
    """Assign a queue that nobody has taken to a judge.

    Raises:
        InputError: If the name cannot be used, or somebody else has taken it.
    """
    judge = _named(book, snapshot, whole_of(snapshot, queue.collection_id), judge)
    held = book.take(queue.queue_id, judge)
    if held.judge != judge:
        raise InputError(f"{held.judge} has taken this queue.", do="Start one of your own.")
    return held


def _start(book: Book, collection: str, judge: str, pairs: list[tuple[str, str]], **about: str) -> Queue:
    queue = Queue(
        queue_id=f"{slug(judge)[:40] if judge else 'next'}-{token_hex(3)}",
        collection_id=collection,
        judge=judge,
        **about,  # type: ignore[arg-type]
    )
    book.start(queue, pairs)
    return queue


def _named(book: Book, snapshot: Snapshot, collection: str, judge: str) -> str:
    """Return the judge's name, or refuse it if it is empty, misspelt or taken."""
    judge = " ".join(judge.split())
    if not judge:
        raise InputError("Who judges?", do="Type your name: your grades are kept under it.")
    same = {queue.judge for queue in book.queues() if queue.judge.casefold() == judge.casefold()}
    if same and judge not in same:
        raise InputError(f"{judge!r} is known as {same.pop()!r}.", do="Spell it so, or take another name.")
    refuse_taken(snapshot.golden_sets(collection), set_of(collection, judge), judge)
    return judge


def progress(items: Sequence[Item], mode: QueueMode) -> QueueProgress:
    """Return the progress of a queue; in ordering mode five passages are one card."""
    size = OF_FIVE if mode == "order" else 1
    spent = [item.seconds * size for item in items if item.seconds is not None]
    done = sum(item.at is not None for item in items)
    skipped = sum(item.skipped for item in items)
    return QueueProgress(done // size, skipped // size, len(items) // size, median(spent) if spent else None)


def written_by(snapshot: Snapshot, queue: Queue, onto: str = "") -> str:
    """Return the golden set made from a queue's grades, or "" until it is in the store.

    Args:
        onto: The golden set that they are added to, or "" if they are kept separately.
    """
    own, known = set_of(whole_of(snapshot, queue.collection_id), queue.judge), snapshot.golden_sets()
    name = name_for(known, onto, own, queue.judge)[0] if onto else own
    return name if name in known["golden_set_id"] else ""


def store_judged(store: Store, book: Book, queue: Queue, into: str = "", onto: str = "") -> GoldenSet:
    """Write a judge's golden set, or two judges' settled one, in one transaction.

    Args:
        into: Name of the golden set, if disagreements were settled.
        onto: A golden set to add the judge's grades to; the combined set is then written as well.

    Returns:
        The requested golden set: the combined one, if there is one.

    Raises:
        InputError: If there is nothing to write, or the name belongs to another golden set.
    """
    snapshot = store.read()
    if queue.mode == "settle":
        first, second = (snapshot.judgements(name) for name in (queue.base, queue.other))
        return write_new(store, "judge", settled(queue, book.items(queue.queue_id), first, second, into))
    collection = whole_of(snapshot, queue.collection_id)
    known, name = snapshot.golden_sets(), set_of(collection, queue.judge)
    refuse_taken(known, name, queue.judge)
    if collection != queue.collection_id:
        batch = landed_chunks(snapshot, book, queue.judge, collection)
    else:
        tables = ("judgements", "gradings", "nuggets")
        before = [pl.DataFrame(schema=TABLES[table]) for table in tables]
        if name in set(known["golden_set_id"]):
            before = [snapshot.judgements(name), snapshot.gradings(name), snapshot.nuggets(name)]
        batch = golden_set_of_judge(book, queue, *before)
    batches = [batch, *([_added(snapshot, onto, batch)] if onto else [])]
    golden = batches[-1].golden_sets[0]
    with store.write("judge", f"{golden.golden_set_id}: {golden.notes}"[:500]) as writer:
        for each in batches:
            writer.add(each, replacing=[golden_set.golden_set_id for golden_set in each.golden_sets])
    return golden


def _added(snapshot: Snapshot, onto: str, batch: Batch) -> Batch:
    """Return the golden set combined from a known one and manual grades, with the facts of both."""
    both = grown(snapshot, onto, grades_in(batch))
    name = both.golden_sets[0].golden_set_id
    by_hand = [frame.lazy().collect() for table, frame in batch.frames.items() if table == "nuggets"]
    facts = together([snapshot.nuggets(onto), *by_hand], name)
    return replace(both, frames={**both.frames, "nuggets": facts}) if facts.height else both


def known_facts(snapshot: Snapshot, queue: Queue) -> dict[str, list[str]] | None:
    """Return the stored facts of the questions, or None if a queue doesn't ask for facts."""
    if queue.mode != "grade" or whole_of(snapshot, queue.collection_id) != queue.collection_id:
        return None
    names = (queue.base, set_of(queue.collection_id, queue.judge))
    stored = [snapshot.nuggets(name) for name in names if name in snapshot.golden_sets()["golden_set_id"]]
    return by_query(pl.concat(stored)) if stored else {}


def facts_of(book: Book, queue: Queue, item: Item, stored: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return all known facts of a card's question, and the facts that the card's passage contains."""
    said = book.facts(queue.collection_id, queue.judge)
    own = [line for (query, _), lines in said.items() if query == item.query_id for line in lines]
    return list(dict.fromkeys((*stored, *own))), said.get((item.query_id, item.passage_id), [])


def store_answers(store: Store, book: Book, queue: Queue) -> int:
    """Write a judge's scores of a queue's answers in one transaction; existing scores are kept.

    Returns:
        The number of new scores.

    Raises:
        InputError: If there are no scores.
    """
    snapshot, items = store.read(), book.items(queue.queue_id)
    runs = _there(snapshot, queue.collection_id, keys(items))
    new = scores(queue, items, snapshot.answer_scores(runs)).filter(pl.col("run_id").is_in(runs))
    if new.is_empty():
        raise InputError("No grade is new; scores that are written stay.", do="Grade an answer first.")
    with store.write("judge", f"{new.height} answers graded by {queue.judge}") as writer:
        writer.add(Batch(frames={"answer_scores": new}))
    return new.height


def another(queue: Queue, name: str) -> str:
    """Say that a queue belongs to a judge other than the visitor."""
    return f"This queue is {queue.judge}'s, and you judged as {name}: grades of two people never mix."


def far(progress: QueueProgress) -> str:
    """State the progress of a queue, and how long the rest will take."""
    said = f"{min(progress.done + 1, progress.total)} of {progress.total}"
    if progress.left_s is None or progress.each_s is None:
        return said
    minutes = progress.left_s / 60
    left = "under a minute" if minutes < 1 else f"about {text.count(round(minutes), 'minute')}"
    return f"{said} · {left} left · {_pace(progress.each_s)} each"


def _pace(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def judged_by_hand(progress: QueueProgress) -> str:
    """State the result of a finished queue."""
    pace = "" if progress.each_s is None else f", {_pace(progress.each_s)} each (median)"
    skipped = f", {progress.skipped} skipped" if progress.skipped else ""
    return f"All {progress.total} done{skipped}{pace}."


def rubric(mode: QueueMode) -> list[tuple[int, str, str]]:
    """Return every grade from 1, its name and its meaning."""
    if mode == "answers":
        parts = ((grade, meaning.partition(": ")) for grade, meaning in sorted(CORRECTNESS.items()))
        return [(grade, word, rest) for grade, (word, _, rest) in parts]
    short = ((grade, SHORT[grade], meaning) for grade, meaning in sorted(RUBRIC.items()))
    return [(grade, word, meaning.removeprefix(word).lstrip(": ")) for grade, word, meaning in short]


def added_to(golden_set_id: str) -> str:
    """Return the label of the choice that adds grades to a golden set."""
    return f"Add my grades to {golden_set_id}"


def scored(judge: str, scores: int) -> str:
    """Say that a judge's answer scores are in the store."""
    return f"Written: {text.count(scores, 'score')} of {judge} ({SCORER}, scale {SCALE}). See Readers."


def written(golden: GoldenSet) -> str:
    """Say that a judge's golden set is in the store."""
    return f"Golden set {golden.golden_set_id} is written. {golden.notes}"
