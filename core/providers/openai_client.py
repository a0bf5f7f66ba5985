"""The client of every service that speaks OpenAI's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.providers.calls import Secret
from core.providers.remote import Line

if TYPE_CHECKING:
    from openai import OpenAI


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
