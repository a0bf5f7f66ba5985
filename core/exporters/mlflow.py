"""Send parameters and metrics of runs to an MLflow tracking server, through its REST API (version 2.0).

https://mlflow.org/docs/latest/rest-api.html. Credentials come from MLFLOW_TRACKING_TOKEN, or from
MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, as MLflow's own client takes them; they are sent to the
named server only (redirects are not followed) and shown nowhere.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from core.errors import InputError

TIMEOUT_S = 30.0
_API = "/api/2.0/mlflow/"
_MOST_METRICS, _MOST_PARAMS, _LONGEST_PARAM = 900, 90, 6000
"""A batch may hold 1,000 entries, 100 of them parameters; a parameter 6,000 characters (MLflow 2.8 on)."""
_LONGEST_NAME = 240  # MLflow allows 250; the rest is for a number if names coincide
_PER_PARAM = _MOST_METRICS // _MOST_PARAMS
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Tracked:
    """Figures and parameters of one run, in MLflow's form."""

    name: str  # its label
    created_at: datetime  # when it was run or reported
    params: Mapping[str, str] = field(default_factory=dict)  # settings by name
    metrics: Mapping[str, float] = field(default_factory=dict)  # numbers by name; unknown ones are left out
    tags: Mapping[str, str] = field(default_factory=dict)  # texts by name


def key(name: str) -> str:
    """Convert a name to MLflow's rules: ``N-Recall4+@10`` becomes ``N-Recall4plus_at_10``."""
    plain = name.replace("%", "pct_").replace("+", "plus").replace("@", "_at_")
    return re.sub(r"[^\w. -]+", "_", plain)[:_LONGEST_NAME].strip("_. ") or "unnamed"


def send(
    runs: Sequence[Tracked], uri: str, experiment: str, *, environ: Mapping[str, str] = os.environ
) -> list[str]:
    """Log runs; every call creates new ones.

    Args:
        uri: The tracking server, ``http://`` or ``https://``.

    Returns:
        The ids that the server assigned, in order.

    Raises:
        InputError: If the address cannot be used, or the server refuses or does not answer.
    """
    server = _Server(uri, environ)
    known = server.get(f"experiments/get-by-name?experiment_name={quote(experiment, safe='')}")
    reply = (
        server.post("experiments/create", {"name": experiment}) if known is None else known.get("experiment")
    )
    experiment_id = _text(reply, "experiment_id", server)
    logged_ids: list[str] = []
    try:
        logged_ids.extend(_log(server, experiment_id, run) for run in runs)
    except InputError as error:
        logged = f"{len(logged_ids)} of {len(runs)} runs were logged."
        raise InputError(f"{logged} {error.found}", where=server.name, do=error.do) from error
    return logged_ids


def _log(server: _Server, experiment_id: str, run: Tracked) -> str:
    at = int(run.created_at.timestamp() * 1000)
    tags = [{"key": name, "value": value} for name, value in run.tags.items()]
    begun = {"experiment_id": experiment_id, "run_name": run.name[:250], "start_time": at, "tags": tags}
    answer = server.post("runs/create", begun).get("run")
    run_id = _text(answer.get("info") if isinstance(answer, dict) else None, "run_id", server)
    try:
        _fill(server, run_id, run, at)
    except InputError:
        with suppress(InputError):  # the original error is reported
            server.post("runs/update", {"run_id": run_id, "status": "FAILED", "end_time": at})
        raise
    server.post("runs/update", {"run_id": run_id, "status": "FINISHED", "end_time": at})
    return run_id


def _fill(server: _Server, run_id: str, run: Tracked, at: int) -> None:
    metrics = [
        {"key": name, "value": value, "timestamp": at, "step": 0}
        for name, value in _unique(run.metrics)
        if math.isfinite(value)
    ]
    params = [{"key": name, "value": value[:_LONGEST_PARAM]} for name, value in _unique(run.params)]
    for start in range(0, max(len(metrics), len(params) * _PER_PARAM), _MOST_METRICS):
        batch = {
            "metrics": metrics[start : start + _MOST_METRICS],
            "params": params[start // _PER_PARAM : (start + _MOST_METRICS) // _PER_PARAM],
        }
        held = {kind: values for kind, values in batch.items() if values}
        server.post("runs/log-batch", {"run_id": run_id, **held})


def _unique(named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield entries under names that MLflow allows; if names coincide, the later ones get a number."""
    used: dict[str, int] = {}
    for name, value in named.items():
        allowed = key(name)
        used[allowed] = used.get(allowed, 0) + 1
        yield (allowed if used[allowed] == 1 else f"{allowed}_{used[allowed]}"), value


def _text(reply: object, name: str, server: _Server) -> str:
    value = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(value, str) or not value:
        problem = f"The answer has no {name}: this is not an MLflow tracking server."
        raise InputError(problem, where=server.name)
    return value


class _Server:
    """A tracking server; answers are JSON objects."""

    def __init__(self, uri: str, environ: Mapping[str, str]) -> None:
        parts = urlsplit(uri)
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.username or parts.password:
            raise InputError(
                "The address of the tracking server holds credentials.",
                do="Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.",
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise InputError(
                f"{uri[:120]!r} is not the address of a tracking server.",
                do="Write it as http://host:port or https://host.",
            )
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._path = parts.path.rstrip("/") + _API
        self._secrets, self._headers = _authorised(environ)

    def get(self, path: str) -> dict[str, Any] | None:
        """Return the answer, or None if it does not exist."""
        return self._call("GET", path, None)

    def post(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Send an object and return the one in the answer."""
        return self._call("POST", path, json.dumps(content, allow_nan=False).encode()) or {}

    def _call(self, method: str, path: str, body: bytes | None) -> dict[str, Any] | None:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, self._path + path, body, self._headers)
            answer = connection.getresponse()
            content = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise InputError(
                f"The tracking server does not answer: {self._clean(str(error) or type(error).__name__)}.",
                where=self.name,
                do="Check that it runs and that the address is right.",
            ) from None
        finally:
            connection.close()
        return self._read(method, path, answer.status, content)

    def _read(self, method: str, path: str, status: int, content: bytes) -> dict[str, Any] | None:
        try:
            content_read = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            content_read = None
        reply = content_read if isinstance(content_read, dict) else {}
        if method == "GET" and status == 404 and reply.get("error_code") == "RESOURCE_DOES_NOT_EXIST":
            return None
        if status in (401, 403):
            raise InputError(
                f"The tracking server refuses the request ({status}).",
                where=self.name,
                do="Set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.",
            )
        if status != 200 or not isinstance(content_read, dict):
            said = self._clean(str(reply.get("message") or reply.get("error_code") or "no MLflow answer"))
            asked = path.split("?", maxsplit=1)[0]
            raise InputError(f"{asked} was answered with {status}: {said[:300]}.", where=self.name)
        return content_read

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text


def _authorised(environ: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    token = environ.get("MLFLOW_TRACKING_TOKEN", "")
    user, password = (environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    if token:
        return (token,), {**headers, "Authorization": f"Bearer {token}"}
    if user and password:
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        return (password, pair), {**headers, "Authorization": f"Basic {pair}"}
    return (), headers
