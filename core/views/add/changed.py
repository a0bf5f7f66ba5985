"""What an import finds in the store under its names, changed or deleted, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.errors import InputError

Choice = Literal["new", "replace", "restore"]
CHOICES: Mapping[Choice, str] = {
    "new": "Keep both: what comes now is a new version",
    "replace": "Replace: what comes now takes its place (earlier revisions still show the old)",
}
AFTER_DELETION: Mapping[Choice, str] = {
    "restore": "Restore: it is what was deleted, and comes back with all that its deletion hid",
    "new": "Leave that deleted: what comes now is a new version",
}
_SAME, _OTHER = " (deleted)", " (deleted, had other content)"


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that is in the store under the same name with other content, or that was deleted.

    Attributes:
        kind: "run", "golden_set" or "collection".
        name: Label of a run, id of the others.
        known: Ids in the store that carry the name, or a later version of it; newest last.
        deleted: Whether none of them is seen any more; "same" where one has the content that comes now.
    """

    kind: str
    name: str
    known: tuple[str, ...]
    deleted: Literal["no", "same", "other"] = "no"

    def __str__(self) -> str:
        """In words."""
        told = {"no": "", "same": _SAME, "other": _OTHER}[self.deleted]
        return f"{self.kind.replace('_', ' ')} {self.name!r}{told}"


def offers(changed: Sequence[str]) -> Mapping[Choice, str]:
    """What can be done about changes, given in words: restored only where all of them are but deleted."""
    return AFTER_DELETION if all(each.endswith(_SAME) for each in changed) else CHOICES


def told(changed: Sequence[str]) -> str:
    """Changes in a sentence."""
    some = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if changed[5:] else "")
    if offers(changed) is AFTER_DELETION:
        return f"The same was in the store and was deleted: {some}."
    return f"In the store already with other content: {some}."


class ChangedError(InputError):
    """An import would change what is there, or bring back what was deleted, and nobody has said how.

    Attributes:
        changes: What it would change.
    """

    def __init__(self, changes: tuple[Changed, ...]) -> None:
        words = [str(each) for each in changes]
        how = (
            "Say whether to restore what was deleted (--if-changed restore) or to leave it deleted and "
            "import a new version (--if-changed new)."
            if offers(words) is AFTER_DELETION
            else "Say whether to keep both as a new version (--if-changed new) or to replace what is there "
            "(--if-changed replace)."
        )
        super().__init__(f"{told(words)} Nothing was written.", do=how)
        self.changes = changes
