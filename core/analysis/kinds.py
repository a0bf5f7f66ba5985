"""Kinds of question: by tag and by length."""

from __future__ import annotations

import numpy as np
import polars as pl

from core.analysis.workspace.unanswerable import with_slice
from core.analysis.workspace.view import View
from core.arrays import Mask
from core.number_format import count
from core.records import is_group
from core.stats.intervals import LEAST

LENGTH = "length: "
"""Beginning of the kinds that are lengths; all others are tags."""


def tagged(view: View, query_ids: tuple[str, ...]) -> dict[str, Mask]:
    """Return a mask of the given queries for each kind: by tag, and by length.

    Kinds that hold all queries, or fewer than `LEAST`, are left out.
    """
    asked = with_slice(view.snapshot.queries(view.scope.collection_id), view.snapshot, view.scope)
    here = pl.DataFrame({"query_id": query_ids}).join(asked, on="query_id", how="left", maintain_order="left")
    words = here["text"].str.split(" ").list.len()
    known = words.drop_nulls().to_numpy()
    middle = int(np.median(known)) if len(known) else 0
    masks = {
        tag: here["tags"].list.contains(tag).fill_null(value=False).to_numpy()
        for tag in sorted(here["tags"].explode().drop_nulls().unique())
        if not is_group(tag)
    }
    masks[f"{LENGTH}up to {count(middle, 'word')}"] = (words <= middle).fill_null(value=False).to_numpy()
    masks[f"{LENGTH}over {count(middle, 'word')}"] = (words > middle).fill_null(value=False).to_numpy()
    return {kind: mask for kind, mask in masks.items() if LEAST <= mask.sum() < len(query_ids)}
