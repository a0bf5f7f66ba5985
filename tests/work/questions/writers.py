"""A model that writes questions as it is told, for a local server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.providers.chat.ask import find_marked


def writer(body: Mapping[str, Any]) -> str:
    """A model that does as it is told."""
    system, user = (str(each["content"]) for each in body["messages"][:2])
    shown = dict(find_marked(user))
    passages = [text for label, text in shown.items() if label.startswith("passage")]
    if '{"known"' in system:
        return json.dumps({"known": "unknown"})
    if '{"query"' in system:
        return json.dumps({"query": f"Put otherwise: {shown['question'].rstrip('?')[::-1]}?"})
    said = [" ".join(text.split()[:12]) for text in passages]
    names = " ".join(word for text in said for word in text.split()[2:6])
    if "quotes is an empty list" in system:
        return answer(f"What lies beyond {names}?", [], "")
    return answer(f"Tell me of {names}?", [(at, text) for at, text in enumerate(said, 1)], "so it is")


def answer(question: str, quotes: list[tuple[int, str]], right: str) -> str:
    held = [{"passage": number, "quote": text} for number, text in quotes]
    return json.dumps({"asked": {"question": question, "quotes": held, "answer": right}})
