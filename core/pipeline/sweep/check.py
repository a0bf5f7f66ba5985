"""What cannot work, found before anything runs: all of it at once, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.errors import ClqError
from core.pipeline.sweep.expand import MAX_STACKS, count, expand
from core.pipeline.sweep.known import MODELS, NONE, Known
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.problems import Problem, Severity, SpecError, suggestion
from core.pipeline.sweep.rules import Facts, Finding, findings
from core.prices import CURRENCY, PriceBook, load_books
from core.records import Stack

_LABELLED = 60
_ORDER = list(Severity)


def check(
    spec: SweepSpec,
    *,
    known: Known | None = None,
    stacks: Sequence[Stack] | None = None,
    passages: int | None = None,
    books: Mapping[str, PriceBook] | None = None,
) -> list[Problem]:
    """Everything that is wrong with a specification, or that its owner should know.

    Reads no corpus, sends nothing and writes nothing.
    """
    known = known or Known.of(spec)
    books = load_books() if books is None else books
    found = list(_whole(spec, books))
    asked = count(spec)
    if asked > MAX_STACKS:
        return [*found, Problem("axes", f"They make up to {asked:,} stacks; at most {MAX_STACKS:,} can run.")]
    made = expand(spec, known) if stacks is None else stacks
    if not made:
        found.append(Problem("axes", "There is no stack to run.", "Give [axes] or at least one [[stack]]."))
    found += check_stacks(made, Facts(known, passages, spec.latency.rerank == "deepest"))
    found += _missing(spec, made, known, books.get(spec.budget.prices))
    return sorted(found, key=lambda each: _ORDER.index(each.severity))


def require(problems: Sequence[Problem], *, to_run: bool = True) -> list[Problem]:
    """Refuse what cannot be done."""
    refused = {Severity.ERROR, Severity.MISSING} if to_run else {Severity.ERROR}
    fatal = [each for each in problems if each.severity in refused]
    if fatal:
        raise SpecError(fatal)
    return list(problems)


def check_stacks(stacks: Sequence[Stack], facts: Facts) -> list[Problem]:
    """What is wrong with stacks; a problem that several have is told once."""
    seen: dict[Finding, list[str]] = {}
    for stack in stacks:
        for finding in findings(stack.spec, facts):
            seen.setdefault(finding, []).append(stack.label)
    return [
        Problem(f"{each.key} of {_some(labels, len(stacks))}", each.found, each.do, each.severity)
        for each, labels in seen.items()
    ]


def _some(labels: Sequence[str], whole: int) -> str:
    if len(labels) == whole > 1:
        return f"all {whole} stacks"
    first = labels[0] if len(labels[0]) <= _LABELLED else f"{labels[0][: _LABELLED - 1]}…"
    return first if len(labels) == 1 else f"{first} and {len(labels) - 1} more"


def _whole(spec: SweepSpec, books: Mapping[str, PriceBook]) -> Iterator[Problem]:
    """Files, price book and providers."""
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
        found = f"There is no price book {spec.budget.prices!r}."
        yield Problem("budget.prices", found, suggestion(spec.budget.prices, books))
    for name, model in spec.models.items():
        if model.provider not in Known.providers():
            found = f"There is no provider {model.provider!r}."
            yield Problem(f"models.{name}.provider", found, suggestion(model.provider, Known.providers()))


def _missing(
    spec: SweepSpec, stacks: Sequence[Stack], known: Known, book: PriceBook | None
) -> Iterator[Problem]:
    """Keys, packages and prices that a run needs."""
    used = {(key, str(stack.spec[key])) for stack in stacks for key in MODELS if key in stack.spec}
    models = sorted((key, name) for key, name in used if name != NONE and name in known.names(key))
    wanting: dict[tuple[str, str], list[str]] = {}
    for key, name in models:
        for error in known.obstacles(key, name):
            wanting.setdefault(_told(error), []).append(name)
    for (found, do), names in wanting.items():
        yield Problem(", ".join(names), found, do, Severity.MISSING)
    if spec.budget.usd is not None and book is not None:
        billed = {each for key, name in models for each in known.billed(key, name)}
        for item, unit in sorted(billed):
            price = book.find(item, unit)
            if price is None or price.currency != CURRENCY:
                found = f"There is no price of {item} ({unit}) in the price book {book.name}."
                do = "Add it to a file in data/prices, or run without budget.usd."
                yield Problem("budget.usd", found, do, Severity.MISSING)


def _told(error: ClqError) -> tuple[str, str]:
    """What several models may lack alike: a key is one problem."""
    if getattr(error, "kind", "") == "auth" and error.where:
        return f"The key {error.where} is not set.", error.do
    return error.found, error.do
