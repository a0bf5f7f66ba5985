"""What of every file of a rag-gs run folder is taken, and why the rest is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from core.importers.account import TAKEN, Account, account
from core.importers.formats.rag_gs.folder import Folder

_COPY = "it stands in another file of the run too"
_REWRITE = "the text that was searched has no place"
_SEARCHED = {
    "qid": TAKEN, "doc_id": TAKEN, "text": TAKEN, "metadata": TAKEN, "question": TAKEN,
    "query_rewrite": _REWRITE, "score_es": "the cosine is taken",
    "vector_field": _COPY, "similarity": _COPY, "embed_dim": _COPY,
    "retrieval": _COPY, "generated_from": _REWRITE,
    "bm25_query": _REWRITE,
}  # fmt: skip
_GRADED = {
    "qid": TAKEN, "doc_id": TAKEN, "grade_1_5": TAKEN, "model": TAKEN, "temperature": _COPY,
    "top_p": _COPY, "ts": "times of judgements have no place",
    **dict.fromkeys(
        ("source", "rank_dense", "rank_sparse", "score_cos", "score_es", "score_bm25", "rrf_score",
         "rank_rrf"), _COPY,
    ),
}  # fmt: skip
_PRUNED = {
    **_GRADED, "doc_id": TAKEN, "grade_1_5": _COPY, "model": _COPY,
    "text": _COPY, "metadata": _COPY, "question": _COPY, "cut_stage": _COPY, "cut_size": _COPY,
    "cut_ts": _COPY,
}  # fmt: skip
PARTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "questions": {
            "items.qid": TAKEN, "items.text": TAKEN, "items.text_rewrite": TAKEN, "run_id": _COPY,
            "pack": _COPY, "selected_qids": _COPY, "count": _COPY,
        },
        "rewrites": {
            "text": TAKEN, "text_rewrite": TAKEN, "model": TAKEN, "output_dimension": TAKEN, "qid": TAKEN,
            "input_type": _COPY, "truncation": _COPY, "bm25_query": _REWRITE,
            "embedding": "there is no place for vectors of questions",
        },
        "dense": {**_SEARCHED, "rank_dense": TAKEN, "score_cos": TAKEN},
        "sparse": {**_SEARCHED, "rank_sparse": TAKEN, "score_bm25": TAKEN},
        "merge": {
            **_SEARCHED, "rank_rrf": TAKEN, "rrf_score": TAKEN,
            **dict.fromkeys(("source", "rank_dense", "rank_sparse", "score_cos", "score_bm25"), _COPY),
        },
        "scores": _GRADED,
        "pruned": _PRUNED,
        "ranked": {
            **_PRUNED, "final_rank": TAKEN, "final_score": TAKEN, "exposures": TAKEN, "info": TAKEN,
        },
    }
)  # fmt: skip
"""Kind of a file → what of it is taken."""


def accounts(found: Folder) -> Iterator[Account]:
    """What every file of a folder has, part by part."""
    for stage in found.stages:
        yield account(stage.piece, PARTS[stage.kind])
    for piece in found.questions:
        yield account(piece, PARTS["questions"])
    for piece in found.kept:
        yield account(piece, {"*": TAKEN})
    for piece in found.marks:
        yield Account(piece.name, "file", (piece.relative,))
    left = (
        ([stage.piece for stage in found.shorter], "another list of the question is as deep as was asked"),
        (found.later, "of every stage the first manifest is kept"),
        (found.other, "it is no file of a stage"),
    )
    for pieces, why in left:
        yield from (account(piece, why) for piece in pieces)
