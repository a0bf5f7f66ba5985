"""Ids that files write differently from their collection: patterns and rules that rewrite them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from core.errors import InputError
from core.importers.read.text import quoted

STAR, ADD = "*", "add:"
WRITINGS: Mapping[str, str] = {
    "lower": "lower case",
    "upper": "upper case",
    "number": "no .0 and no exponent",
    "unpadded": "no zeros before",
    "stem": "no number at the end (_1, .1)",
}
"""Rules that a pattern may name → how they write ids."""
_PAD = re.compile(r"pad([1-9]\d?)")
_EXPONENT = r"^\d+(\.\d+)?[eE]\+?\d+$"


def rewritten(known: pl.Expr, pattern: str) -> pl.Expr:
    """Return ids as a pattern or a rule writes them.

    Args:
        pattern: ``doc-*`` keeps the star, ``add:doc-*`` puts the rest around it, ``pad8`` fills
            up with zeros; or a name of `WRITINGS`.

    Raises:
        InputError: It is none of these.
    """
    if pad := _PAD.fullmatch(pattern):
        return known.str.zfill(int(pad[1]))
    if pattern in WRITINGS:
        return _by_rule(known, pattern)
    begin, star, end = pattern.removeprefix(ADD).partition(STAR)
    if not star or STAR in end:
        do = f"Write one {STAR} for what stays (doc-{STAR}), or {', '.join(WRITINGS)}."
        raise InputError(f"{quoted(pattern)} is not a pattern.", do=do)
    if pattern.startswith(ADD):
        return pl.concat_str(pl.lit(begin), known, pl.lit(end)).alias(known.meta.output_name())
    return known.str.strip_prefix(begin).str.strip_suffix(end)


def _by_rule(known: pl.Expr, rule: str) -> pl.Expr:
    if rule == "lower":
        return known.str.to_lowercase()
    if rule == "upper":
        return known.str.to_uppercase()
    if rule == "stem":
        return known.str.replace(r"[_.:#-]\d+$", "")
    if rule == "unpadded":
        return known.str.replace(r"^0+(\d)", "$1")
    whole = known.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False).cast(pl.String)
    plain = known.str.replace(r"^(\d+)\.0+$", "$1")
    written = pl.when(known.str.contains(_EXPONENT)).then(pl.coalesce(whole, known)).otherwise(plain)
    return written.alias(known.meta.output_name())


def fits(known: pl.Expr, pattern: str) -> pl.Expr:
    """Return whether a pattern fits each id: a rule fits all, an addition only ids that lack it."""
    begin, star, end = pattern.removeprefix(ADD).partition(STAR)
    if not star:
        return pl.lit(value=True)
    if pattern.startswith(ADD):
        return ~(known.str.starts_with(begin) & known.str.ends_with(end))
    longer = known.str.len_chars() > len(begin) + len(end)
    return known.str.starts_with(begin) & known.str.ends_with(end) & longer


def all_rewritten(ids: Sequence[str], pattern: str) -> list[str]:
    """Return ids as a pattern or a rule writes them, in their order."""
    table = pl.DataFrame({"id": ids}, schema={"id": pl.String})
    return table.select(rewritten(pl.col("id"), pattern)).to_series().to_list()


def in_words(pattern: str) -> str:
    """Describe the change to ids: ``lower case``, ``without “doc-…”``."""
    if pad := _PAD.fullmatch(pattern):
        return f"zeros before, {pad[1]} characters"
    marks = f"“{pattern.removeprefix('+').replace(STAR, '…').strip('…')}”"
    return WRITINGS.get(pattern) or f"{'with' if pattern.startswith('+') else 'without'} {marks}"
