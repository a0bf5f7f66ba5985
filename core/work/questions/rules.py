"""Rules for dropping drafted questions, each with its reason, and counts by reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rapidfuzz import fuzz, process

from core.bidi import strip_bidi_controls
from core.pipeline.index.terms import Analyzer
from core.work.questions.drafts import KINDS, LOG, UNANSWERABLE, Draft, DraftMaterial, Quote

NOT_IN_TEXT = "quote not in the text"
NEAR_COPY = "near copy"
SEVERAL = "several questions in one"
REFERS = "refers to the document"
TOO_SHORT = "too short to be a question"
CLOSED_BOOK = "answerable without the text"
UNUSABLE = "no answer in the form asked for"
REASONS: Mapping[str, str] = {
    UNUSABLE: "Three answers of the model could not be read.",
    NOT_IN_TEXT: "Its quote does not stand word by word in the text that was shown, or it has none.",
    TOO_SHORT: "It has no word that is not a stop word.",
    SEVERAL: "It asks two things, so that no one passage answers it.",
    REFERS: "“According to the text”: nobody who searches has the text before them.",
    NEAR_COPY: "A question before it says nearly the same.",
    CLOSED_BOOK: "The model answers it without the text: it tells nothing of a search.",
}
"""Reason → its meaning, in the order in which the rules are tried."""
SAME = 90.0  # Similarity of sorted terms, 0..100, from which on two questions are copies of each other (ours)
_NUMBERED = re.compile(r"\d")
_BLOCK = 512  # Number of questions compared at once

_ASKS = (
    r"what|how|why|when|where|who|whom|whose|which|is|are|does|do|can"
    r"|quel(?:le)?s?|comment|pourquoi|quand|où|qui|que|combien|est-ce|peut-on|faut-il"
)
_SEVERAL = re.compile(
    rf"\?[^?]*\w[^?]*\?|[,;]?\s(?:and|or|et|ou)\s(?:also\s|aussi\s)?(?:{_ASKS})\b[^?]*\?"
    rf"|^(?:[^?]*)\?\s+(?:{_ASKS})\b",
    re.IGNORECASE,
)
_EN = "document|text|passage|article|excerpt|extract|section|paragraph|context|page|snippet"
_FR = "documents?|textes?|passages?|articles?|extraits?|sections?|paragraphes?|contextes?|pages?"
_REFERS = re.compile(
    rf"\b(?:according to|as (?:stated|described|mentioned) in|based on|in|from) "
    rf"(?:the|this|that|your)(?: (?:above|following|provided|given))? (?:{_EN})\b(?! \w*\d)"
    rf"|\bthis (?:{_EN})\b|\bthe (?:{_EN})s? (?:above|below|says?|states?|mentions?|describes?)\b"
    r"|\b(?:mentioned|described|shown|listed|stated) (?:above|below)\b"
    rf"|\b(?:the|this) author\b(?! of (?!(?:the|this|that) (?:{_EN})\b))"
    rf"|\b(?:selon|d['’]après|dans) ?(?:l['’]|le |la |ce |cet |cette |ces )?(?:{_FR})\b"
    rf"(?! (?:de loi|du code|\w*\d))|\b(?:ce|cet|cette) (?:{_FR})\b"
    rf"|\b(?:le|la|l['’]) ?(?:{_FR}) (?:dit|indique|mentionne|décrit|précise)\b"
    r"|\b(?:mentionnée?s?|décrite?s?|indiquée?s?) (?:ci-desso?us|plus haut|dans le)\b"
    rf"|\b(?:dit|pense|écrit|selon|d['’]après) l['’]auteur\b"
    rf"|\bl['’]auteur\b(?! (?:de |du |d['’])(?!(?:l['’])?(?:{_FR})\b))",
    re.IGNORECASE,
)


def asks_several(text: str) -> bool:
    """Return whether a question asks more than one thing."""
    return _SEVERAL.search(text) is not None


def refers_to_text(text: str) -> bool:
    """Return whether a question mentions the text that it was made from."""
    return _REFERS.search(text) is not None


def located(quote: str, shown: Quote) -> Quote | None:
    """Return the position of a quote in a shown text, ignoring differences in whitespace; or None.

    Only whitespace may differ: lookalike letters and bidirectional controls do not match.
    """
    words = [re.escape(word) for word in quote.split()]
    found = re.search(r"\s+".join(words), shown.text) if words else None
    if found is None:
        return None
    return Quote(shown.source, shown.start + found.start(), shown.start + found.end(), found[0])


@dataclass(frozen=True)
class Screened:
    """Drafts, split into kept and dropped ones."""

    kept: list[Draft]
    dropped: list[tuple[Draft, str]] = field(default_factory=list)  # with the reason

    @property
    def counts(self) -> dict[str, int]:
        """Number of drafts that each rule dropped, for rules that dropped any."""
        counted = Counter(reason for _, reason in self.dropped)
        return {reason: counted[reason] for reason in REASONS if counted[reason]}


def screen(drafts: Iterable[Draft], material: DraftMaterial) -> Screened:
    """Split drafts into kept and dropped questions; the first of several copies is kept."""
    kept: list[Draft] = []
    dropped: list[tuple[Draft, str]] = []
    rules = _rules(material)
    for draft in drafts:
        clean = replace(draft, text=" ".join(strip_bidi_controls(draft.text).split()))
        reason = next((reason for reason, broken in rules.items() if broken(clean)), None)
        if reason:
            dropped.append((clean, reason))
        else:
            kept.append(clean)
    again = near_copies([draft.text for draft in kept], material.analyzer)
    dropped += [(draft, NEAR_COPY) for place, draft in enumerate(kept) if place in again]
    return Screened([draft for place, draft in enumerate(kept) if place not in again], dropped)


def _rules(material: DraftMaterial) -> dict[str, Callable[[Draft], bool]]:
    def misquoted(draft: Draft) -> bool:
        if draft.kind in (UNANSWERABLE, LOG):
            return False
        texts = material.texts
        return not draft.quotes or any(
            texts.get(quote.source, "")[quote.start : quote.end] != quote.text or not quote.text.strip()
            for quote in draft.quotes
        )

    return {
        NOT_IN_TEXT: misquoted,
        TOO_SHORT: lambda draft: not material.analyzer.terms(draft.text),
        SEVERAL: lambda draft: draft.kind in KINDS and asks_several(draft.text),
        REFERS: lambda draft: draft.kind in KINDS and refers_to_text(draft.text),
    }


def near_copies(texts: Sequence[str], analyzer: Analyzer) -> dict[int, int]:
    """Return texts that nearly repeat an earlier one: their position → that of an original.

    Texts with different numbers ("error 404", "error 405") are not copies.
    """
    said = [" ".join(sorted(analyzer.terms(text))) or text.casefold() for text in texts]
    numbers = [sorted(filter(_NUMBERED.search, text.split())) for text in said]
    copies: dict[int, int] = {}
    for begin in range(0, len(said), _BLOCK):
        block = said[begin : begin + _BLOCK]
        likeness = process.cdist(block, said[: begin + len(block)], scorer=fuzz.ratio, score_cutoff=SAME)
        for row, place in enumerate(range(begin, begin + len(block))):
            alike = (int(at) for at in likeness[row, :place].nonzero()[0])
            firsts = (at for at in alike if at not in copies and numbers[at] == numbers[place])
            if (first := next(firsts, None)) is not None:
                copies[place] = first
    return copies
