"""A measure as text: ``RA-nWG@10(alpha=0.5,cap3=0.2)``, ``PROC[RA-nWG]@10``, ``RBP(p=0.8)@30``.

It lists every measure that the product knows: those that the modules of the families declare, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from core.errors import InputError, UnknownNameError, nearest
from core.metrics import access, classical, contrast, gain, nuggets, plain, rates
from core.metrics.info import MeasureInfo, Values
from core.metrics.rates import with_ceiling
from core.metrics.robust import robust
from core.params import Param, ParamValue, show
from core.plugins import loaded

_FAMILIES = (gain, rates, classical, nuggets, access, contrast)
_OWN = tuple(info for family in _FAMILIES for info in vars(family).values() if isinstance(info, MeasureInfo))


def _plugged(name: str, value: object) -> MeasureInfo:
    """Return a plug-in's measure; refuse a built-in name, which would be confusing."""
    info = plain.made(name, value)
    if any(info.name.casefold() == own.name.casefold() for own in _OWN):
        raise InputError(f"Measure {info.name} is there already.", do="Give it another name.")
    return info


MEASURES = (*_OWN, *loaded("clq.measures", _plugged, {own.name for own in _OWN}).values())
"""The measures not derived from another as PROC or Robust: the product's own, then those of plug-ins."""

REGISTRY: Mapping[str, MeasureInfo] = MappingProxyType(
    {info.name: info for measure in MEASURES for info in with_ceiling(measure)}
    | {made.name: made for made in (robust(measure) for measure in MEASURES if not measure.needs)}
)
"""Declarations by canonical name without cutoff; forms with a ceiling follow X, Robust[X] follow all."""

_SPELLED = {
    "recall": "R",
    "precision": "P",
    "mrr": "RR",
    "reciprank": "RR",
    "map": "AP",
    "hitrate": "Success",
    "err": "ERR",
    "infap": "infAP",
    "setrecall": "R",
    "setp": "P",
    "setf": "F1",
}
_OF_SETS = ("setrecall", "setp", "setf")
"""Measures of trec_eval that have no cutoff: they count all that a run returns."""
_NEAR = {
    "rprec": ("P", "R"),
    "bpref": ("infAP", "AP"),
    "gmmap": ("AP",),
    "setmap": ("AP",),
    "setrelativep": ("P",),
    "iprecatrecall": ("P", "AP"),
    "rndcg": ("nDCG",),
}
"""Measures of other tools that are not computed here, by their bare names → what is nearest to them."""
_SHARES = (
    "accuracy", "exact match", "bpref", "Rprec", "F1 score", "faithfulness", "hallucination",
    "answer correctness", "factual correctness", "noise sensitivity", "context precision", "context recall",
    "context relevancy", "context relevance", "context utilization", "context entity recall",
    "contextual precision", "contextual recall", "contextual relevancy", "LLM context recall",
    "LLM context precision with reference", "LLM context precision without reference",
    "non LLM context recall", "non LLM context precision with reference", "nv accuracy",
    "nv context relevance", "nv response groundedness",
    # RAGAS's, by its documentation
    "response groundedness", "topic adherence", "tool call accuracy", "agent goal accuracy",
    "multi modal faithfulness", "multi modal relevance", "non LLM string similarity", "string present",
    "summary score", "quoted spans alignment",
    # DeepEval's, by its documentation
    "toxicity", "tool correctness", "task completion", "argument correctness",
    "json correctness", "prompt alignment", "role adherence", "knowledge retention",
    "conversation completeness", "conversation relevancy", "turn relevancy", "PII leakage",
    "role violation",
)  # fmt: skip
"""Measures that other tools compute, from 0 to 1."""
_JUDGED = re.compile(r"(?i)\[\s*(?:arena|conversational)?\s*g-?eval\s*\]|\(\s*g-?eval\s*\)")
"""What DeepEval appends to the name of a custom criterion, whose scores are from 0 to 1."""
_COSINES = ("answer relevancy", "answer similarity", "semantic similarity", "response relevancy")
"""Measures of other tools that are means of cosines, from −1 to 1."""

MAX_K = 10_000
_WORD = r"[^\s@()\[\],=]+"
_PARAMS = r"(?:\((?P<{0}>[^()]*)\))?"
_WRITTEN = re.compile(
    rf"(?P<name>{_WORD})(?:\[(?P<inner>{_WORD}){_PARAMS.format('of_inner')}\])?"
    rf"(?:@(?P<k>[0-9]{{1,9}}))?{_PARAMS.format('params')}(?:@(?P<k_after>[0-9]{{1,9}}))?"
)
_HOW = "Write Name@K(parameter=value), for example RA-nWG@10(alpha=0.5)."


@dataclass(frozen=True, slots=True)
class Measure:
    """A registered measure with its cutoff and parameters; equal meaning gives equal objects.

    Raises:
        UnknownNameError: If the name or a parameter is not declared; it lists the nearest names.
        InputError: If a value or the cutoff is out of range.
    """

    # Registered name without cutoff, for example "RA-nWG" or "PROC[RA-nWG]"; upper and lower case are
    # corrected
    name: str
    k: int | None = None  # cutoff, or None for "at every K"
    params: tuple[
        tuple[str, ParamValue], ...
    ] = ()  # parameters that differ from their default, in declared order

    def __post_init__(self) -> None:
        info = _find(self.name)
        if self.k is not None and not 1 <= self.k <= MAX_K:
            raise InputError(
                f"Cutoff {self.k} is out of range.", where=self.name, do=f"Use K from 1 to {MAX_K}."
            )
        given: dict[str, ParamValue] = {}
        for name, value in self.params:
            if name in given:
                raise InputError(f"Parameter {name!r} is given twice.", where=info.name, do=_HOW)
            given[name] = _param(info, name).read(value, where=info.name)
        kept = (
            (param.name, given[param.name])
            for param in info.params
            if given.get(param.name, param.default) != param.default
        )
        object.__setattr__(self, "name", info.name)
        object.__setattr__(self, "params", tuple(kept))

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read one measure; the cutoff may precede or follow the parameters, also inside, as in PROC[X(a=b)].

        Raises:
            UnknownNameError: If the name or a parameter is not declared.
            InputError: If the text is not a measure or a value is out of range.
        """
        match = _WRITTEN.fullmatch(text.strip())
        if match is None or (match["k"] and match["k_after"]):
            raise InputError(f"{text[:80]!r} is not a measure.", do=_HOW)
        cutoff = match["k"] or match["k_after"]
        written = ",".join(filter(None, (match["of_inner"], match["params"])))
        params = tuple(_pair(part, text) for part in written.split(",")) if written else ()
        name = f"{match['name']}[{match['inner']}]" if match["inner"] else match["name"]
        return cls(name, int(cutoff) if cutoff else None, params)

    def __str__(self) -> str:
        cutoff = "" if self.k is None else f"@{self.k}"
        shown = ",".join(f"{name}={show(value)}" for name, value in self.params)
        return f"{self.name}{cutoff}({shown})" if shown else f"{self.name}{cutoff}"

    @property
    def info(self) -> MeasureInfo:
        """The measure's declaration."""
        return REGISTRY[self.name]

    @property
    def inner(self) -> str | None:
        """X of PROC[X], %PROC[X] and Robust[X]; None for any other measure."""
        return self.name[self.name.index("[") + 1 : -1] if self.name.endswith("]") else None

    @property
    def by_query(self) -> Measure:
        """The measure of single queries: %PROC-per-query[X] for the ratio of means %PROC[X], else itself."""
        return self.renamed(self.info.by_query) if self.info.by_query else self

    @property
    def unwrapped(self) -> Measure:
        """X of PROC[X], %PROC[X] and Robust[X] with the parameters that X has, else the measure itself."""
        if self.inner is None:
            return self
        known = {param.name for param in REGISTRY[self.inner].params}
        return Measure(self.inner, self.k, tuple(pair for pair in self.params if pair[0] in known))

    @property
    def values(self) -> Values:
        """The value of every parameter, defaults included."""
        return {param.name: param.default for param in self.info.params} | dict(self.params)

    def at(self, k: int | None) -> Measure:
        """Return the same measure with another cutoff."""
        return Measure(self.name, k, self.params)

    def renamed(self, name: str) -> Measure:
        """Return another measure with the same cutoff and parameters, for example the PROC of this one."""
        return Measure(name, self.k, self.params)


def declared(name: str) -> tuple[float, float] | None:
    """Return the range of a measure, computed here or by other tools, or None if none is declared.

    Args:
        name: Name without cutoff; parameters may follow in parentheses.
    """
    if _JUDGED.search(name):
        return 0.0, 1.0
    name = name.partition("(")[0].strip()
    info = REGISTRY.get(name) or REGISTRY.get(_SPELLED.get(_bare(name), ""))
    return (info.low, info.high) if info else _ELSEWHERE.get(_bare(name))


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_ELSEWHERE: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(map(_bare, _SHARES), (0.0, 1.0)),
    **dict.fromkeys(map(_bare, _COSINES), (-1.0, 1.0)),
}


_ELSEWHERE_WRITTEN = re.compile(r"(?P<name>[A-Za-z]+(?:_[A-Za-z]+)*?)(?:_cut)?(?:[_@](?P<k>[0-9]{1,5}))?")


def translated(text: str) -> Measure | None:
    """Return the measure behind a name of trec_eval, pytrec_eval or ranx: ``ndcg_cut_10``, ``recall_100``.

    Without a cutoff, as in ``map``, the measure has none either. The result is None for any other name.
    """
    match = _ELSEWHERE_WRITTEN.fullmatch(text.strip())
    bare = _bare(match["name"]) if match else ""
    known = {_bare(info.name): info.name for info in MEASURES} | _SPELLED
    if match is None or bare not in known:
        return None
    return Measure(known[bare], int(match["k"]) if match["k"] else None)


def understood(text: str, longest: Callable[[], int] | None = None) -> Measure:
    """Read one measure in the notation used here, or by its name in trec_eval, pytrec_eval and ranx.

    Args:
        text: One measure.
        longest: Returns the length of the longest ranking: the cutoff of a measure of sets (``set_recall``).

    Raises:
        UnknownNameError: If the name or a parameter is not declared.
        InputError: If the text is not a measure or a value is out of range.
    """
    try:
        return Measure.parse(text)
    except (InputError, UnknownNameError):
        if measure := translated(text):
            return measure.at(longest()) if longest and _bare(text) in _OF_SETS else measure
        raise


def parse_list(text: str, longest: Callable[[], int] | None = None) -> tuple[Measure, ...]:
    """Read measures separated by commas, as `understood`; commas within parentheses do not separate.

    Returns:
        The measures in the order written, without duplicates.

    Raises:
        UnknownNameError: If a name or a parameter is not declared.
        InputError: If a part is empty or not a measure.
    """
    return tuple(dict.fromkeys(understood(part, longest) for part in split_list(text)))


def split_list(text: str) -> tuple[str, ...]:
    """Split text into measures at its commas; commas within parentheses do not separate."""
    parts, inside = [""], False
    for char in text:
        inside = char != ")" and (inside or char == "(")
        if char == "," and not inside:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(dict.fromkeys(parts))


def _find(name: str) -> MeasureInfo:
    for info in REGISTRY.values():
        if info.name.casefold() == name.casefold():
            return info
    if near := _NEAR.get(_bare(name).rstrip("0123456789.")):
        raise UnknownNameError("measure", name, near)
    folded = {known.casefold(): known for known in REGISTRY}
    meant = nearest(name, [*folded, *_SPELLED])
    if meant in _SPELLED:  # as another tool calls it
        raise UnknownNameError("measure", name, [_SPELLED[meant]])
    close = [folded[match] for match in get_close_matches(name.casefold(), folded, n=5, cutoff=0.5)]
    raise UnknownNameError("measure", name, close or [info.name for info in MEASURES])


def _param(info: MeasureInfo, name: str) -> Param:
    param = info.param(name)
    if param is None:
        raise UnknownNameError("parameter", name, [known.name for known in info.params], where=info.name)
    return param


def _pair(part: str, text: str) -> tuple[str, str]:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    if not (name and equals and value):
        raise InputError(f"{part!r} is not a parameter.", where=text, do=_HOW)
    return name, value
