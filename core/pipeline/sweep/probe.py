"""Asks servers of one's own about a few passages, so that a plan knows how fast they are."""

from __future__ import annotations

from core.pipeline.evaluate import Job
from core.pipeline.sweep.known import NONE, Known
from core.pipeline.sweep.rates import Speed
from core.providers.base import Purpose
from core.providers.embed import make_embedder
from core.providers.vendors import place_of

_PASSAGES = 8


def probe(job: Job, known: Known | None = None) -> dict[str, Speed]:
    """Time the embedders of a sweep that answer from a server of one's own; vendors are not asked.

    Each is sent the sweep's first question twice, the first time unmeasured, and one call of at most 8
    passages of usual length. Nothing is kept.

    Args:
        job: The evaluation.
        known: What names stand for; None = the catalogues and the job's own models.

    Returns:
        Speeds by the name of the embedder.

    Raises:
        ProviderError: If a server does not answer, or there is no key.
    """
    known = known or Known(job.models)
    searched = {str(stack.spec.get("embedder", NONE)): stack.spec for stack in job.stacks}
    speeds = {}
    for name in sorted(searched.keys() - {NONE}):
        config = known.config("embedder", name)
        place = place_of(config)
        if place is None or place.known:
            continue
        passages = _usual(next(iter(job.corpora.values())).texts.to_list())
        with make_embedder(config, searched[name]["dim"], keys=known.keys) as embedder:
            asked = job.queries["text"][0]
            embedder.embed_query(asked)
            query = embedder.embed_query(asked)
            reply = embedder.embed_batch(passages, Purpose.PASSAGE)
            tokens = sum(map(embedder.count_tokens, passages))
        speeds[name] = Speed(query.ms, 1000 * tokens / max(reply.ms, 1e-3))
    return speeds


def _usual(texts: list[str]) -> list[str]:
    """A few texts from the middle of all lengths."""
    ordered = sorted(filter(str.strip, texts), key=len)
    first = max(0, (len(ordered) - _PASSAGES) // 2)
    return ordered[first : first + _PASSAGES]
