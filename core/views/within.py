"""Stacks that the limits exclude, named wherever a page of Decide or Explain mentions them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

import polars as pl

from core.analysis.workspace.view import View
from core.views.ask import Ask
from core.views.blocks import Answer, Block, Blocks

CHIP = "beyond your limits"
NAMED = 3  # Maximum stacks named in a chip


def beyond(view: View) -> Mapping[str, str]:
    """Return the stacks that break a limit: name → by how much, in words. An unknown value breaks none."""
    excluded = view.decision.excluded().filter(pl.col("by").is_not_null())
    names = dict(view.table.select("run_id", "name").iter_rows())
    return {names[run_id]: reason for run_id, reason in excluded.select("run_id", "reason").iter_rows()}


def with_limits(rows: pl.DataFrame, view: View) -> pl.DataFrame:
    """Add the broken limits to rows that name a stack: column beyond; null = none."""
    reasons = beyond(view)
    words = [reasons.get(name) for name in rows["name"]]
    return rows.with_columns(pl.Series("beyond", words, dtype=pl.String))


def quoted(names: Iterable[str], words: str) -> list[str]:
    """Return the names that occur in a text as whole names: a stack's name may be a part of another's."""
    there = sorted((name for name in names if name in words), key=len, reverse=True)
    if not there:
        return []
    pattern = re.compile("|".join(f"(?<!⊕ ){re.escape(name)}(?![0-9]| [⊕+·] |, K = )" for name in there))
    return list(dict.fromkeys(pattern.findall(words)))


def told(reasons: Mapping[str, str]) -> str:
    """Say which limits some stacks break."""
    said = [f"{name}: {reason}." for name, reason in list(reasons.items())[:NAMED]]
    more = len(reasons) - NAMED
    return " ".join([*said, f"{more} more."] if more > 0 else said)


def limited(draw: Callable[[Any, Ask], Blocks]) -> Callable[[Any, Ask], Blocks]:
    """Make a section name the stacks in its answers that the limits exclude."""

    @wraps(draw)
    def drawn(place: Any, ask: Ask) -> Blocks:  # noqa: ANN401 - of a view, or None without a workspace
        blocks = draw(place, ask)
        return _named(place, blocks) if isinstance(place, View) else blocks

    return drawn


def _named(view: View, blocks: Blocks) -> Iterator[Block]:
    for block in blocks:
        if not isinstance(block, Answer):
            yield block
            continue
        reasons = beyond(view)
        names = quoted(view.table["name"], f"{block.sentence} {block.details}")
        left_out = {name: reasons[name] for name in names if name in reasons}
        yield replace(block, caveats={**block.caveats, CHIP: told(left_out)}) if left_out else block
