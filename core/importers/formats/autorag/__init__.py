"""AutoRAG projects: every module that returns rankings becomes a run, every generator a run with answers.

Results contain no query ids: they join the questions (``data/qa.parquet``) by the order of their rows. A
reranker or filter chose from the list of the trial's best module before it, so that list is its pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.base import (
    LOOK_ROWS,
    SURE,
    Format,
    Import,
    LeftOut,
    Look,
    Options,
    counted,
    frames_of,
    merged,
)
from core.importers.formats.autorag.layout import Project, kind, project
from core.importers.formats.autorag.trials import makes_run, trials
from core.importers.judgements import golden_set
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.rows import again, identified, refuse
from core.importers.read.tabular import Table, first_rows, read_table
from core.importers.report import TAKEN, FileReport, ReportParts, file_report
from core.importers.runs import collection_frames, collection_of

_LISTS = (pl.List(pl.List(pl.String)), pl.List(pl.String))

_RANKING: ReportParts = {
    **dict.fromkeys(("retrieved_ids", "retrieve_scores", "retrieved_ids_*", "retrieve_scores_*"), TAKEN),
    "retrieved_contents*": "texts of the corpus",
    "retrieval_*": "measures of single questions: they follow from the rankings",
}
_ANSWERS: ReportParts = {
    "generated_tokens": "tokens of answers as lists",
    "generated_log_probs": "probabilities of tokens",
    "*": TAKEN,
}


class AutoRag(Format):
    """Projects, trials and data of AutoRAG."""

    name, title = "autorag", "AutoRAG project"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "judgements": "retrieval_gt, binary; alternatives of the same evidence are each relevant",
        "rankings": "every module that returns passages is a run; a reranker's or filter's input is its pool",
        "aggregates": "the measures of every summary, mean latency per stage",
        **dict.fromkeys(("usage", "signals"), ""),
        "answers": "texts of generators",
        "answer_scores": "measures of each answer; the grade is the one closest to correctness, or as mapped",
        "gold_answers": "generation_gt",
    }
    recognised = "summaries of modules, or tables with qid and retrieval_gt, or with doc_id and contents"
    units = "execution_time (mean seconds of a query) to milliseconds"
    traps = (
        "Results join the questions by the order of rows: other counts are refused.",
        "A passage that a list repeats counts at its first place; repeats are counted.",
        "Parameters are read as literals and never run; YAML with aliases is refused.",
        "Query expansion and prompt makers return no ranking; their best's time counts.",
    )
    names_collection = 2
    known = {
        "qa": dict.fromkeys(("qid", "query", "retrieval_gt", "generation_gt"), TAKEN),
        "corpus": {
            **dict.fromkeys(("doc_id", "contents", "path"), TAKEN),
            "metadata": "not stored",
        },
        "summary": {"average_prompt_token": "tokens of prompts before a generator saw them", "*": TAKEN},
    }

    def sniff(self, probe: Archive) -> float:
        return SURE if any(map(kind, probe.members)) else 0.0

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        """Return the modules of every trial, or else the first questions or passages."""
        contents = project([archive])
        modules = [
            {"trial": module.trial, "node": module.node, "module": module.name, "results": module.file,
             "best": str(module.best)}
            for trial in contents.trials
            for module in trial.modules
        ]  # fmt: skip
        data = contents.qa or contents.corpus
        rows = None if modules or data is None else first_rows(data, LOOK_ROWS)
        return Look(pl.DataFrame(modules[:LOOK_ROWS]) if rows is None else rows)

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        contents = project(archives)
        results = {
            module.results.name: module
            for trial in contents.trials
            for module in trial.modules
            if module.results is not None
        }
        for member in members_of(archives):
            if (module := results.get(member.name)) is not None:
                known = _ANSWERS if module.node == "generator" else _RANKING
                yield file_report(member, known if makes_run(module) else "it returns no ranking")
            elif (what := kind(member)) is not None:
                read = member.name in contents.used or what == "qa"
                yield file_report(member, self.known[what] if read else "no summary of a node's modules")
            elif member.name in contents.used:
                yield FileReport(member.name, "file", (member.relative,))
            else:
                yield file_report(member, "another file of the project, such as an index")

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        contents = project(archives)
        if not (contents.qa or contents.corpus or contents.trials):
            raise InputError("It holds no questions, passages or results of AutoRAG.", where=archives[0].name)
        parts = [Import(collections=collection_of(options, "imported: AutoRAG"))]
        questions = _questions(contents, parts, options)
        if contents.corpus:
            parts.append(_passages(contents.corpus, options))
        if contents.trials and questions is None:
            raise InputError(
                "There are results but no questions: they join by the order of rows.",
                where=contents.trials[0].modules[0].summary
                if contents.trials[0].modules
                else archives[0].name,
                do="Offer the whole project folder, with data/qa.parquet.",
            )
        if questions is not None:
            parts += trials(contents, questions, members_of(archives), options)
        parts.append(Import(left_out=_left_out(contents), notes=tuple(_notes(contents))))
        return merged(parts)


def _questions(contents: Project, parts: list[Import], options: Options) -> pl.Series | None:
    if contents.qa is None:
        return None
    table = read_table(contents.qa, "parquet")
    rows = identified(table.taking({"query_id": "qid", "text": "query"}), table.name, "query_id")
    refuse(again(rows, "query_id").drop("line"), "The question {query_id} stands twice.", table.name)
    parts.append(Import(frames=collection_frames(options, rows)))
    if "generation_gt" in table.rows.columns:
        parts.append(_right(table, rows, options))
    parts.append(_judgements(table, rows, options))
    return rows["query_id"]


def _right(table: Table, rows: pl.DataFrame, options: Options) -> Import:
    said = table.rows["generation_gt"]
    if said.dtype not in (pl.String, pl.List(pl.String)):
        raise InputError(f"`generation_gt` is {said.dtype}, not texts or lists of them.", where=table.name)
    answers = rows.select("query_id", said.alias("answer"), collection_id=pl.lit(options.collection_id))
    single = answers if said.dtype == pl.String else answers.explode("answer", empty_as_null=True)
    known = single.filter(pl.col("answer").fill_null("") != "").unique(maintain_order=True)
    return Import(frames=frames_of(gold_answers=known))


def _judgements(table: Table, rows: pl.DataFrame, options: Options) -> Import:
    relevant = table.rows["retrieval_gt"]
    if relevant.dtype not in _LISTS:
        raise InputError(f"`retrieval_gt` is {relevant.dtype}, not lists of passage ids.", where=table.name)
    listed = rows.select("query_id", "line", passage_id=relevant, grade=pl.lit("1"))
    groups = listed.explode("passage_id", empty_as_null=True)
    exploded = groups if relevant.dtype == _LISTS[1] else groups.explode("passage_id", empty_as_null=True)
    named = exploded.filter(pl.col("passage_id").fill_null("") != "")
    pairs = named.unique(["query_id", "passage_id"], maintain_order=True)
    if pairs.is_empty():
        return Import(notes=(f"{table.name}: no question has a relevant passage.",))
    imported = golden_set(pairs, table.name, "retrieval_gt", options, "AutoRAG retrieval_gt")
    notes = [f"{table.name}: only relevant passages are named; every other passage counts as unjudged."]
    if alternatives := exploded.height - groups.height:
        notes.append(f"{table.name}: {alternatives} alternatives of the same evidence are each relevant.")
    left = counted({"questions without a relevant passage": rows.height - pairs["query_id"].n_unique()})
    return replace(imported, notes=(*imported.notes, *notes), left_out=left)


def _passages(member: Member, options: Options) -> Import:
    table = read_table(member, "parquet")
    source = "path" if "path" in table.rows.columns else None
    chosen = {"passage_id": "doc_id", "text": "contents"} | ({"source": source} if source else {})
    rows = identified(table.taking(chosen), table.name, "passage_id")
    refuse(again(rows, "passage_id").drop("line"), "The passage {passage_id} stands twice.", table.name)
    return Import(frames=collection_frames(options, passages=rows))


def _left_out(contents: Project) -> tuple[LeftOut, ...]:
    modules = [module for trial in contents.trials for module in trial.modules]
    lost = [module for module in modules if module.results is None]
    other = [module for module in modules if module.results is not None and not makes_run(module)]
    nodes = ", ".join(sorted({module.node for module in other}))
    silent = (
        (other, f"modules that return no ranking ({nodes}); the time of the best is counted"),
        (lost, "modules whose results are not there"),
    )
    return tuple(LeftOut(len(some), why, f"{some[0].summary}:{some[0].line}") for some, why in silent if some)


def _notes(contents: Project) -> Iterator[str]:
    if contents.trials:
        yield "execution_time is the mean of a query: converted from seconds to milliseconds (mean)."
        yield "A stack's total is the sum of the means of its stages up to the list of passages."
    if contents.empty:
        yield f"Trials with a configuration only: {', '.join(contents.empty)}."
    if unfinished := [trial.name for trial in contents.trials if not trial.finished]:
        yield f"Trials without a summary of their own, so not finished: {', '.join(unfinished)}."
