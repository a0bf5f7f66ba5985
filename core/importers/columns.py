"""The roles that columns of foreign tables have, found by the names that they go by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from core.errors import InputError, UnknownNameError
from core.importers.naming import normal
from core.importers.read.text import shown


@dataclass(frozen=True, slots=True)
class Role:
    """One meaning that a column can have: its name, what people read, and the names it goes by."""

    name: str
    title: str
    aliases: frozenset[str]


def _role(name: str, title: str, *aliases: str) -> Role:
    return Role(name, title, frozenset((name, *aliases)))


ROLES: Mapping[str, Role] = MappingProxyType(
    {
        role.name: role
        for role in (
            _role("query_id", "Query id", "qid", "q_id", "query", "queryid", "topic", "topic_id",
                  "question_id"),
            _role(
                "passage_id", "Passage id", "did", "d_id", "doc_id", "docid", "doc", "docno", "document_id",
                "passage", "pid", "corpus_id", "chunk_id",
            ),
            _role("rank", "Rank", "position"),
            _role("score", "Score", "sim", "similarity"),
            _role("grade", "Grade of a passage (makes it a table of judgements) or of an answer", "rel",
                  "relevance", "judgement", "judgment", "gain"),
            _role("run", "Name of the stack or run", "run_id", "tag", "system", "stack", "stack_name",
                  "label", "name", "config", "configuration", "pipeline", "method", "approach",
                  "variant", "setup"),
            _role("stage", "Stage (pool or final)", "list"),
            _role("repeat", "Repeat of a timing", "repetition", "trial"),
            _role("judge", "Judge", "judged_by", "judge_name", "judge_id", "annotator", "annotator_id",
                  "assessor", "rater", "grader", "graded_by"),
            _role("answer", "Answer (makes it a table of answers)", "response", "answer_text",
                  "generated_answer", "generated_text", "generation"),
            _role("k", "Passages that an answer was written from", "depth", "top_k", "cutoff"),
            _role("scale", "Scale of an answer's grade, such as 0-1", "grade_scale"),
            _role("n", "Number of queries", "n_queries", "num_q", "num_queries", "queries", "questions"),
        )
    }
)  # fmt: skip
WHOLE_AXES = frozenset({"dim", "candidates"})
AXES = frozenset({"mode", "sparse", "embedder", "index", "reranker"}) | WHOLE_AXES


def mapped(
    columns: Sequence[str], given: Mapping[str, str], roles: Mapping[str, object], name: str
) -> dict[str, str]:
    """Role → column as the user mapped them."""
    for role, column in given.items():
        if role not in roles:
            raise UnknownNameError("role of a column", role, roles, where=name)
        if column not in columns:
            raise no_column(column, columns, name)
    return dict(given)


def roles_by(
    columns: Sequence[str], given: Mapping[str, str], roles: Mapping[str, Sequence[str]], name: str
) -> dict[str, str]:
    """Role → column: as the user mapped them, the others by the names that a role goes by.

    Args:
        columns: Names as they stand in the file.
        given: What the user said.
        roles: The roles that there are, each with its names, the likeliest first.
        name: File, for messages.

    Returns:
        The roles that a column has.

    Raises:
        InputError: A mapped column does not exist.
        UnknownNameError: A mapped role does not exist.
    """
    found = mapped(columns, given, roles, name)
    for role, aliases in roles.items():
        known = {normal(column): column for column in reversed(columns) if column not in found.values()}
        match = next((known[alias] for alias in map(normal, aliases) if alias in known), None)
        if role not in found and match:
            found[role] = match
    return found


def no_column(wanted: str, columns: Sequence[str], name: str, do: str = "") -> InputError:
    """The error for a column that is not there; it lists what is."""
    listed = ", ".join(shown(column, 40) for column in columns[:12])
    more = f" (+{len(columns) - 12} more)" if len(columns) > 12 else ""
    return InputError(f"no column `{shown(wanted)}` in {name}; found: {listed}{more}.", do=do)
