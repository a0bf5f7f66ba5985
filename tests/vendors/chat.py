"""What the chat model answers: what the product's fake chat model does where the request brings a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.providers.chat.fake import made_answer


def answer(body: Mapping[str, Any]) -> str:
    """The assistant's message for a request of /chat/completions."""
    user = str(body["messages"][-1]["content"])
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return made_answer(user, schema) if schema else "I read: " + user[:200]
