"""What is read of the files of an AutoRAG project, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.importers.account import TAKEN, Account, Parts, account
from core.importers.formats.autorag.layout import Module, Project, kind
from core.importers.formats.autorag.trials import makes_run
from core.importers.read.piece import Piece

_QA: Parts = {
    **dict.fromkeys(("qid", "query", "retrieval_gt"), TAKEN),
    "generation_gt": "reference answers: there is no place for them",
}
_CORPUS: Parts = {
    **dict.fromkeys(("doc_id", "contents", "path"), TAKEN), "metadata": "there is no place for it",
}  # fmt: skip
_SUMMARY: Parts = {"average_prompt_token": "tokens of prompts before a generator saw them", "*": TAKEN}
_TABLES: Mapping[str, Parts] = {"qa": _QA, "corpus": _CORPUS, "summary": _SUMMARY}
_RANKING: Parts = {
    **dict.fromkeys(("retrieved_ids", "retrieve_scores", "retrieved_ids_*", "retrieve_scores_*"), TAKEN),
    "retrieved_contents*": "texts of the corpus",
    "retrieval_*": "measures of single questions: they follow from the rankings",
}
_ANSWERS: Parts = {
    "generated_tokens": "tokens of answers as lists",
    "generated_log_probs": "probabilities of tokens",
    "*": TAKEN,
}


def accounts(found: Project, pieces: Sequence[Piece]) -> Iterator[Account]:
    """The accounts of all files of a project."""
    results = {
        module.results.name: module
        for trial in found.trials
        for module in trial.modules
        if module.results is not None
    }
    for piece in pieces:
        if (module := results.get(piece.name)) is not None:
            yield account(piece, _of_results(module))
        elif (what := kind(piece)) is not None:
            read = piece.name in found.used or what == "qa"
            yield account(piece, _TABLES[what] if read else "no summary of a node's modules")
        elif piece.name in found.used:
            yield Account(piece.name, "file", (piece.relative,))
        else:
            yield account(piece, "another file of the project, such as an index")


def _of_results(module: Module) -> Parts | str:
    if not makes_run(module):
        return "it returns no ranking"
    return _ANSWERS if module.node == "generator" else _RANKING
