"""Base of embedders: a name, a dimension and one method that turns texts into vectors.

`full_dim` is a dimension whose vectors, cut to `dim` and scaled to unit length, are this embedder's vectors
(Matryoshka models); `dim` itself for others. A corpus is then embedded once, at `full_dim`, for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from core.arrays import Vectors
from core.errors import InputError, ProviderError
from core.providers.base import TOO_MUCH, Model, Purpose, Reply, carrying, joined, total
from core.providers.calls.journal import Journal, call_key, once, sending, text_hash
from core.providers.embed.batches import BatchPlaces, Room, batches, shares, side_by_side
from core.records import JsonMap

_Progress = Callable[[int, int], None]  # Called after each batch with the texts done and their total number

_AT_ONCE = 2048  # Number of texts that are looked up in the journal together
_ALIKE = 3  # Number of texts, differing in more than case and spaces, that must not share one vector


class Embedder(Model, ABC):
    """Turns texts into vectors of one dimension.

    A subclass sets the attributes and implements `embed_batch`; batching, order, the journal and checks are
    done here. A text of only white space has the zero vector, and no model is asked about it.
    """

    dim: int  # Length of every vector
    full_dim: int  # See the module
    # Whether the vector of every non-blank text has unit length, so that the inner product is the cosine
    normalised: bool = True
    batch_items: int = 64  # The most texts that `embed_batch` is given at once
    batch_tokens: int | None = None  # The most tokens of these, or None
    concurrency: int = 1  # How many batches are in progress at once
    ahead: int = 2  # How many batches for each of these are prepared in advance
    journal: Journal | None = None  # Where replies are stored and looked up, or None

    @abstractmethod
    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
        """Embed at most `batch_items` non-blank texts: float32 [len(texts), dim]."""

    def params(self, purpose: Purpose) -> JsonMap:
        """Return what a vector depends on besides the model's name and the text, for the journal; JSON."""
        return {"dim": self.dim, "purpose": purpose.value}

    def room(self) -> Room:
        """Return the most texts and tokens of the next batch."""
        return self.batch_items, self.batch_tokens

    def too_much(self, texts: Sequence[str]) -> None:
        """Record that these texts were too much for one call."""

    def embed(
        self, texts: Sequence[str], purpose: Purpose = Purpose.PASSAGE, *, on_batch: _Progress | None = None
    ) -> Vectors:
        """Embed any number of texts, in their order; equal texts are embedded once.

        Args:
            on_batch: Called with the progress; an exception in it ends the work, and what was done is stored.

        Returns:
            float32 [len(texts), dim], C-contiguous.

        Raises:
            ClqError: If the provider fails, or returns another number of vectors or another dimension.
        """
        return self.embed_all(texts, purpose, on_batch=on_batch).value

    def embed_all(
        self,
        texts: Sequence[str],
        purpose: Purpose = Purpose.PASSAGE,
        *,
        on_batch: _Progress | None = None,
        out: Vectors | None = None,
    ) -> Reply[Vectors]:
        """Embed any number of texts, with the usage and the time of all calls together.

        Args:
            out: Array for the vectors, float32 [len(texts), dim], such as a memory-mapped one.

        Returns:
            The vectors; the usage of all of them, whether paid now or recalled; `ms` and `waited_ms` summed
            over the calls, `attempts` in all, `fresh` if anything was sent; details "calls" and "recalled",
            the number of texts that were not sent again; errors as in `embed`.
        """
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32) if out is None else out
        places, replies = BatchPlaces(texts), list[Reply[int]]()
        filled = len(places.blank)
        vectors[places.blank] = 0
        with closing(self._answers(places.texts, purpose)) as answers:
            for part, reply in answers:
                filled += places.fill(vectors, part, reply.value)
                replies.append(carrying(reply, len(part)))
                if on_batch:
                    on_batch(filled, len(texts))
        sent = [reply for reply in replies if reply.fresh]
        recalled = sum(reply.value for reply in replies if not reply.fresh)
        whole = joined(sent, vectors, {"calls": len(sent), "recalled": recalled})
        return replace(whole, usage=total(reply.usage for reply in replies), fresh=bool(sent))

    def embed_query(self, text: str, *, extra: str = "") -> Reply[Vectors]:
        """Embed one query.

        Args:
            extra: Distinguishes calls that are to be repeated although the text is the same ("repeat 2").

        Returns:
            float32 [dim]; errors as in `embed`.
        """
        if not text.strip():
            return Reply(np.zeros(self.dim, dtype=np.float32), attempts=0, fresh=False)

        def ask() -> Reply[Vectors]:
            reply = self._checked([text], Purpose.QUERY, [key])
            return carrying(reply, np.ascontiguousarray(reply.value[0]))

        key = self._key(text, Purpose.QUERY, extra)
        return once(self.journal, key, self._fits, ask)

    def _answers(self, texts: list[str], purpose: Purpose) -> Generator[tuple[list[str], Reply[Vectors]]]:
        """Yield recalled texts first, then the others in batches."""
        missing = dict.fromkeys(texts)
        for part, reply in self._recalled(texts, purpose):
            for text in part:
                del missing[text]
            yield part, reply
        split = batches(list(missing), self.room, self.count_tokens)
        work = lambda part: self._in_parts(part, purpose)  # noqa: E731
        yield from side_by_side(work, split, self.concurrency, self.interrupt, ahead=self.ahead)

    def _recalled(self, texts: list[str], purpose: Purpose) -> Iterator[tuple[list[str], Reply[Vectors]]]:
        if self.journal is None:
            return
        for start in range(0, len(texts), _AT_ONCE):
            keys = {self._key(text, purpose): text for text in texts[start : start + _AT_ONCE]}
            known = self.journal.get_many(list(keys))
            replies = {key: reply for key, reply in known.items() if self._fits(reply.value)}
            if replies:
                vectors = np.stack([reply.value for reply in replies.values()])
                used = total(reply.usage for reply in replies.values())
                yield [keys[key] for key in replies], Reply(vectors, used, attempts=0, fresh=False)

    def _fits(self, vector: Vectors) -> bool:
        """Return whether a stored vector may be used; earlier releases stored zeros for missing ones."""
        return vector.shape == (self.dim,) and bool(np.isfinite(vector).all() and vector.any())

    def _in_parts(self, texts: list[str], purpose: Purpose) -> Reply[Vectors]:
        """Embed a batch; if it is too much at once, halve it, and store each part as it arrives."""
        replies: list[Reply[Vectors]] = []
        rest, most = texts, len(texts)
        while rest:
            part = next(batches(rest[:most], self.room, self.count_tokens))
            try:
                replies.append(self._kept(part, purpose))
            except ProviderError as error:
                if error.kind not in TOO_MUCH or len(part) == 1:
                    raise
                most = len(part) // 2
                self.too_much(part)
            else:
                rest = rest[len(part) :]
        if len(replies) == 1:
            return replies[0]
        return joined(replies, np.concatenate([reply.value for reply in replies]))

    def _kept(self, texts: list[str], purpose: Purpose) -> Reply[Vectors]:
        """Embed texts and store them one by one, so that other batches with the same texts find them."""
        keys = [self._key(text, purpose) for text in texts]
        with sending(self.journal, keys):
            reply = self._checked(texts, purpose, keys)
        if self.journal is not None:
            parts = shares(reply, [len(text) + 1 for text in texts])
            self.journal.put_many(dict(zip(keys, parts, strict=True)))
        return reply

    def _key(self, text: str, purpose: Purpose, extra: str = "") -> str:
        return call_key(self.provider, self.name, self.params(purpose), [text_hash(text)], extra)

    def _checked(self, texts: Sequence[str], purpose: Purpose, keys: Sequence[str]) -> Reply[Vectors]:
        reply = self.embed_batch(texts, purpose)
        vectors = reply.value
        if vectors.shape != (len(texts), self.dim):
            raise ProviderError(
                f"Embedder {self.name} returned vectors of shape {vectors.shape} for {len(texts)} texts"
                f" of {self.dim} dimensions.",
                kind="count",
                do="Check the model's name and dimension.",
            )
        alike = self.__dict__.setdefault("_alike", {}).setdefault(purpose, _Alike())
        if unusable := useless(texts, vectors) or alike.take_in(texts, vectors, keys):
            if self.journal is not None:
                self.journal.drop(alike.keys)
            raise ProviderError(
                f"Embedder {self.name} returned {unusable}.",
                kind="unreadable",
                where=self.name,
                do="Check the model's files, or the service behind base_url; nothing of this answer is kept.",
            )
        lengths = np.linalg.norm(vectors, axis=1)
        off = (np.abs(lengths - 1) > 0.01) & (lengths > 0)
        if self.normalised and off.any():
            raise InputError(
                f"Embedder {self.name} returned a vector of length {lengths[off][0]:.3g}, not 1.",
                where="normalised",
                do="Set normalised = false for this model, and compare by cosine.",
            )
        return reply


@dataclass
class _Alike:
    """A model's first answers, call by call, as long as they all are the same vector."""

    first: Vectors | None = None
    texts: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)  # their keys in the journal
    differ: bool = False

    def take_in(self, texts: Sequence[str], vectors: Vectors, keys: Sequence[str]) -> str:
        """Add a call, and return why its vectors cannot rank anything, or "" if they can."""
        if self.differ or not len(texts):
            return ""
        self.first = vectors[0].copy() if self.first is None else self.first
        if (vectors != self.first).any():
            self.differ, self.keys = True, []
            return ""
        self.texts.update(" ".join(text.casefold().split()) for text in texts)
        self.keys.extend(keys)
        if len(self.texts) < _ALIKE:
            return ""
        return f"the same vector for all of {len(self.texts)} different texts"


def useless(texts: Sequence[str], vectors: Vectors) -> str:
    """Explain why vectors [len(texts), dim] cannot rank anything, or "" if they can.

    A text without letters or digits may have the vector of zeros: a static model may know none of its tokens.
    """
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
    if (odd := np.flatnonzero(~np.isfinite(lengths))).size:
        return f"numbers that are not finite for text {odd[0] + 1} of {len(texts)} (null, NaN or infinite)"
    for at in np.flatnonzero(lengths == 0).tolist():
        if any(map(str.isalnum, texts[at])):
            return f"a vector of zeros for text {at + 1} of {len(texts)}"
    if len({" ".join(text.casefold().split()) for text in texts}) >= _ALIKE and (vectors == vectors[0]).all():
        return f"the same vector for all of {len(texts)} different texts"
    return ""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The tokens of a text with their vectors."""

    vectors: Vectors  # float32 [n, dim], in context, not scaled; special tokens are left out
    spans: NDArray[np.int64]  # int64 [n, 2]: where each token begins and ends in the text, in characters


class TokenEmbedder(Embedder):
    """An encoder that can return the vectors of the tokens themselves, for late chunking."""

    @abstractmethod
    def embed_tokens(self, text: str) -> TokenVectors:
        """Return the vectors of a passage's tokens; a text beyond the model's limit is read in windows."""

    @abstractmethod
    def pooled(self, vectors: Vectors) -> Vectors:
        """Pool the vectors of a passage's tokens [n ≥ 1, dim] into one: float32 [dim]."""
