"""What every remote model is connected to, and the line to its vendor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

from core.errors import InputError
from core.providers.base import Meter, Model
from core.providers.calls import Caller, Journal, Keys, Secret, caller_for
from core.providers.config import ModelConfig, Place, place_of
from core.providers.tokens import TokenCounter, counter

if TYPE_CHECKING:
    from cohere import ClientV2
    from openai import OpenAI
    from voyageai.client import Client


MARGIN = 0.75  # How much of a vendor's token limit a batch may fill when its tokens are only estimated


@dataclass(frozen=True, slots=True)
class Wiring:
    """What models are connected to."""

    keys: Keys  # where keys are looked up
    journal: Journal | None = None  # where replies are kept, or None
    meter: Meter | None = None  # what watches the spending, or None
    caller: Caller | None = None  # sends the calls; None = the one that the process shares for the model


class Wired(TypedDict, total=False):
    """What a model is connected to, where that is not the usual; see `Wiring`."""

    keys: Keys | None
    journal: Journal | None
    meter: Meter | None
    caller: Caller | None


def wiring_of(wired: Wired) -> Wiring:
    """What a model is connected to; keys come from the environment and secrets.toml by default."""
    keys = wired.get("keys") or Keys()
    return Wiring(keys, wired.get("journal"), wired.get("meter"), wired.get("caller"))


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


class Remote(Model):
    """A model of a vendor: how it is reached, and how its tokens are counted."""

    local = False
    _config: ModelConfig
    _line: Line

    def _reach(self, config: ModelConfig, wiring: Wiring) -> None:
        self._config, self._line = config, line_to(config, wiring)
        self.name, self.item, self.provider = config.name, config.price_item, self._line.provider

    def connect(self, key: Secret | None) -> Any:  # noqa: ANN401 - a client of any vendor
        """Make the vendor's client, with its own retries off."""
        raise NotImplementedError

    @cached_property
    def client(self) -> Any:  # noqa: ANN401
        """The vendor's client, made when it is first asked for."""
        return self.connect(self._line.key())

    @property
    def base_url(self) -> str:
        """Where the service is."""
        return self._line.base_url

    @property
    def counter(self) -> TokenCounter:
        """What counts its tokens here."""
        return self._line.counter

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, exact or estimated."""
        return self._line.counter.count(text)

    def ready(self) -> None:
        """Look the key up, and load the client."""
        self.client  # noqa: B018 - made by being asked for

    def interrupt(self) -> None:
        """End waits that are under way."""
        self._line.caller.interrupt()

    def close(self) -> None:
        """Close the client's connections, where it can."""
        close = getattr(vars(self).get("client"), "close", None)
        if close is not None:
            close()


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


def voyage_client(line: Line, key: Secret | None) -> Client:
    """Make the client of Voyage's language; without a key of its own it would look for one by itself."""
    from voyageai.client import Client  # noqa: PLC0415 - a second to load

    return Client(
        api_key=key.reveal() if key else "none",
        max_retries=0,
        timeout=line.config.limits.timeout_s,
        base_url=line.base_url,
    )


def cohere_client(line: Line, key: Secret | None) -> ClientV2:
    """Make the client of Cohere's language, with connections of our own: it cannot be closed by itself."""
    import cohere  # noqa: PLC0415 - slow to load
    import httpx  # noqa: PLC0415

    timeout_s = line.config.limits.timeout_s
    connections = httpx.Client(timeout=timeout_s, follow_redirects=True)
    client = cohere.ClientV2(
        api_key=key.reveal() if key else "none",
        base_url=line.base_url,
        timeout=timeout_s,
        httpx_client=connections,
        max_retries=0,
        log_warning_experimental_features=False,
    )
    client.close = connections.close  # type: ignore[attr-defined]
    return client
