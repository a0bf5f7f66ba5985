"""What every remote model is connected to, and the line to its vendor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import InputError
from core.providers.base import Meter
from core.providers.calls import Caller, Journal, Keys, Secret, caller_for
from core.providers.config import ModelConfig, Place, place_of
from core.providers.tokens import TokenCounter, counter

if TYPE_CHECKING:
    from openai import OpenAI


MARGIN = 0.75
"""How much of a vendor's token limit a batch may fill when its tokens are only estimated."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What models are connected to."""

    keys: Keys  # where keys are looked up
    journal: Journal | None = None  # where replies are kept, or None
    meter: Meter | None = None  # what watches the spending, or None
    caller: Caller | None = None  # sends the calls; None = the one that the process shares for the model


@dataclass(frozen=True, slots=True)
class Line:
    """The line to the vendor of one model."""

    config: ModelConfig  # which model, reached how
    place: Place  # where the service is, and where its key is looked up
    caller: Caller  # sends the calls
    counter: TokenCounter  # counts its tokens
    wiring: Wiring  # what it is connected to

    @property
    def base_url(self) -> str:
        """Where the service is."""
        return self.place.url

    @property
    def provider(self) -> str:
        """Who answers, for the journal."""
        return f"{self.config.provider} {self.config.model} at {self.base_url}"

    def key(self) -> Secret | None:
        """The key; None when none is needed."""
        name = self.place.key_env
        return self.wiring.keys.need(name, self.config.name, self.place.url) if name else None

    def within(self, most: int | None) -> int | None:
        """A vendor's token limit, with room for the error of an estimate where tokens are estimated."""
        return int(most * MARGIN) if most and not self.counter.exact else most


def line_to(config: ModelConfig, wiring: Wiring) -> Line:
    """Make the line of a model of a vendor; needs neither a key nor a package."""
    place = place_of(config)
    if place is None:
        raise InputError(f"Models of {config.provider} run here and are not called.", where=config.name)
    caller = wiring.caller or caller_for(config, place)
    return Line(config, place, caller, counter(config.tokenizer), wiring)


def openai_client(line: Line, key: Secret | None) -> OpenAI:
    """Make the client; servers without keys ignore the one that it insists on.

    By itself it sends what the environment says of OpenAI's account (organisation, project, headers) to any
    address; others than OpenAI's do not get that.
    """
    import openai  # noqa: PLC0415 - slow to load

    client = openai.OpenAI(
        api_key=key.reveal() if key else "none",
        base_url=line.base_url,
        timeout=line.config.limits.timeout_s,
        max_retries=0,
    )
    if not line.place.known:
        client.organization = client.project = None
        client._custom_headers = {}  # there is no other way
    return client
