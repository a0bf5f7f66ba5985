"""What the page on measures and outcomes reads and computes, kept while data and question are the same."""

from __future__ import annotations

import polars as pl
import streamlit as st

from core.clq.correlation import Kind
from core.ui import cache
from core.ui.view import View
from core.views.outcome import page
from core.views.outcome.page import Curve
from core.views.outcome.samples import Samples
from core.views.outcome.samples import samples as read_samples
from core.views.scope import Scope


def samples(view: View) -> Samples | None:
    """The graded answers of the workspace; see `core.views.outcome.samples.samples`."""
    return _samples(str(cache.store().path), view.snapshot.revision, view.scope)


@st.cache_resource(show_spinner="Scoring what the answers were written from…", max_entries=8)
def _samples(path: str, revision: int, scope: Scope) -> Samples | None:
    del path  # part of the key
    return read_samples(cache.snapshot(revision), scope)


def correlations(view: View, kind: Kind, segment: str) -> tuple[pl.DataFrame, list[Curve]]:
    """Coefficients and alpha curves of a segment; see `core.views.outcome.page`."""
    return _correlations(str(cache.store().path), view.snapshot.revision, view.scope, kind, segment)


@st.cache_resource(show_spinner="Correlating…", max_entries=32)
def _correlations(
    path: str, revision: int, scope: Scope, kind: Kind, segment: str
) -> tuple[pl.DataFrame, list[Curve]]:
    found = _samples(path, revision, scope)
    if found is None:
        return pl.DataFrame(), []
    keep = page.segments(found.rows)[segment]
    return page.correlations(found, kind, keep), page.curves(found, kind, keep)
