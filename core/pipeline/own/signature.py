"""Pipelines that return fewer than K passages: what their source says before they run, and words for it."""

from __future__ import annotations

import ast
from pathlib import Path

from core.number_format import count
from core.pipeline.own.config import OwnStack
from core.pipeline.own.endpoint import takes_filter
from core.pipeline.own.worker.clq_worker import FILTER, SIZES

_SHOWN = 5
NO_SIZE = f"it has no parameter for K ({', '.join(SIZES[:_SHOWN])}, n_results…)"


def takes_no_k(config: OwnStack) -> bool:
    """Return whether the source shows that no parameter takes K; False if it does not show it."""
    found = None if config.call is None else _function(config)
    if found is None or found.args.kwarg is not None:
        return False
    given = found.args
    names = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    return not names & (set(SIZES) - set(config.params))


def takes_no_filter(config: OwnStack) -> bool:
    """Return whether the source or the request shows that the filter of a query reaches no one."""
    if config.call is None:
        return not takes_filter(config)
    found = _function(config)
    if found is None:
        return False
    given = found.args
    return FILTER not in {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _function(config: OwnStack) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function or method that is called, if it is in a file of its folder."""
    module, _, path = (config.call or "").partition(":")
    place = (config.path or Path()).joinpath(*module.split("."))
    file = next((each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()), None)
    try:
        body = [] if file is None else ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    found: ast.stmt | None = None
    for part in path.split("."):
        found = next((each for each in body if getattr(each, "name", None) == part), None)
        body = found.body if isinstance(found, ast.ClassDef) else []
    decorated = getattr(found, "decorator_list", None)
    return found if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) and not decorated else None


def fewer_words(most: int, wanted: int, size: str | None) -> str:
    """Say that fewer passages came than requested, and why if its signature shows that.

    Args:
        most: The maximum number of passages in an answer.
        size: The parameter that took K; "" = none does; None = not known.
    """
    said = f"It returns at most {count(most, 'passage')} of the {wanted:,} asked for"
    return f"{said}: {NO_SIZE}." if size == "" else f"{said}{f' as {size}' if size else ''}."
