"""Keys of providers, which come only from the environment or secrets.toml, and their redaction.

A key that was looked up is remembered here, so that `redact` can remove it from every text that leaves the
program: messages of vendors repeat keys, and exceptions of their clients may contain headers.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.errors import InputError, ProviderError
from core.paths import INSTALLED, ROOT
from core.providers.config import VENDORS, origin, takes

SECRETS = tuple(
    folder / ".streamlit" / "secrets.toml" for folder in (Path.cwd() if INSTALLED else ROOT, Path.home())
)
"""Files in which the dashboard keeps its secrets, the project's own file first."""
HIDDEN = "[hidden]"
ALLOW = "CLQ_ALLOW_KEYS"
"""Variable for what the operator allows besides the vendors' own keys: NAME=ADDRESS, separated by blanks."""

_SHORTEST = 4  # a shorter "key" is a placeholder; hiding it would garble every text
_known: set[str] = set()
# Loggers of vendors' clients and of their dependencies; Voyage's, for one, logs the service's answers
_LOGGERS = ("voyage", "cohere", "openai", "openai._base_client", "httpx", "httpx2", "urllib3.connectionpool")
_PATTERNS = (
    re.compile(r"(?i)(?<=bearer )[^\s\"',;}]+"),
    re.compile(r"\bsk-[\w*.-]{6,}"),  # the form of OpenAI's keys, and of many compatible services
    re.compile(r"\b(?:pa|al)-[\w*-]{20,}"),  # the form of Voyage's keys
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
        """Return the key."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    def __reduce__(self) -> tuple[type[Secret], tuple[str, str]]:
        raise TypeError("A key is not to be stored or sent to another process.")


class Keys:
    """Looks up keys for addresses that they may be sent to.

    A vendor's key is for the vendor's own address. Any other pair of a name and an address must be listed in
    `ALLOW`, in the environment or in a secrets file, both of which belong to the operator: a specification
    cannot allow anything. A name that is not allowed is not even read.

    Args:
        environ: The environment; the process's own by default.
        secrets: TOML files that are searched after it, in this order.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, secrets: Sequence[Path] = SECRETS) -> None:
        self._environ = os.environ if environ is None else environ
        self._secrets = tuple(secrets)

    def allowed_by(self, name: str, url: str) -> str:
        """Return who allows a key to be sent to an address: "vendor" or "operator", or "" if nobody does.

        Raises:
            ProviderError: If a secrets file cannot be read, or `ALLOW` is malformed.
        """
        if takes(name, url):
            return "vendor"
        pairs = [entry.partition("=") for entry in self._value(ALLOW).split()]
        for key, _, to in pairs:
            if not key or origin(to) is None:
                raise ProviderError(
                    f"{key or 'An entry'} in {ALLOW} has no address that can be used.",
                    kind="refused",
                    where=ALLOW,
                    do=f'Write NAME=ADDRESS, for example {ALLOW}="MY_KEY=https://models.example.com".',
                )
        here = origin(url)
        return "operator" if any(key == name and origin(to) == here for key, _, to in pairs) else ""

    def find(self, name: str, url: str) -> Secret | None:
        """Return the key of this name for use at an address, or None; an empty key counts as none.

        Raises:
            ProviderError: If a secrets file cannot be read, or the key cannot be sent in a header.
            InputError: If the key may not be sent there.
        """
        if not self.allowed_by(name, url):
            raise InputError(
                f"The key {name} may not be sent to {url}.",
                where="key_env",
                do="A vendor's key goes to the vendor's own address. If this one belongs there, who runs the"
                f' program allows it with {ALLOW}="{name}={url}" in the environment or in'
                " .streamlit/secrets.toml.",
            )
        also = next((vendor.also for vendor in VENDORS.values() if vendor.key_env == name), "")
        value = (self._value(name) or (self._value(also) if also else "")).strip()
        if not value:
            return None
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise ProviderError(
                f"The key in {name} holds characters that no key has.", kind="auth", do="Copy it again."
            )
        return Secret(name, value)

    def need(self, name: str, model: str, url: str) -> Secret:
        """Return the key of this name."""
        secret = self.find(name, url)
        if secret is None:
            raise ProviderError(
                f"There is no key for {model}.",
                kind="auth",
                where=name,
                do=f"Set the environment variable {name}, or {name} in .streamlit/secrets.toml.",
            )
        return secret

    def setting(self, name: str) -> str:
        """Return the value of a setting that isn't a key, such as an address, or "" if it is unset."""
        return self._value(name).strip()

    def _value(self, name: str) -> str:
        if self._environ.get(name):
            return self._environ[name]
        for path in self._secrets:
            value = _read(path).get(name)
            if isinstance(value, str) and value:
                return value
        return ""


def redact(text: str) -> str:
    """Return the text without keys: both those that were looked up and anything that looks like one."""
    for key in sorted(_known, key=len, reverse=True):
        if len(key) >= _SHORTEST:
            text = text.replace(key, HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(HIDDEN, text)
    return text


def _without_keys(record: logging.LogRecord) -> bool:
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
