"""The parts of stacks' names, each explained once for a reader without background."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from core.axes import AxisSpec
from core.views import text

MODEL = "search by meaning: a model turns texts into numbers"
RERANKER = "reranking: the candidates are looked at again and put in order"
_BEFORE: Mapping[str, tuple[str, str]] = {
    "⊕": ("⊕", "both lists of results, merged into one"),
    r"\brrf\b": ("rrf", "merges lists by rank; 1 : 2 weighs the second list twice"),
    r"\brrf .*\bconstant\b": ("constant", "of rrf: the higher, the more low ranks count; usually 60"),
    r"\bconvex\b": ("convex", "merges lists by score; alpha is the weight of the second"),
}
_BEHIND: Mapping[str, tuple[str, str]] = {
    r"\bint8\b": ("int8", "an index of coarser numbers, a quarter of the size"),
    r"\bhnsw\b": ("hnsw", "an index that looks at likely neighbours only"),
    r"· hygiene\b": ("hygiene", "cleans the query before the search"),
    r"\bK = \d": ("K", "in a name: candidates fetched for a query; in a formula: the cutoff"),
}
"""Term and meaning of the words in names, before and behind the models."""
_NAMED = 3  # Maximum models of a kind named together


def explained(stacks: Iterable[tuple[str, AxisSpec]]) -> dict[str, str]:
    """Explain the parts of stacks' names, each with its specification; models of one kind together.

    Returns:
        The meaning of each term → the terms as they are in names.
    """
    kept = list(stacks)
    named = " | ".join(name for name, _ in kept)
    models = dict.fromkeys(_short(name, spec.get("embedder")) for name, spec in kept)
    again = dict.fromkeys(_short(name, spec.get("reranker")) for name, spec in kept)
    sizes = dict.fromkeys(size for name, spec in kept if (size := f"{spec.get('dim')} d") in name)
    words = dict.fromkeys(str(spec.get("sparse") or "").upper() for name, spec in kept)
    means = [
        *((word, "a search by the words of the query") for word in words if word and word in named),
        *_known(_BEFORE, named),
        *_together(models, MODEL),
        *_together(sizes, "how many numbers stand for a text"),
        *_together(again, RERANKER),
        *_known(_BEHIND, named),
    ]
    return dict(means)


def _known(words: Mapping[str, tuple[str, str]], named: str) -> Iterator[tuple[str, str]]:
    yield from (said for pattern, said in words.items() if re.search(pattern, named))


def _together(models: Iterable[str], means: str) -> Iterator[tuple[str, str]]:
    there = [model for model in models if model]
    if there:
        yield text.first_of(there, _NAMED), means


def _short(name: str, model: object) -> str:
    """Return the longest part of a model's name that occurs in a stack's name, or "" if none does."""
    parts = re.findall(r"[^-/ ]+", str(model or ""))
    spans = [(start, end) for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)]
    for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
        found = re.search(r"(?<!\w)" + r"[-/ ]".join(map(re.escape, parts[start:end])) + r"(?!\w)", name)
        if found and (end - start == len(parts) or re.search(r"[^\W\d]{3}", found[0])):
            return found[0]
    return ""
