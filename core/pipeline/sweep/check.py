"""Checks of a specification before anything runs: all problems at once, each with its reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from core.axes import is_called
from core.errors import ClqError, UnknownNameError
from core.extras import SEARCH_REQUIREMENTS, installed
from core.pipeline.evaluate.identity import MODELS, billed_by
from core.pipeline.index import check_metric, index_options, obstacles
from core.pipeline.own.config import OwnStack, own_of
from core.pipeline.own.endpoint import check_endpoint
from core.pipeline.own.signature import NO_SIZE, takes_no_k
from core.pipeline.query.perturb import check_perturb
from core.pipeline.ranking.pool import LEGS
from core.pipeline.sweep.expand import MAX_STACKS, count, expand
from core.pipeline.sweep.known import NONE, KnownNames
from core.pipeline.sweep.model import METHODS, SweepSpec
from core.pipeline.sweep.problems import Problem, Severity, SpecError, suggestion
from core.prices import CURRENCY, PRICE_IT, PriceBook, load_books
from core.providers import chat, embed, rerank
from core.providers.calls import Keys
from core.providers.config import ModelConfig
from core.records import JsonMap, Stack

TOKEN_ENCODERS = ("onnx",)  # Providers whose encoders are `core.providers.embed.TokenEmbedder`
_LABELLED = 60
_ORDER = list(Severity)


@dataclass(frozen=True, slots=True)
class SpecFacts:
    """Facts that rules look at beside the stack."""

    known: KnownNames = field(default_factory=KnownNames)  # possible components of a stack
    passages: int | None = None  # how many passages are searched; None = not known
    deepest: bool = False  # whether rerankers are asked at the deepest K only


def _findings(spec: JsonMap, facts: SpecFacts) -> Iterator[Problem]:
    """Yield everything that is wrong with a stack, each with the key to blame.

    Rules trust the names they need.
    """
    if own_of(spec):
        return
    models = [key for key in ("embedder", "index", "reranker", "rewrite") if spec.get(key, NONE) != NONE]
    named = {(key, key): spec[key] for key in models}
    named |= {(f"{key}.method", key): spec[key]["method"] for key in METHODS if spec.get(key)}
    if language := spec.get("bm25", {}).get("language"):
        named["bm25.language", "language"] = language
    bad: set[str] = set()
    for (key, kind), name in named.items():
        known = facts.known.names[kind]
        if name not in known:
            bad.add(kind)
            yield Problem(key, f"There is no {kind} {name!r}.", suggestion(name, known))
    for key, rule in _RULES:
        if key not in bad:
            yield from rule(spec, facts)


def _dimension(spec: JsonMap, facts: SpecFacts) -> Iterator[Problem]:
    if spec["mode"] == "sparse":
        return
    name, dim, dims = spec["embedder"], spec.get("dim"), facts.known.dims(spec["embedder"])
    if dim is None:
        yield Problem("dim", f"The dimension of {name} is not known.", "Give dim, or dims of the model.")
    elif dims and dim not in dims:
        shown = ", ".join(map(str, dims))
        yield Problem("dim", f"{name} has no {dim} dimensions.", f"Choose among {shown}.")


def _metric(spec: JsonMap, facts: SpecFacts) -> Iterator[Problem]:
    embedder = facts.known.embedder(spec.get("embedder", ""))
    if embedder is not None:
        metric = spec.get("metric", "cosine")
        yield from _refused("metric", partial(check_metric, metric, normalised=embedder.normalised))


def _index(spec: JsonMap, facts: SpecFacts) -> Iterator[Problem]:
    if spec["mode"] != "sparse":
        name, params, dim = spec["index"], spec.get("index_params"), spec.get("dim")
        yield from _refused("index", partial(index_options, name, params, dim=dim, passages=facts.passages))
        for error in obstacles(name, params):
            yield Problem("index", error.found, error.do, Severity.MISSING)


def _read(key: str, read: Callable[[JsonMap], object]) -> _Rule:
    """Require that a value is as its registry declares."""
    return lambda spec, _: _refused(key, partial(read, spec[key])) if spec.get(key) else iter(())


def _vectors(spec: JsonMap, _: SpecFacts) -> Iterator[Problem]:
    """Yield methods that need vectors, if the stack has no vectors."""
    for key, registry in METHODS.items():
        method = spec.get(key, {}).get("method")
        if method and not registry.fits(method, spec["mode"]):
            others = [name for name in registry.methods if registry.fits(name, spec["mode"])]
            reason = f"A {spec['mode']} stack has no vectors, which {key} {method} needs."
            yield Problem(key, reason, f"Use {' or '.join(others)} for it.")


def _late(spec: JsonMap, facts: SpecFacts) -> Iterator[Problem]:
    """Yield a problem if late chunking has no encoder that gives the vectors of tokens."""
    embedder = facts.known.embedder(spec.get("embedder", ""))
    late = spec.get("chunker", {}).get("late") == "yes"
    if late and embedder is not None and embedder.provider not in TOKEN_ENCODERS:
        reason = f"{embedder.name} gives no vectors of tokens, which late chunking is made of."
        do = f"Use an encoder of {' or '.join(TOKEN_ENCODERS)}, or a chunker without late."
        yield Problem("chunker", reason, do)


def _pool(spec: JsonMap, facts: SpecFacts) -> Iterator[Problem]:
    """Yield a problem if the pool cannot have the candidate depth."""
    k = spec["candidates"]
    depth = spec["fusion"].get("depth") if spec["mode"] == "hybrid" else None
    if isinstance(depth, int) and k > depth:
        merged = f"the fusion merges {LEGS} rankings of {depth}"
        if k > LEGS * depth:
            do = f"Raise fusion.depth to {k}, or lower candidates to {LEGS * depth} or fewer."
            yield Problem("candidates", f"K = {k} is beyond the pool: {merged}.", do)
        else:
            reason = f"Pools may hold fewer than K = {k} passages: {merged}."
            yield Problem("candidates", reason, f"Raise fusion.depth to {k} to be sure.", Severity.WARNING)
    if facts.passages is not None and k > facts.passages:
        reason = f"K = {k} is beyond the {facts.passages:,} passages of the collection: all are candidates."
        yield Problem("candidates", reason, "A smaller K says the same in less time.", Severity.WARNING)


def _sent(spec: JsonMap, _: SpecFacts) -> Iterator[Problem]:
    k, sent = spec["candidates"], spec.get("chunks_sent", 0)
    if sent > k:
        reason = f"{sent} chunks cannot be sent of a pool of K = {k}."
        yield Problem("chunks_sent", reason, f"Lower chunks_sent to {k} or fewer, or raise candidates.")


def _deepest(spec: JsonMap, facts: SpecFacts) -> Iterator[Problem]:
    name = spec.get("reranker", NONE)
    if facts.deepest and name != NONE and not facts.known.planned_reranker(name).pointwise:
        reason = f'{name} judges passages beside one another: latency.rerank = "deepest" does not fit it.'
        yield Problem("reranker", reason, "It is asked at each depth.", Severity.WARNING)


def _refused(key: str, work: Callable[[], object]) -> Iterator[Problem]:
    """Yield the problem that a registry has with a value, if any."""
    try:
        work()
    except UnknownNameError as error:
        reason = f"There is no {error.kind} {error.name!r} of {error.where or key}."
        yield Problem(key, reason, suggestion(error.name, error.known))
    except ClqError as error:
        yield Problem(key, error.found, error.do)


_Rule = Callable[[JsonMap, SpecFacts], Iterator[Problem]]
_RULES: tuple[tuple[str, _Rule], ...] = (
    # the key whose name must be known first, the rule
    ("embedder", _dimension),
    ("embedder", _metric),
    ("index", _index),
    *((key, _read(key, registry.read)) for key, registry in METHODS.items()),
    ("", _vectors),
    ("chunker", _late),
    ("fusion", _pool),
    ("", _sent),
    ("", _read("perturb", check_perturb)),
    ("reranker", _deepest),
)


def check(
    spec: SweepSpec,
    *,
    known: KnownNames | None = None,
    stacks: Sequence[Stack] | None = None,
    passages: int | None = None,
    books: Mapping[str, PriceBook] | None = None,
) -> list[Problem]:
    """Return everything that is wrong with a specification, or that its owner should know.

    Reads no corpus, sends nothing and writes nothing.
    """
    known = known or KnownNames(spec.models)
    books = load_books() if books is None else books
    problems = list(_whole(spec, books))
    asked = count(spec)
    if asked > MAX_STACKS:
        return [
            *problems,
            Problem("axes", f"They make up to {asked:,} stacks; at most {MAX_STACKS:,} can run."),
        ]
    listed = expand(spec, known) if stacks is None else stacks
    if not listed:
        problems.append(
            Problem("axes", "There is no stack to run.", "Give [axes] or at least one [[stack]].")
        )
    problems += check_stacks(listed, SpecFacts(known, passages, spec.latency.rerank == "deepest"))
    problems += _missing(spec, listed, known, books.get(spec.budget.prices))
    problems += _incumbent(spec, listed)
    return sorted(problems, key=lambda problem: _ORDER.index(problem.severity))


def require(problems: Sequence[Problem], *, to_run: bool = True) -> list[Problem]:
    """Raise an error for fatal problems, and return all problems otherwise."""
    refused = (Severity.ERROR, Severity.MISSING) if to_run else (Severity.ERROR,)
    fatal = [problem for problem in problems if problem.severity in refused]
    if fatal:
        raise SpecError(fatal)
    return list(problems)


def chat_problems(
    named: Iterable[tuple[str, str]], models: Mapping[str, ModelConfig], keys: Keys | None = None
) -> Iterator[Problem]:
    """Yield the problems of chat models: unknown, or unable to run here yet.

    Args:
        named: Where each is named, and its name.
    """
    for where, name in dict.fromkeys(named):
        try:
            config = chat.chat_config(name, models)
        except UnknownNameError as error:
            yield Problem(where, error.found, error.do)
            continue
        try:
            with chat.make_chat(config, keys=keys or Keys()):
                pass
        except ClqError as error:
            yield Problem(where, error.found, error.do, Severity.MISSING)


def check_stacks(stacks: Sequence[Stack], facts: SpecFacts) -> list[Problem]:
    """Return the problems of stacks; one that several have is listed once."""
    seen: dict[Problem, list[str]] = {}
    for stack in stacks:
        for finding in _findings(stack.spec, facts):
            seen.setdefault(finding, []).append(stack.label)
    return [
        replace(problem, where=f"{problem.where} of {_some(labels, len(stacks))}")
        for problem, labels in seen.items()
    ]


def _some(labels: Sequence[str], whole: int) -> str:
    if len(labels) == whole > 1:
        return f"all {whole} stacks"
    first = labels[0] if len(labels[0]) <= _LABELLED else f"{labels[0][: _LABELLED - 1]}…"
    return first if len(labels) == 1 else f"{first} and {len(labels) - 1} more"


def _own(own: OwnStack) -> Iterator[Problem]:
    """Yield problems of a custom pipeline: of its interpreter, its folder, its address, its templates."""
    if own.path is not None and not own.path.is_dir():
        yield Problem(f"stack {own.name}, path", f"There is no such folder: {own.path}.")
    if own.python is not None and shutil.which(own.python) is None:
        yield Problem(f"stack {own.name}, python", f"There is no such interpreter: {own.python}.")
    if own.url is not None:
        yield from _refused(f"stack {own.name}", partial(check_endpoint, own))
    if takes_no_k(own):
        reason = f"{own.call} may return fewer than K = {own.candidates}: {NO_SIZE}."
        yield Problem(f"stack {own.name}", reason, "Give it one, or lower K.", Severity.WARNING)


def _whole(spec: SweepSpec, books: Mapping[str, PriceBook]) -> Iterator[Problem]:
    golden = spec.golden_set
    paths = {
        "collection.path": spec.collection.path,
        "queries.path": spec.queries.path,
        "golden_set.path": golden.path if golden else None,
        **{f"models.{name}.path": model.path for name, model in spec.models.items()},
    }
    for key, path in paths.items():
        if path is not None and not path.exists():
            yield Problem(key, f"There is no such file or folder: {path}.")
    if spec.budget.prices not in books:
        reason = f"There is no price book {spec.budget.prices!r}."
        yield Problem("budget.prices", reason, suggestion(spec.budget.prices, books))
    if spec.searched and any(axes.method not in {"search", "list"} for axes in spec.axes):
        reason = 'Some axes have the method "search" and others do not.'
        yield Problem("axes.method", reason, "Search all of them; [[stack]] names what it begins with.")
    if spec.searched and not installed("optuna"):
        do = f"Install it: pip install -r {SEARCH_REQUIREMENTS}"
        yield Problem("axes.method", 'method = "search" needs the package optuna.', do, Severity.MISSING)
    for own in spec.own:
        yield from _own(own)
        if spec.budget.usd is not None and own.usd_per_query is None and own.usd_per_hour is None:
            reason = f"What a query of {own.name} costs is not known, so that no budget can be kept."
            yield Problem("budget.usd", reason, "Give its usd_per_query or usd_per_hour, or no budget.")
    for name, model in spec.models.items():
        providers = {*embed.PROVIDERS, *rerank.PROVIDERS, *chat.PROVIDERS}
        if model.provider not in providers:
            reason = f"There is no provider {model.provider!r}."
            yield Problem(f"models.{name}.provider", reason, suggestion(model.provider, providers))


def _incumbent(spec: SweepSpec, stacks: Sequence[Stack]) -> Iterator[Problem]:
    """Yield a problem if the stack that runs today matches none of the stacks, or several."""
    if spec.incumbent is None or spec.searched:
        return
    named = [stack for stack in stacks if is_called(spec.incumbent, stack.label, stack.spec)]
    if len(named) != 1:
        reason = f"{len(named) or 'No'} stacks are called {spec.incumbent!r}."
        yield Problem("incumbent", reason, f"Name one: {', '.join(stack.label for stack in stacks[:8])}.")


def _missing(
    spec: SweepSpec, stacks: Sequence[Stack], known: KnownNames, book: PriceBook | None
) -> Iterator[Problem]:
    """Yield missing keys, packages and prices that a run needs."""
    used = {(key, str(stack.spec[key])) for stack in stacks for key in MODELS if key in stack.spec}
    models = sorted((key, name) for key, name in used if name != NONE and name in known.names[key])
    wanting: dict[tuple[str, str], list[str]] = {}
    for key, name in models:
        for error in known.obstacles(key, name):
            key_lacks = getattr(error, "kind", "") == "auth" and error.where  # one problem of several models
            reason = f"The key {error.where} is not set." if key_lacks else error.found
            wanting.setdefault((reason, error.do), []).append(name)
    for (reason, do), names in wanting.items():
        yield Problem(", ".join(names), reason, do, Severity.MISSING)
    if spec.budget.usd is not None and book is not None:
        billed = {pair for key, name in models for pair in billed_by(key, name, known.models)}
        for item, unit in sorted(billed):
            price = book.find(item, unit)
            if price is None or price.currency != CURRENCY:
                reason = f"There is no price of {item} ({unit}) in the price book {book.name}."
                do = f"{PRICE_IT} Or run without budget.usd."
                yield Problem("budget.usd", reason, do, Severity.MISSING)
