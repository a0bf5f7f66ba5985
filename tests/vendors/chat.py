"""What the chat model answers: by default it grades by shared words, as far as the prompt asks for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def answer(body: Mapping[str, Any]) -> str:
    """The assistant's message for a request of /chat/completions."""
    return "I read: " + str(body["messages"][-1]["content"])[:200]
