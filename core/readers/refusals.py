"""Recognise refusals among answers by their words (Palmieri, §4.3.1)."""

from __future__ import annotations

import re

_WHO = r"\b(I|we|passages?|context|texts?|documents?|sources?|excerpts?|information)\b[^.]{0,40}"
_NOT = r"\b(do|does|did|can|could|is|are)(n['’]t|not| not)\b[^.]{0,30}"
REFUSAL = re.compile(
    rf"{_WHO}{_NOT}\b(know|hold|contain|answer|find|provide|mention|state|say|enough|sufficient)"
    r"|\bdon['’]?t know\b|^no (answer|information)\b|\bnot (mentioned|stated|provided) in the\b"
    r"|^unanswerable\b"
    r"|\bne (le )?(sais|sait|contien\w+|permet\w*|répond\w*|mentionne\w*)\b[^.]{0,20}\bpas\b"
    r"|^aucune (information|réponse)"
    r"|\bweiß (es |ich )?(es )?nicht\b|^keine (Antwort|Information)",
    re.IGNORECASE,
)
"""Refusals in English, French and German; an empty answer is a refusal too."""


def refuses(answer: str) -> bool:
    """Return whether an answer is empty, or says that there is none."""
    return not answer.strip() or REFUSAL.search(answer) is not None
