"""Vendors' embedders, connected to the local server through their real clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from core.providers.calls import Caller, Journal, Limits
from core.providers.embed import EMBEDDERS, RemoteEmbedder, make_embedder
from tests.vendors import Vendors, answers, keys_for

KEY = "pa-THISisTHEkey0123456789"
MODELS = {
    "voyage-3.5": ("voyage/embeddings", "VOYAGE_API_KEY", 256),
    "embed-v4.0": ("cohere/embed", "COHERE_API_KEY", 256),
    "text-embedding-3-small": ("openai/embeddings", "OPENAI_API_KEY", 256),
}
TEXTS = ["supersonic flow over a wing", "heat transfer", "the boundary layer of a flat plate", "shock waves"]

every_vendor = pytest.mark.parametrize("name", MODELS)


@contextmanager
def connected(
    vendors: Vendors,
    name: str,
    *,
    dim: int | None = None,
    journal: Journal | None = None,
    meter: Any = None,
    key: str = KEY,
    slept: list[float] | None = None,
    limits: Limits | None = None,
    **changes: Any,
) -> Iterator[RemoteEmbedder]:
    """A vendor's model at the local server; waits are noted and not waited."""
    _, key_env, usual = MODELS[name]
    address = getattr(vendors, EMBEDDERS[name].provider)
    limits = limits or Limits()
    told = {"base_url": address, "key_env": key_env, "limits": limits, **changes}
    config = EMBEDDERS[name].model_copy(update=told)
    waits = [] if slept is None else slept
    caller = Caller(
        limits,
        name=name,
        key_env=key_env,
        clock=lambda: time.monotonic() + sum(waits),
        sleep=waits.append,
        rng=lambda: 1.0,
    )
    made = make_embedder(
        config,
        dim or usual,
        keys=keys_for(vendors.url, **{key_env: key}),
        journal=journal,
        meter=meter,
        caller=caller,
    )
    assert isinstance(made, RemoteEmbedder)
    with made:
        yield made


def expected(texts: list[str], dim: int) -> np.ndarray:
    return np.array([answers.vector(text, dim) for text in texts])
