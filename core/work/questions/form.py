"""The form of a set of questions, and its specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.toml_text import toml, toml_text

RULES: Mapping[str, str] = {
    "headings": "headings and titles, with what stands below",
    "known-item": "known-item: words drawn from a stretch of a document",
    "log": "a log: what people really asked",
}
"""Methods that need no model, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsForm:
    """Values of the form's fields."""

    name: str
    documents: str  # a path, or a stored collection
    stored: bool = False  # whether it is a stored collection
    method: str = "headings"
    count: int = 64
    kinds: Sequence[str] = ("fact",)
    log: str = ""  # a path, or a stored collection
    log_stored: bool = False
    column: str = ""
    mask: str = ""  # a path
    names: str = ""
    twins: bool = False
    closed_book: bool = True
    address: str = ""  # of a model missing from the catalogue
    budget: float | None = None


def specification(form: QuestionsForm) -> str:
    """Return the form as the text of a specification (TOML)."""
    by_model = form.method not in RULES
    head = {
        "name": form.name,
        f"collection.{'stored' if form.stored else 'path'}": form.documents,
        "method": form.method,
        "count": form.count,
        "kinds": list(form.kinds) if by_model else None,
        "closed_book": form.closed_book if by_model else None,
        "twins": form.twins if by_model else None,
        "budget_usd": form.budget if by_model else None,
        f"log.{'stored' if form.log_stored else 'path'}": form.log if form.method == "log" else None,
        **{f"log.{key}": getattr(form, key) for key in ("column", "mask", "names") if form.method == "log"},
    }
    own = {"provider": "openai", "base_url": form.address} if by_model and form.address else {}
    return toml_text(("", head), (f"models.{toml(form.method)}", own))
