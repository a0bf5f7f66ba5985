"""Connections of remote models, and the vendors' clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from core.errors import ProviderError
from core.providers.base import Meter, Model
from core.providers.calls import Caller, Journal, Keys, caller_for
from core.providers.config import ModelConfig, Place, place_of
from core.providers.tokens import counter

if TYPE_CHECKING:
    from cohere import ClientV2
    from openai import OpenAI
    from voyageai.client import Client


N = TypeVar("N", np.float32, np.float64)

MARGIN = 0.75  # Share of a vendor's token limit that a batch may fill if its tokens are only estimated


class Wired(TypedDict, total=False):
    """Connections of a model that replace the usual ones."""

    keys: Keys | None  # where keys are looked up; the environment and secrets.toml by default
    journal: Journal | None  # where replies are stored
    meter: Meter | None  # tracks the spending
    caller: Caller | None  # sends the calls; by default the one that the process shares for the model


class Remote(Model):
    """A vendor's model: how it is reached, and how its tokens are counted."""

    local = False

    def _reach(self, config: ModelConfig, wired: Wired) -> None:
        """Set the model's address; this needs neither a key nor a package."""
        self._config, self._place = config, cast(Place, place_of(config))
        self.name, self.item = config.name, config.price_item
        self.provider = f"{config.provider} {config.model} at {self._place.url}"
        self.counter = counter(config.tokenizer)
        self._keys, self._meter = wired.get("keys") or Keys(), wired.get("meter")
        self._caller = wired.get("caller") or caller_for(config, self._place)

    def _within(self, most: int | None) -> int | None:
        """Return a vendor's token limit, with a margin for the error of an estimate."""
        return int(most * MARGIN) if most and not self.counter.exact else most

    @cached_property
    def client(self) -> Any:  # noqa: ANN401 - a client of any vendor
        """The vendor's client, with its own retries off, made on first use."""
        name = self._place.key_env
        key = self._keys.need(name, self.name, self._place.url).reveal() if name else "none"
        return _CLIENTS[self._config.provider](key, self._place, self._config.limits.timeout_s)

    def _require_places(self, places: Sequence[int], asked: Sequence[str], *, whole: bool = False) -> None:
        """Refuse results that do not each match a different text, or, if `whole`, do not cover all texts."""
        known = len(set(places)) == len(places) and all(0 <= at < len(asked) for at in places)
        if not known or not places or (whole and len(places) < len(asked)):
            raise ProviderError(
                f"{len(places)} results came for {len(asked)} texts.",
                kind="count",
                where=self.name,
                do="Try again; if it stays so, this service cannot be used for this.",
            )

    def _numbers(self, received: Sequence[Any], kind: type[N]) -> NDArray[N]:
        """Return received rows as an array; refuse values that are not numbers and rows of unequal length."""
        try:
            return np.asarray(received, dtype=kind)
        except (TypeError, ValueError) as error:
            lengths = {len(row) if isinstance(row, Sequence) else None for row in received}
            shapes = ", ".join(
                sorted("null" if length is None else f"{length} numbers" for length in lengths)
            )
            raise ProviderError(
                f"{len(received)} results came that are not alike or no numbers: {shapes}.",
                kind="unreadable",
                where=self.name,
                do="Check the service behind base_url; nothing of this answer is kept.",
            ) from error

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text, exact or estimated."""
        return self.counter.count(text)

    def ready(self) -> None:
        """Look up the key, and load the client."""
        self.client  # noqa: B018 - made by being asked for

    def interrupt(self) -> None:
        """End all waits."""
        self._caller.interrupt()

    def close(self) -> None:
        """Close the client's connections, if it can."""
        close = getattr(vars(self).get("client"), "close", None)
        if close is not None:
            close()


def _openai(key: str, place: Place, timeout_s: float) -> OpenAI:
    """Make OpenAI's client; servers without keys ignore the one that it insists on.

    On its own it sends what the environment says about OpenAI's account (organisation, project, headers) to
    any address; here only OpenAI's address gets that.
    """
    import openai  # noqa: PLC0415 - slow to load

    client = openai.OpenAI(api_key=key, base_url=place.url, timeout=timeout_s, max_retries=0)
    if not place.known:
        client.organization = client.project = None
        client._custom_headers = {}  # there is no other way
    return client


def _voyage(key: str, place: Place, timeout_s: float) -> Client:
    """Make the client of Voyage's protocol; without an explicit key it would look for one itself."""
    from voyageai.client import Client  # noqa: PLC0415 - a second to load

    return Client(api_key=key, max_retries=0, timeout=timeout_s, base_url=place.url)


def _cohere(key: str, place: Place, timeout_s: float) -> ClientV2:
    """Make the client of Cohere's protocol with our own connections, because it cannot be closed itself."""
    import cohere  # noqa: PLC0415 - slow to load
    import httpx  # noqa: PLC0415

    connections = httpx.Client(timeout=timeout_s, follow_redirects=True)
    client = cohere.ClientV2(
        api_key=key,
        base_url=place.url,
        timeout=timeout_s,
        httpx_client=connections,
        max_retries=0,
        log_warning_experimental_features=False,
    )
    client.close = connections.close  # type: ignore[attr-defined]
    return client


_CLIENTS: Mapping[str, Callable[[str, Place, float], Any]] = MappingProxyType(
    {"openai": _openai, "voyage": _voyage, "cohere": _cohere}
)
"""Functions that make a client from key, place and seconds, by `ModelConfig.provider`."""
