"""Grades anchored to characters of documents, so that one golden set judges the chunks of any chunker.

A span says: for this query, these characters of this document are worth this grade. What a chunk is worth
follows from the spans that it meets. **The rule:** a chunk gets the highest grade among the spans

* of which it covers at least `coverage` of the span's characters, or
* which cover at least `coverage` of the chunk's own characters;

a chunk that meets none is not judged. The first half serves spans shorter than a chunk (a sentence that
answers the question: the chunk that holds it, or the larger part of it, is as good), the second those longer
than a chunk (a graded section: every chunk that lies mostly within it is as good). `coverage` is above 0 and
at most 1, by default 0.5: with 0.5 or less no span is lost where it falls on one or two chunks without blanks
between them, and never one that covers whole chunks; the higher it is, the more a cut through the evidence
costs. Spans that no chunk gets are listed (`Derived.lost`), for a chunker that tears evidence apart would
otherwise look better than it is: their queries may have nothing judged left and drop out of its mean.

Judgements of whole documents or of chunks whose places are known become spans by `anchor`. Judgements that
are tied to passage ids cannot judge the passages of two chunkers; `require_comparable` refuses that.
"""

from core.pipeline.anchors.derive import (
    COVERAGE,
    Anchored,
    Derived,
    Spans,
    anchor,
    derive,
    holds_spans,
    judged,
    read_spans,
    require_comparable,
)

__all__ = [
    "COVERAGE",
    "Anchored",
    "Derived",
    "Spans",
    "anchor",
    "derive",
    "holds_spans",
    "judged",
    "read_spans",
    "require_comparable",
]
