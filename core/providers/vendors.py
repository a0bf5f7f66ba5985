"""Vendors: where each is reached, and which key it takes; a key goes to its vendor and to nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.providers.config import ModelConfig, origin


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor.

    Attributes:
        url: Its address.
        key_env: Where its key is looked up.
        also: Another name that its own client looks for.
    """

    url: str
    key_env: str
    also: str = ""


VENDORS: Mapping[str, Vendor] = MappingProxyType(
    {
        "voyage": Vendor("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
        "cohere": Vendor("https://api.cohere.com", "COHERE_API_KEY", "CO_API_KEY"),
        "openai": Vendor("https://api.openai.com/v1", "OPENAI_API_KEY"),
    }
)
"""By what `ModelConfig.provider` calls their language, which other services speak too."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is asked.

    Attributes:
        url: The address of the service.
        key_env: Where its key is looked up; empty when it is sent none.
        known: Whether a vendor of `VENDORS` is there; else it may be a small machine of one's own.
    """

    url: str
    key_env: str
    known: bool


def place_of(config: ModelConfig) -> Place | None:
    """Where a model is asked; None when it runs here.

    A vendor's usual key is looked up for the vendor's own address only.
    """
    vendor = VENDORS.get(config.provider)
    if vendor is None:
        return None
    url = config.base_url or vendor.url
    usual = vendor.key_env if origin(url) == origin(vendor.url) else ""
    known = origin(url) in {origin(each.url) for each in VENDORS.values()}
    return Place(url, usual if config.key_env is None else config.key_env, known)


def takes(key_env: str, url: str) -> bool:
    """Whether a key, by its name, is that of the vendor at an address."""
    return any(
        key_env and key_env in {vendor.key_env, vendor.also} and origin(url) == origin(vendor.url)
        for vendor in VENDORS.values()
    )
