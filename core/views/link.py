"""The link that opens a workspace in the dashboard, and the form of its settings in a URL."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit, urlunsplit

from core.analysis.workspace.answers import as_name
from core.analysis.workspace.query_sets import EVERY_SET, WORDS
from core.analysis.workspace.scope import AUTO, Answering, Latency
from core.decide.axes import COST, Axis
from core.decide.rules import Constraints, Rule
from core.metrics.rates import ANY
from core.params import Param

if TYPE_CHECKING:
    from core.analysis.workspace.view import View

RULES: Mapping[str, Rule] = {"highest quality": "quality", "lowest cost": "cost", "lowest latency": "latency"}
"""Rules by their names for people and for the link."""


def pinned(address: str, values: Mapping[str, object], revision: int) -> str:
    """Return a URL with settings, and with the revision of the numbers.

    Args:
        address: URL of the page; its query and fragment are replaced.
        values: Values by key, in the order to write them; empty ones are left out.
    """
    pairs = [(key, text) for key, value in values.items() if key != "rev" for text in written(value)]
    pairs.append(("rev", str(revision)))
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(pairs), ""))


def elsewhere(address: str) -> str | None:
    """Return a URL that others can open, or None if it is only known to this machine."""
    try:
        host = (urlsplit(address.strip()).hostname or "").rstrip(".")
    except ValueError:
        return None
    if not host or host == "localhost" or host.endswith(".localhost"):
        return None
    try:
        number = ip_address(host)
    except ValueError:
        return address
    number = getattr(number, "ipv4_mapped", None) or number
    return None if number.is_loopback or number.is_unspecified else address


def written(value: object) -> list[str]:
    """Return a widget's value in its URL form.

    A text per element, numbers without a trailing ``.0``.
    """
    if value is None or value == "":
        return []
    if isinstance(value, (list, tuple)):
        return [text for element in value for text in written(element)]
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, float):
        return [f"{value:.10g}"]
    return [str(value)]


def parameter_key(param: Param) -> str | None:
    """Return the URL key of a measure's parameter, or None if it has no widget.

    An alpha from 0 to 1 (of F and T) differs from the exponent of rarity: they share neither range nor
    default, so a value of one isn't valid for the other. Query noise differs from judge noise.
    """
    if not (param.step or param.choices):
        return None
    other = {"noise": "talk"} | ({"alpha": "mix"} if param.high <= 1 else {})
    return other.get(param.name, param.name)


def settings(view: View, *, runs: tuple[str, ...] = ()) -> dict[str, object]:
    """Return a workspace's settings by URL key; for a derived price book the changed prices."""
    scope, latency, limits = view.scope, view.latency, view.constraints
    quality, measure = view.quality, view.quality.measure
    values: dict[str, object] = {
        "ws": scope.collection_id,
        "gs": scope.golden_set_id,
        "runs": runs,
        "m": quality.bare if measure is None else measure.name,
        "k": quality.k,
    }
    if measure is not None:
        known = {param.name: parameter_key(param) for param in measure.info.params}
        values |= {key: value for name, value in measure.params if (key := known[name])}
    return values | {
        "on": latency.percentile,
        "lat": latency.scope,
        **_generator(latency),
        **{axis.limit: _asked(limits, axis) for axis in limits.axes},
        "jitter": limits.jitter_ms,
        "delta": view.indifference,
        "take": view.take,
        "now": view.running_name,
        **view.terms.in_address(),
        "book": view.book.name,
        "price": view.book.changes,
        **_answering(scope.answering),
        "gq": EVERY_SET if scope.judging.everywhere else None,
        "by": scope.cluster_by if scope.cluster_by != AUTO else None,
        "jq": WORDS.get(scope.judging.least),
    }


def _asked(limits: Constraints, axis: Axis) -> float | str | None:
    """Return a limit in its URL form: dollars with their unit."""
    limit = limits.of(axis)
    return limits.said(axis) if limit is None or axis.key != COST.key else limits.costs_said.typed(limit)


def _answering(asked: Answering) -> dict[str, object]:
    """Return whose answers count and the unit that a cost is per, if not the usual ones."""
    own: dict[str, object] = {"ansby": as_name(asked.reader), "scoredby": as_name(asked.scorer)}
    own |= {"costper": asked.per, "correct": asked.least}
    usual = {"ansby": ANY, "scoredby": ANY, "costper": Answering().per, "correct": Answering().least}
    return {key: value for key, value in own.items() if value != usual[key]}


def _generator(latency: Latency) -> dict[str, object]:
    """Return how generation is modelled, if it is."""
    model = latency.generation
    if model is None:
        return {}
    return {
        "gbase": model.speed.base_ms,
        "gin": model.speed.ms_per_1k_prompt,
        "gout": model.speed.ms_per_output,
        "gchunk": model.chunks,
        "gtok": model.tokens_per_chunk,
        "gprompt": model.prompt_tokens,
        "gans": model.output_tokens,
    }
