"""A tool's configuration as it may be kept in a manifest: verbatim, but without what may be a secret."""

from __future__ import annotations

import json
import re

from core.importers.read.jsons import plain

LEFT_OUT = "(left out: may be a secret)"
_TEXT_LIMIT = 100_000
_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:password|passwd|pwd|secret|token|api_?key|(?:access|secret|private|account)_key|credentials?"
    r"|authorization|auth|bearer|cookie|uri|url|endpoint|host|user|user_?name|dsn|connection_string)"
)
_SECRET_TEXT = re.compile(
    r"\bBearer\s+\S+"
    r"|\b(?:sk|pk|pa|lsv2|hf|xox[bp])[-_](?:[a-z]{2,8}[-_])?(?=\w*\d)[A-Za-z0-9_]{16,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+@"
)


def kept(config: object) -> object:
    """A JSON value as it may be kept.

    Keys that usually hold a secret or an address keep no value, and texts that look like a key are left out;
    everything else stays as it is (numbers that JSON cannot hold become null).
    """
    return _clean(plain(config, _TEXT_LIMIT))


def _clean(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: LEFT_OUT if isinstance(each, str) and each and _is_secret(key) else _clean(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, str):
        return _SECRET_TEXT.sub(LEFT_OUT, _inner(value))
    return value


def _inner(text: str) -> str:
    """JSON within a text keeps no secrets either; a text without any stays as it is, to the letter."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
        cleaned = _clean(value)
    except (ValueError, RecursionError):
        return text
    return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)


def _is_secret(key: str) -> bool:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()
    return _SECRET_KEY.fullmatch(re.sub(r"[\s.-]+", "_", snake)) is not None
