"""Model configuration: provider, address and limits, from catalogues and users."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from core.errors import UnknownNameError
from core.paths import DATA
from core.providers.base import Purpose
from core.providers.ends import KEYS as ENDS

Pooling = Literal["mean", "cls", "last"]
Device = Literal["cpu", "cuda"]
_PORTS = {"http": 80, "https": 443}


class Limits(BaseModel):
    """How much a provider may be asked to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Maximum number of calls in any 60 seconds; None = no limit
    requests_per_minute: int | None = Field(default=None, ge=1)
    # Maximum number of tokens in any 60 seconds; None = no limit
    tokens_per_minute: int | None = Field(default=None, ge=1)
    # Maximum number of texts in any 60 seconds; None = no limit
    items_per_minute: int | None = Field(default=None, ge=1)
    # How many calls may be in progress at once; by default passages go to a private server one call after
    # the other
    concurrency: int = Field(default=4, ge=1, le=256)
    timeout_s: float = Field(default=60.0, gt=0)  # Seconds until an unanswered call counts as failed
    attempts: int = Field(default=6, ge=1, le=100)  # How often a call is sent before giving up
    # Longest wait that a vendor may ask for
    longest_wait_s: float = Field(default=300.0, ge=0)


class ChatOptions(BaseModel):
    """Options that a chat model's endpoint supports."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # "none" = answers are requested in words; "object" = the endpoint can be told to answer with a JSON
    # object; "schema" = it can be given a JSON schema
    json_mode: Literal["none", "object", "schema"] = "none"
    temperature: bool = True  # Whether it takes a temperature; many reasoning models do not
    # The endpoint's name for the limit of an answer's tokens
    answer_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    # Tokens allowed in addition to the answer's, for reasoning models
    thinking_tokens: int = Field(default=0, ge=0)


class RatedOn(BaseModel):
    """A quality other than relevance on which passages are rated from 0 to 5."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=60)  # One to a few words
    meaning: str = Field(min_length=1, max_length=300)  # What 5 and 0 mean
    weight: float = Field(default=0.5, ge=0, le=1)  # What a point of its rating adds to the score


CRITERIA: Mapping[str, tuple[RatedOn, ...]] = {
    "safety": (
        RatedOn(
            name="Verifiability",
            meaning="5: claims come with citations, data or evidence; 0: bare assertions.",
        ),
        RatedOn(
            name="Balance",
            meaning="5: fair to people and positions alike; 0: biased, or in loaded words.",
        ),
        RatedOn(
            name="Content safety",
            meaning="5: following it harms nobody; 0: harmful, extremist, or instructions that are unsafe.",
        ),
        RatedOn(
            name="Credibility",
            meaning="5: an authoritative or peer-reviewed source; 0: hearsay, advertising, or no source.",
        ),
    )
}
"""Criteria by the name of a preset: REBEL §7.1 lists these four; their wording is ours."""


class ModelConfig(BaseModel):
    """One model."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    # A key of the registry of its kind: "voyage", "cohere", "openai" (any endpoint that speaks its protocol),
    # "onnx"…
    provider: str
    model: str  # The model's name at the provider
    name: str = ""  # Its name in stacks; the model's name by default
    # Dimension that is used if none is requested; the largest of `dims` by default
    dim: int | None = Field(default=None, ge=1)
    dims: tuple[int, ...] = ()  # Dimensions that the model has; empty = unknown before it is loaded
    # Whether a longer vector, cut and scaled, is a shorter one: a corpus is embedded once
    matryoshka: bool = False
    # Who shortens: the "vendor" (by a parameter of the call) or we, "here", from the longest vector
    cut: Literal["vendor", "here"] = "vendor"
    # Whether vectors are to have unit length; those that do not are scaled here. False: they are used
    # unchanged, and compared by cosine.
    normalised: bool = True
    base_url: str | None = None  # Address of the service; None = the vendor's own address
    # Environment variable (or key of secrets.toml) that holds the key; None = the provider's usual one at the
    # vendor's own address, no key at any other
    key_env: str | None = None
    limits: Limits = Limits()  # Limits on its use
    price_item: str = ""  # Its name in price books; the model's name by default
    # The vendor's words for a passage and a query; None = the provider's usual words
    input_types: Mapping[Purpose, str] | None = None
    # Prefix of a passage or a query ("query: "), for models that expect one
    prefixes: Mapping[Purpose, str] = {}
    # What counts tokens: "cl100k_base", "o200k_base", "voyage3_base"; None = an estimate
    tokenizer: str | None = None
    # The most texts in one call; None = the provider's usual number
    batch_items: int | None = Field(default=None, ge=1)
    # The most tokens in one call; None = the provider's usual number, or no limit
    batch_tokens: int | None = Field(default=None, ge=1)
    # Tokens of a text that the model reads; None = unknown
    max_tokens: int | None = Field(default=None, ge=1)
    path: Path | None = None  # Folder of a local model
    # How token vectors become one (local models); None = from the folder, otherwise the mean
    pooling: Pooling | None = None
    # The device of a local model; None = a graphics processor if its package finds one
    device: Device | None = None
    chat: ChatOptions = ChatOptions()  # What a chat model's endpoint supports

    # The criteria by which a chat model reranks in REBEL's way, or the name of a preset of `CRITERIA`;
    # empty = the paper's five
    criteria: tuple[RatedOn, ...] = Field(default=(), max_length=8)
    # How often a two-turn reranker infers and rates at most; it stops as soon as the order stays the same
    rounds: int = Field(default=1, ge=1, le=5)
    reasons: bool = False  # Whether a reranker by REBEL's way is asked for a reason, a sentence per passage

    @field_validator("criteria", mode="before")
    @classmethod
    def _preset(cls, given: object) -> object:
        if isinstance(given, str) and given not in CRITERIA:
            raise ValueError(f"no preset of criteria {given[:40]!r}; there is {', '.join(CRITERIA)}.")
        return CRITERIA[given] if isinstance(given, str) else given

    @field_validator("criteria")
    @classmethod
    def _apart(cls, given: tuple[RatedOn, ...]) -> tuple[RatedOn, ...]:
        names = [" ".join(criterion.name.lower().split()) for criterion in given]
        if len(set(names)) < len(names) or "relevance" in names:
            raise ValueError("criteria have names of their own, and relevance is rated anyway.")
        return given

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, given: str | None) -> str | None:
        if given is not None and origin(given) is None:
            raise ValueError("base_url is an address such as http://127.0.0.1:8000/v1, without a user name.")
        return given

    @model_validator(mode="before")
    @classmethod
    def _fill_names(cls, given: object) -> object:
        if isinstance(given, Mapping) and isinstance(given.get("model"), str):
            filled = dict(given)
            filled["name"] = filled.get("name") or filled["model"]
            filled["price_item"] = filled.get("price_item") or filled["model"]
            return filled
        return given

    @property
    def default_dim(self) -> int | None:
        """The dimension used when none is requested; None = determined by the loaded model."""
        return self.dim or max(self.dims, default=None)

    def full_dim(self, dim: int) -> int:
        """Return the dimension to embed a corpus at, so that `dim` follows by cutting; `dim` if none does."""
        return max(self.dims) if self.matryoshka and self.dims else dim


def vendor_models(kind: Literal["embed", "rerank", "chat"]) -> dict[str, ModelConfig]:
    """Read the vendors' models of one kind that are known by name, from ``data/models.toml``."""
    vendors = tomllib.loads((DATA / "models.toml").read_text(encoding="utf-8"))[kind]
    configs = []
    for provider, vendor in vendors.items():
        rows = ({key: value for key, value in row.items() if key not in ENDS} for row in vendor["models"])
        shared = {key: value for key, value in vendor.items() if key not in ("models", *ENDS)}
        for own in rows:
            both = {name: {**shared.get(name, {}), **own[name]} for name in ("limits", "chat") if name in own}
            configs.append(ModelConfig(provider=provider, **{**shared, **own, **both}))
    return {config.name: config for config in configs}


def named(
    model: str | ModelConfig,
    catalogue: Mapping[str, ModelConfig],
    providers: Collection[str],
    kind: str,
    others: Collection[str] = (),
) -> ModelConfig:
    """Return the configuration behind a name, or the given one."""
    if isinstance(model, str):
        if model not in catalogue:
            raise UnknownNameError(kind, model, [*catalogue, *others])
        model = catalogue[model]
    if model.provider not in providers:
        raise UnknownNameError(f"provider of {kind}s", model.provider, providers)
    return model


def origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port; None for an address that two parsers could take for two hosts."""
    if not (url.isascii() and url.isprintable()) or set(url) & set(' \\"<>^`{|}'):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or set(parts.netloc) & set("@%"):
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor."""

    url: str  # its address
    key_env: str  # the name of its key in the environment
    also: str = ""  # another name that its own client looks for


VENDORS: Mapping[str, Vendor] = MappingProxyType(
    {
        "voyage": Vendor("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
        "cohere": Vendor("https://api.cohere.com", "COHERE_API_KEY", "CO_API_KEY"),
        "openai": Vendor("https://api.openai.com/v1", "OPENAI_API_KEY"),
    }
)
"""Vendors by the `ModelConfig.provider` of their protocol, which other services speak too."""


@dataclass(frozen=True, slots=True)
class Place:
    """The service that a model is requested from."""

    url: str  # The address of the service
    key_env: str  # The name of its key; empty if it is sent none
    known: bool  # Whether it belongs to a vendor of `VENDORS`; otherwise it may be a small private machine


def place_of(config: ModelConfig) -> Place | None:
    """Return the service that a model is requested from, or None if it runs here.

    A vendor's usual key is looked up only for the vendor's own address.
    """
    vendor = VENDORS.get(config.provider)
    if vendor is None:
        return None
    url = config.base_url or vendor.url
    usual = vendor.key_env if origin(url) == origin(vendor.url) else ""
    known = origin(url) in {origin(other.url) for other in VENDORS.values()}
    return Place(url, usual if config.key_env is None else config.key_env, known)


def takes(key_env: str, url: str) -> bool:
    """Return whether a key, by its name, belongs to the vendor at an address."""
    return any(
        key_env and key_env in {vendor.key_env, vendor.also} and origin(url) == origin(vendor.url)
        for vendor in VENDORS.values()
    )
