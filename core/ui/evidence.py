"""What the evidence page reads, kept for as long as the data and the question are the same."""

from __future__ import annotations

import polars as pl
import streamlit as st

from core.ui import cache
from core.ui.view import View
from core.views.evidence import page
from core.views.evidence.page import Judged
from core.views.scope import Quality, Scope


def judged(view: View) -> Judged | None:
    """What the golden set of the workspace holds; see `core.views.evidence.page.judged`."""
    return _judged(str(cache.store().path), view.snapshot.revision, view.scope)


@st.cache_resource(show_spinner="Reading the judgements…", max_entries=32)
def _judged(path: str, revision: int, scope: Scope) -> Judged | None:
    del path  # part of the key
    return page.judged(cache.snapshot(revision), scope)


def pool_bias(view: View) -> pl.DataFrame:
    """Leave-one-run-out; see `core.views.evidence.page.pool_bias`."""
    return _pool_bias(str(cache.store().path), view.snapshot.revision, view.scope, view.quality)


@st.cache_resource(show_spinner="Leaving out one run at a time…", max_entries=32)
def _pool_bias(path: str, revision: int, scope: Scope, quality: Quality) -> pl.DataFrame:
    del path  # part of the key
    return page.pool_bias(cache.snapshot(revision), scope, quality)
