"""Results of rank_llm and pyserini: {query: {text, qid}, candidates: [{docid, score, doc}]}, a list or lines.

Candidates stand in the order in which they were ranked; that order counts, not their scores, which some
rerankers leave as they were. A history of calls ({query, invocations_history}) beside one file of results
brings the tokens of the reranker.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.errors import InputError
from core.importers.account import TAKEN, Parts
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged
from core.importers.costs import UNNAMED
from core.importers.read.jsons import Json, expect, kind_of_value, number, optional
from core.importers.read.objects import objects
from core.importers.read.outline import outline
from core.importers.read.piece import Piece, Tree
from core.importers.read.text import quoted
from core.importers.samples import SAMPLE, VALUE, Answered, assemble
from core.records import Basis

_TEXTS = ("contents", "content", "text", "segment", "passage", "body", "abstract")
_TOKENS = {"input_token_count": "input_tokens", "output_token_count": "output_tokens"}
_SCORE = pl.Schema({"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64()})
_USAGE = pl.Schema({"query_id": pl.String(), "unit": pl.String(), "amount": pl.Float64()})


class RankLlm(Format):
    """Reranked lists with their texts, and the tokens of the calls that made them."""

    name, title = "rank-llm", "rank_llm results (JSON, JSONL)"
    brings = ("queries", "passages", "rankings", "usage")
    takes = {  # noqa: RUF012
        "rankings": "the candidates in their order, with their scores",
        "usage": "input and output tokens of the reranker, from the history of calls",
    }
    recognised = "objects with query{text, qid} and candidates[{docid, score, doc}]"
    traps = ("The order of the candidates counts; scores that contradict it are kept as they are.",)
    names_collection = 1

    def sniff(self, probe: Tree) -> float:
        """Sure when every file of it has candidates or calls under a query."""
        return SURE if probe.pieces and all(map(_kind, probe.pieces)) else 0.0

    def parts(self, piece: Piece, options: Options) -> Parts | str:  # noqa: ARG002
        """Queries and candidates, or the tokens of calls."""
        if _kind(piece) == "calls":
            return dict.fromkeys(("query.qid", *(f"invocations_history.{key}" for key in _TOKENS)), TAKEN)
        known = ("query.qid", "query.text", "candidates.docid", "candidates.score", "candidates.doc.title")
        return dict.fromkeys((*known, *(f"candidates.doc.{name}" for name in _TEXTS)), TAKEN)

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read every file of results as a run."""
        pieces = [piece for tree in trees for piece in tree.pieces]
        results = [piece for piece in pieces if _kind(piece) != "calls"]
        calls = [piece for piece in pieces if piece not in results]
        if not results:
            raise InputError("There is a history of calls, but no results.", where=calls[0].name)
        usage = pl.concat([pl.DataFrame(schema=_USAGE), *map(_usage, calls)]) if len(results) == 1 else None
        left, notes = [], []
        if calls and usage is None:
            why = "histories of calls: which of several results they belong to is not known"
            left.append(LeftOut(len(calls), why, calls[0].name))
        elif calls:
            notes.append(
                "The histories of calls do not say which model was called; its tokens have no price."
            )
        parts = [_answered(piece, usage) for piece in results]
        made = assemble(parts, options, importer=self.name, source="rank_llm results")
        return merged((made, Import(left_out=tuple(left), notes=tuple(notes))))


def _kind(piece: Piece) -> str | None:
    seen = outline(piece)
    for root in ("[]", ""):
        keys = {path.removeprefix(f"{root}.").lstrip(".") for path in seen if path.startswith(root)}
        if "query.qid" in keys and "candidates" in keys:
            return "results"
        if "query.qid" in keys and "invocations_history" in keys:
            return "calls"
    return None


def _id(holder: object, key: str, where: str) -> str:
    """An id that is a text or an integer."""
    value = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError(f"{key!r} is {kind_of_value(value)}, not an id.", where=where)
    return str(value)


def _answered(piece: Piece, usage: pl.DataFrame | None) -> Answered:
    rows: list[Json] = []
    scores: list[tuple[str, int, float | None]] = []
    seen: set[str] = set()
    for where, entry in objects(piece):
        query = expect(entry, "query", dict, where)
        name = _id(query, "qid", where)
        if name in seen:
            raise InputError(f"The query {quoted(name)} stands twice.", where=where)
        seen.add(name)
        candidates = expect(entry, "candidates", list, where)
        rows.append(
            {
                "query_id": name,
                "text": optional(query, "text", str, where) or name,
                "contexts": [_text(each, where) for each in candidates],
                "context_ids": [_id(each, "docid", where) for each in candidates],
            }
        )
        scores += [(name, rank, number(each, "score", where)) for rank, each in enumerate(candidates, 1)]
    if not rows:
        raise InputError("The file holds no results.", where=piece.name)
    frames = {}
    if usage is not None and usage.height:
        mine = usage.filter(pl.col("query_id").is_in(list(seen)))
        frames["usage"] = mine.with_columns(
            stage=pl.lit("rerank"), item=pl.lit(UNNAMED), basis=pl.lit(Basis.IMPORTED.value)
        )
    given = pl.DataFrame(rows, schema=dict(SAMPLE), orient="row")
    table = pl.DataFrame(scores, schema=_SCORE, orient="row")
    return Answered(
        label="", name=piece.name, stem=piece.stem, digest=piece.digest, rows=given,
        values=pl.DataFrame(schema=VALUE), frames=frames, scores=table,
    )  # fmt: skip


def _text(candidate: object, where: str) -> str | None:
    """The text of a candidate with its title, if its document is there."""
    doc = candidate.get("doc") if isinstance(candidate, dict) else None
    if isinstance(doc, str):
        return doc or None
    if not isinstance(doc, dict):
        return None
    title = optional(doc, "title", str, where) if isinstance(doc.get("title"), str) else None
    text = next((doc[key] for key in _TEXTS if isinstance(doc.get(key), str)), None)
    return f"{title}\n{text}" if title and text else text or title


def _usage(piece: Piece) -> pl.DataFrame:
    """Tokens of all calls for a query."""
    rows: list[tuple[str, str, float]] = []
    for where, entry in objects(piece):
        name = _id(expect(entry, "query", dict, where), "qid", where)
        for call in expect(entry, "invocations_history", list, where):
            for key, unit in _TOKENS.items():
                amount = number(call, key, where)
                if amount is not None and amount < 0:
                    raise InputError(f"{key!r} is negative.", where=where)
                rows += [(name, unit, amount)] if amount is not None else []
    table = pl.DataFrame(rows, schema=_USAGE, orient="row")
    return table.group_by("query_id", "unit", maintain_order=True).agg(pl.col("amount").sum())
