"""Refuses to compare chunkers by judgements that can judge one of them only."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from core.errors import InputError

_OWN = "the collection's own passages"


def require_comparable(
    chunkings: Iterable[str | None], golden_set: str, *, anchored: bool, judged: Collection[str | None] = ()
) -> None:
    """Check that one golden set can judge all stacks.

    Args:
        chunkings: Name of the chunking that each stack searches; None = the collection's own passages.
        golden_set: Its name, for the message.
        anchored: Whether its grades are anchored to spans of documents.
        judged: Chunkings that it has grades for besides (its parts); counted with those that spans can judge.

    Raises:
        InputError: Its grades are tied to passage ids, and the stacks search differently cut passages.
    """
    tied = sorted({name or "" for name in chunkings if not anchored and name not in judged})
    if len(tied) > 1:
        cut = ", ".join(name or _OWN for name in tied)
        raise InputError(
            f"The stacks search differently cut passages ({cut}), and the grades of {golden_set} are tied to "
            "passages: they can judge one of these sets only, and all others would look bad.",
            where="golden_set",
            do="Anchor the grades to characters of the documents (spans), or compare stacks of one chunker.",
        )
