"""One-time cost and work of a move from the running stack to another, by the estimates of a plan."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl

from core.analysis.workspace.view import View
from core.axes import AxisSpec, AxisStep
from core.decide.axes import COST
from core.decide.switching import WEEKS_PER_MONTH, SwitchItem, Terms, built
from core.errors import InputError, UnknownNameError
from core.number_format import duration, format_bytes
from core.providers.base import Purpose
from core.providers.config import ModelConfig, place_of
from core.providers.embed import embedder_config

if TYPE_CHECKING:
    from core.pipeline.sweep.scale import Size
    from core.prices import PriceBook
    from core.store import Snapshot

NOT_SAID = "what the move needs is not known of a custom or imported stack"
_NO_SIZE = "passages or tokens per passage are not given"
_NO_PARTS = "the passages of its partitions are not known"
_S_PER_H, _GIB = 3600, 2**30


@dataclass(frozen=True, slots=True)
class MoveWork:
    """One line of what a move takes besides money."""

    name: str  # embedding, building, or disk of both indexes
    amount: float | None  # None = not known
    unit: str
    basis: str  # how it is computed, or what is missing


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Where moves are priced: the corpus, the prices and the terms; equal ones price alike."""

    snapshot: Snapshot = field(compare=False)
    book: PriceBook = field(compare=False)
    source: tuple[object, ...]  # path and revision of the store, and digest of the prices
    collection_id: str
    terms: Terms

    @classmethod
    def of(cls, view: View) -> Ground:
        """Return the ground of a workspace."""
        source = (str(view.snapshot.path), view.snapshot.revision, view.book.digest)
        return cls(
            snapshot=view.snapshot,
            book=view.book,
            source=source,
            collection_id=view.scope.collection_id,
            terms=view.terms,
        )

    @cached_property
    def passages(self) -> int | None:
        """The passages of the corpus, as given or as stored."""
        return self.terms.passages or self._stored or None

    @cached_property
    def _stored(self) -> int:
        return len(self.snapshot.passages(self.collection_id))

    @cached_property
    def _parts(self) -> dict[str, tuple[int, ...]]:
        return {}

    def parts(self, spec: AxisSpec) -> tuple[int, ...] | None:
        """Return the stored passages of each partition of a stack; one if it has a single index.

        It is None if the store does not know by what its passages are parted.
        """
        from core.pipeline.evaluate.steps import FILTERING, NONE  # noqa: PLC0415 - loads the engines, a second
        from core.pipeline.index.scope import PARTITION, partition  # noqa: PLC0415

        named = str(spec.get(FILTERING, NONE))
        kind, _, by = named.partition(":")
        if kind != PARTITION:
            return (1,)
        if named not in self._parts:
            access = self.snapshot.access(self.collection_id)
            self._parts[named] = ()
            if access is not None:
                without = pl.DataFrame(height=max(0, self._stored - access.fields.height))
                fields = pl.concat([access.fields, without], how="diagonal")
                with suppress(InputError):  # no passage has the field
                    self._parts[named] = tuple(map(len, partition(fields, by)))
        return self._parts[named] or None

    @cached_property
    def embedded(self) -> Mapping[str, tuple[float, int]]:
        """The seconds of one core in which models on this machine embedded passages, and how many."""
        found: dict[str, tuple[float, int]] = {}
        runs = self.snapshot.runs(self.collection_id).select("spec", "manifest")
        for spec, manifest in runs.unique(maintain_order=True).iter_rows():
            told = json.loads(manifest)
            indexed = (told.get("corpus") or {}).get("indexed")
            for index in (told.get("indexes") or {}).values():
                for item, unit, amount, _ in index.get("embed_usage") or ():
                    if (item, unit) == ("local-cpu", "cpu_ms") and indexed:
                        found.setdefault(str(json.loads(spec).get("embedder")), (amount / 1000, indexed))
        return found

    @cached_property
    def _counted(self) -> dict[tuple[str | None, str], float | None]:
        return {}

    def mean_tokens(self, tokenizer: str | None, prefix: str) -> float | None:
        """Return the mean tokens of the stored passages, as a model counts them; None without texts."""
        from core.pipeline.sweep.paid import count_texts  # noqa: PLC0415 - loads the engines, a second

        if (tokenizer, prefix) not in self._counted:
            texts = self.snapshot.passages(self.collection_id)["text"].drop_nulls().to_list()
            counted = count_texts(texts, tokenizer, prefix)
            mean = counted.tokens / counted.texts if counted.texts else None
            self._counted[tokenizer, prefix] = mean
        return self._counted[tokenizer, prefix]


@dataclass(frozen=True, kw_only=True)
class AskedMove:
    """A move under consideration."""

    ground: Ground
    now: dict[str, Any]  # row of the stack table: the running stack
    to: dict[str, Any]  # row of the stack that would replace it
    needs: Mapping[str, AxisStep] | None  # the steps of the move, by the key that differs; None = unknown
    was: AxisSpec  # of the running stack
    spec: AxisSpec  # of the new stack

    @property
    def terms(self) -> Terms:
        """The terms that the move is judged by."""
        return self.ground.terms

    @property
    def passages(self) -> int | None:
        """The passages of the corpus."""
        return self.ground.passages

    @property
    def embeds(self) -> bool:
        """Whether the corpus is embedded again."""
        return self.needs is not None and "embed" in self.needs.values()

    @property
    def builds(self) -> Mapping[str, bool]:
        """Which indexes are built anew, by part; empty if that is unknown."""
        return {} if self.needs is None else built(self.needs, self.spec)


@lru_cache(256)
def config_of(model: str) -> ModelConfig | None:
    """Return the configuration of an embedding model; None if no catalogue has it."""
    with suppress(UnknownNameError):
        return embedder_config(model)
    return None


def items_of(asked: AskedMove) -> Iterator[SwitchItem]:
    """List the one-time costs of a move; a stack that replaces itself costs nothing."""
    if asked.to["run_id"] == asked.now["run_id"]:
        return
    terms = asked.terms
    if asked.needs is None:
        yield SwitchItem("rebuild", None, NOT_SAID)
    if asked.embeds:
        yield SwitchItem("embed again", *_embedding(asked, asked.to, asked.passages))
    if any(asked.builds.values()):
        yield _building(asked)
    if terms.weeks_both:
        yield _both(asked.to[COST.column], terms)
        if asked.builds.get("vectors"):
            yield _second_index(asked)
    if terms.engineering_days is None or terms.engineering_days > 0:
        yield _engineering(terms)
    if terms.evaluation_usd != 0:
        yield SwitchItem("evaluation", terms.evaluation_usd, "as given")


def work_of(asked: AskedMove) -> Iterator[MoveWork]:
    """List the hours and the disk that a move takes; nothing if it needs a setting alone."""
    if asked.to["run_id"] == asked.now["run_id"]:
        return
    if asked.needs is None:
        yield MoveWork("rebuild", None, "", NOT_SAID)
    if asked.embeds:
        yield MoveWork("embedding", *_embedding_hours(asked))
    if any(asked.builds.values()):
        seconds, basis = _building_s(asked)
        yield MoveWork(
            "building", None if seconds is None else seconds / _S_PER_H, "hours of one core", basis
        )
    if asked.builds.get("vectors"):
        dense = [spec for spec in (asked.was, asked.spec) if spec.get("dim")]
        sizes = [size for spec in dense if (size := _size(asked, spec)) is not None]
        both = sum(size.disk_bytes for size in sizes) / _GIB if len(sizes) == len(dense) else None
        unknown = next((why for spec in dense if (why := _unsized(asked, spec))), "")
        of = "vectors and their indexes, old and new" if both is not None else unknown
        yield MoveWork("disk of both indexes", both, "GiB", of)


def monthly_embedding(asked: AskedMove) -> float | None:
    """Return by how much less the new stack embeds what is added in a month; dollars, None = unknown."""
    added = asked.terms.passages_per_month
    if not added:
        return 0.0
    before, after = (_embedding(asked, row, int(added), batch=False)[0] for row in (asked.now, asked.to))
    return None if before is None or after is None else before - after


def _embedding(
    asked: AskedMove, row: Mapping[str, Any], passages: int | None, *, batch: bool = True
) -> tuple[float | None, str]:
    """Return the dollars of embedding passages by a stack's model, and how they come about."""
    from core.pipeline.sweep.scale import usd_of  # noqa: PLC0415 - loads the engines, which no page waits for

    spec = json.loads(row["spec"])
    if spec.get("mode") == "sparse":
        return 0.0, "nothing is embedded"
    name, book = str(spec.get("embedder")), asked.ground.book
    config = config_of(name)
    if (here := _here(asked, row, passages)) is not None:
        seconds, basis = here
        return usd_of(book, "local-cpu", "cpu_hour", seconds / _S_PER_H), f"{passages:,} passages by {basis}"
    item = name if config is None else config.price_item
    bulk = asked.terms.batch_usd if batch else None
    if bulk is None and book.find(item, "input_tokens") is None:
        return None, f"by {name}: no price"
    tokens = _tokens_per_passage(asked, config)
    if passages is None or tokens is None:
        return None, _NO_SIZE
    every = passages * tokens
    usd = usd_of(book, item, "input_tokens", every) if bulk is None else bulk * every / 1e6
    paid = "at the list price" if bulk is None else f"at ${bulk:g} a million in a batch"
    return usd, f"{passages:,} passages of {tokens:.4g} tokens by {name}, {paid}"


def _here(asked: AskedMove, row: Mapping[str, Any], passages: int | None) -> tuple[float, str] | None:
    """Return the seconds of one core in which a model on this machine embeds passages, and their basis.

    It is None if the model runs elsewhere, or if the passages are unknown.
    """
    from core.pipeline.sweep.resources import embedding_here_s  # noqa: PLC0415 - as above

    if passages is None:
        return None
    name = str(json.loads(row["spec"]).get("embedder"))
    if name in asked.ground.embedded:
        seconds, indexed = asked.ground.embedded[name]
        return seconds * passages / indexed, f"{name}, as measured on {indexed:,}"
    config = config_of(name)
    if config is None or place_of(config) is not None:
        return None
    return embedding_here_s(config.provider, passages), f"{name} on one core, an assumption"


def _tokens_per_passage(asked: AskedMove, config: ModelConfig | None) -> float | None:
    tokens = asked.terms.tokens_per_passage
    if tokens is not None or config is None:
        return tokens
    return asked.ground.mean_tokens(config.tokenizer, config.prefixes.get(Purpose.PASSAGE, ""))


def _embedding_hours(asked: AskedMove) -> tuple[float | None, str, str]:
    """Return the hours of embedding the corpus again, their unit and how they come about."""
    from core.pipeline.sweep.known import KnownNames  # noqa: PLC0415 - as above
    from core.pipeline.sweep.resources import corpus_s  # noqa: PLC0415

    name, passages, unit = str(asked.spec["embedder"]), asked.passages, "hours"
    if (here := _here(asked, asked.to, passages)) is not None:
        return here[0] / _S_PER_H, "hours of one core", here[1]
    config = config_of(name)
    if config is None or passages is None:
        return None, unit, "the model's limits or the passages are not known"
    tokens = _tokens_per_passage(asked, config)
    if tokens is None:
        return None, unit, _NO_SIZE
    pace, limits = asked.terms.tokens_per_minute, config.limits
    if pace is not None:
        limits = limits.model_copy(update={"tokens_per_minute": pace})
    embedder = KnownNames().planned_embedder(name)
    most = embedder.batch_tokens or math.inf
    calls = math.ceil(max(passages / embedder.batch_items, passages * tokens / most))
    seconds = corpus_s(calls, passages * tokens, passages, limits)
    whose = "the vendor's basic tier" if pace is None else "the limit given"
    return seconds / _S_PER_H, unit, f"{calls:,} calls within {whose}"


def _building_s(asked: AskedMove) -> tuple[float | None, str]:
    """Return the seconds of one core that the new indexes take, and how they come about."""
    from core.pipeline.sweep.resources import BM25_PASSAGES_PER_S  # noqa: PLC0415 - as above

    if asked.passages is None:
        return None, "passages are not given"
    parts: dict[str, float | None] = {}
    if asked.builds.get("words"):
        parts["BM25"] = asked.passages / BM25_PASSAGES_PER_S
    if asked.builds.get("vectors"):
        size = _size(asked, asked.spec)
        name = str(asked.spec.get("index"))
        several = f" in {size.indexes:,} partitions" if size is not None and size.indexes > 1 else ""
        parts[f"{name}{several}"] = None if size is None else size.build_s
    known = [each for each in parts.values() if each is not None]
    if len(known) < len(parts):
        return None, f"{' and '.join(parts)}: not known"
    return math.fsum(known), f"{duration(math.fsum(known))} of one core, {' and '.join(parts)}"


def _building(asked: AskedMove) -> SwitchItem:
    from core.pipeline.sweep.scale import usd_of  # noqa: PLC0415 - as above

    seconds, basis = _building_s(asked)
    usd = None if seconds is None else usd_of(asked.ground.book, "local-cpu", "cpu_hour", seconds / _S_PER_H)
    return SwitchItem("build the index", usd, basis)


def _size(asked: AskedMove, spec: AxisSpec) -> Size | None:
    """Return the size of a stack's index of vectors, or of those of its partitions together.

    It is None if it has none, or if the passages, or those of its partitions, are unknown.
    """
    from core.pipeline.evaluate.steps import FILTERING  # noqa: PLC0415 - as above
    from core.pipeline.sweep.scale import index_at  # noqa: PLC0415

    parts = asked.ground.parts(spec)
    if not spec.get("dim") or not spec.get("index") or asked.passages is None or parts is None:
        return None
    return index_at(dict(spec), asked.passages, asked.ground.book, {str(spec.get(FILTERING, "")): parts})


def _unsized(asked: AskedMove, spec: AxisSpec) -> str:
    """Return why the size of a stack's indexes is not known; "" if it is."""
    if _size(asked, spec) is not None:
        return ""
    return _NO_SIZE if asked.passages is None or asked.ground.parts(spec) else _NO_PARTS


def _second_index(asked: AskedMove) -> SwitchItem:
    size, weeks = _size(asked, asked.spec), asked.terms.weeks_both
    if size is None or size.usd_per_month is None:
        what = "prices of memory and disk, or the least that a partition takes, are not known"
        return SwitchItem("second index", None, _unsized(asked, asked.spec) or what)
    held = f"{format_bytes(size.memory_bytes)} of memory, {format_bytes(size.disk_bytes)} of disk"
    held += f" in {size.indexes:,} partitions" if size.indexes > 1 else ""
    return SwitchItem(
        "second index", size.usd_per_month * weeks / WEEKS_PER_MONTH, f"{held}, {weeks:g} weeks"
    )


def _both(cost_per_1k: float | None, terms: Terms) -> SwitchItem:
    basis = f"{terms.weeks_both:g} weeks of the new one beside the old"
    if terms.queries_per_month is None:
        return SwitchItem("both run", None, "queries per month are not given")
    if cost_per_1k is None:
        return SwitchItem("both run", None, f"{basis}: cost not known")
    month = cost_per_1k * terms.queries_per_month / 1000
    return SwitchItem("both run", month * terms.weeks_both / WEEKS_PER_MONTH, basis)


def _engineering(terms: Terms) -> SwitchItem:
    if terms.engineering_days is None or terms.usd_per_day is None:
        return SwitchItem("engineering", None, "days or dollars per day are not given")
    basis = f"{terms.engineering_days:g} days at ${terms.usd_per_day:,.0f}"
    return SwitchItem("engineering", terms.engineering_days * terms.usd_per_day, basis)
