"""What every remote model is connected to, and the line to its vendor."""

from __future__ import annotations

from dataclasses import dataclass

from core.providers.base import Meter
from core.providers.calls import Caller, Journal, Keys, Secret, caller_for
from core.providers.config import ModelConfig
from core.providers.tokens import TokenCounter, counter

MARGIN = 0.75
"""How much of a vendor's token limit a batch may fill when its tokens are only estimated."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What models are connected to.

    Attributes:
        keys: Where keys are looked up.
        journal: Where replies are kept, or None.
        meter: What watches the spending, or None.
        caller: Sends the calls; None = the one that the process shares for the model.
    """

    keys: Keys
    journal: Journal | None = None
    meter: Meter | None = None
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """The line to the vendor of one model.

    Attributes:
        config: Which model, reached how.
        base_url: Where the service is; None = the client's own address.
        key_env: Where its key is looked up; empty when it needs none.
        caller: Sends the calls.
        counter: Counts its tokens.
        wiring: What it is connected to.
    """

    config: ModelConfig
    base_url: str | None
    key_env: str
    caller: Caller
    counter: TokenCounter
    wiring: Wiring

    @property
    def provider(self) -> str:
        """Who answers, for the journal."""
        return f"{self.config.provider} {self.config.model} at {self.base_url or 'home'}"

    def key(self) -> Secret | None:
        """The key; None when none is needed.

        Raises:
            ProviderError: If one is needed and there is none.
        """
        return self.wiring.keys.need(self.key_env, self.config.name) if self.key_env else None

    def within(self, most: int | None) -> int | None:
        """A vendor's token limit, with room for the error of an estimate where tokens are estimated."""
        return int(most * MARGIN) if most and not self.counter.exact else most


def line_to(config: ModelConfig, wiring: Wiring, *, usual_url: str | None, usual_key_env: str) -> Line:
    """Make the line of a model; needs neither a key nor a package.

    Args:
        config: Which model.
        wiring: What it is connected to.
        usual_url: The vendor's own address.
        usual_key_env: Where the vendor's key usually is.
    """
    base_url = config.base_url or usual_url
    key_env = key_env_of(config, usual_url=usual_url, usual_key_env=usual_key_env)
    caller = wiring.caller or caller_for(config.provider, config.model, base_url, config.limits, key_env)
    return Line(config, base_url, key_env, caller, counter(config.tokenizer), wiring)


def key_env_of(config: ModelConfig, *, usual_url: str | None, usual_key_env: str) -> str:
    """Where a model's key is looked up; empty when it needs none.

    The vendor's usual key is never sent to an address that is not the vendor's own.
    """
    if config.key_env is not None:
        return config.key_env
    return usual_key_env if config.base_url in {None, usual_url} else ""
