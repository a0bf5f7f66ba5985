"""Keys of providers: from the environment or from secrets.toml, and nowhere else; and their redaction.

A key that was looked up is remembered here, so that `redact` can take it out of every text that leaves the
program: messages of vendors repeat keys, and exceptions of their clients may carry headers.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.errors import ProviderError
from core.paths import ROOT

SECRETS = (ROOT / ".streamlit" / "secrets.toml", Path.home() / ".streamlit" / "secrets.toml")
"""Where the dashboard keeps its secrets, the project's own file first."""
HIDDEN = "[hidden]"
ALSO = {"COHERE_API_KEY": "CO_API_KEY"}
"""Another name that a vendor's own client looks for."""

_SHORTEST = 4  # a shorter "key" is a placeholder; hiding it would garble every text
_known: set[str] = set()
# Loggers of vendors' clients and of what they stand on: Voyage's, for one, logs what the service answers.
_LOGGERS = ("voyage", "cohere", "openai", "openai._base_client", "httpx", "httpx2", "urllib3.connectionpool")
_PATTERNS = (
    re.compile(r"(?i)(?<=bearer )[^\s\"',;}]+"),
    re.compile(r"\bsk-[\w*.-]{6,}"),  # as OpenAI's and those of many compatible services begin
    re.compile(r"\b(?:pa|al)-[\w*-]{20,}"),  # Voyage's
    re.compile(r"(?i)(?<=api[_-]key)[\"']?\s*[=:]\s*[\"']?[^\s\"',;}]+"),
    re.compile(r"(?<=://)[^/@\s]+(?=@)"),
)


class Secret:
    """A key that does not show itself; `reveal` hands it to a client."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value
        _known.add(value)
        for logger in _LOGGERS:
            logging.getLogger(logger).addFilter(_without_keys)

    def reveal(self) -> str:
        """The key."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    def __reduce__(self) -> tuple[type[Secret], tuple[str, str]]:
        raise TypeError("A key is not to be stored or sent to another process.")


class Keys:
    """Looks keys up.

    Args:
        environ: The environment; the process's own by default.
        secrets: TOML files that are searched after it, in this order.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, secrets: Sequence[Path] = SECRETS) -> None:
        self._environ = os.environ if environ is None else environ
        self._secrets = tuple(secrets)

    def find(self, name: str) -> Secret | None:
        """The key of this name, or None; an empty one counts as none.

        Raises:
            ProviderError: If a secrets file cannot be read, or the key cannot be sent in a header.
        """
        names = [name, ALSO[name]] if name in ALSO else [name]
        found = (self._environ.get(each) or self._from_files(each) for each in names)
        value = next((each for each in found if each), "")
        value = value.strip()
        if not value:
            return None
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise ProviderError(
                f"The key in {name} holds characters that no key has.", kind="auth", do="Copy it again."
            )
        return Secret(name, value)

    def need(self, name: str, model: str) -> Secret:
        """The key of this name.

        Args:
            name: Environment variable, or key of secrets.toml.
            model: What it is needed for, for the message.

        Raises:
            ProviderError: If there is none.
        """
        found = self.find(name)
        if found is None:
            raise ProviderError(
                f"There is no key for {model}.",
                kind="auth",
                where=name,
                do=f"Set the environment variable {name}, or {name} in .streamlit/secrets.toml.",
            )
        return found

    def _from_files(self, name: str) -> str | None:
        for path in self._secrets:
            value = _read(path).get(name)
            if isinstance(value, str) and value:
                return value
        return None


def redact(text: str) -> str:
    """The text without keys: those that were looked up, and whatever looks like one."""
    for key in sorted(_known, key=len, reverse=True):
        if len(key) >= _SHORTEST:
            text = text.replace(key, HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(HIDDEN, text)
    return text


def _without_keys(record: logging.LogRecord) -> bool:
    """A filter for loggers that lets every record through, without keys."""
    record.msg, record.args = redact(record.getMessage()), ()
    return True


def _read(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError):
        problem = "The file cannot be read."
    except tomllib.TOMLDecodeError as error:
        problem = f"The file is not TOML: {redact(str(error))}."
    raise ProviderError(
        problem, kind="auth", where=str(path), do="Correct it, or set the key in the environment."
    )
