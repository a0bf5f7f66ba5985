"""The further keyword arguments of the library, by name and type, for editors, type checkers and `typed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from core.analysis.workspace.query_sets import LeastJudged
    from core.analysis.workspace.scope import LatencyScope, Per, Percentile
    from core.axes import AxisStep
    from core.decide.rules import Rule
    from core.importers.read.number_format import Reading
    from core.importers.read.ordering import OwnIds, TieOrder
    from core.pipeline.own.config import MatchBy
    from core.records import JsonMap, Origin
    from core.stats.latency import Generation


class AskedOptions(TypedDict, total=False):
    """The less common choices of a decision; command options of the same names describe them."""

    on: Percentile
    latency: LatencyScope
    rule: Rule
    indifference: float | None
    take: str | None
    incumbent: str | None
    move: list[str] | None
    jitter_ms: float | None
    min_robust: float | None
    min_refusal_rate: float | None
    min_answer_rate: float | None
    max_leak: float | None
    max_switching_usd: float | None
    max_step: AxisStep | None
    prices: str
    price: list[str] | None
    origin: list[Origin] | None
    runs: list[str] | None
    revision: int | None
    together: bool
    judged: LeastJudged
    every_golden_set: bool
    cluster_by: str
    judge_noise: str | None
    reader: str
    scorer: str
    cost_per: Per
    correct_from: float
    seed: int
    generation: Generation | None


class Understood(AskedOptions, total=False):
    """`AskedOptions`, and limits under their names in release 0.2."""

    floor: float | None
    harm: float | None


class Importing(TypedDict, total=False):
    """The less common options of an import; see `core.importers.Options`."""

    format: str | None
    formats: Mapping[str, str]
    split: str | None
    sheet: str | None
    all_tasks: bool
    without: frozenset[str]
    numbers: Mapping[str, Reading]
    pool: str | None
    tie_order: TieOrder
    strip: Mapping[str, str]
    own_ids: OwnIds
    permissions: frozenset[str]
    skip: frozenset[str]


class MoreMeasuring(TypedDict, total=False):
    """The less common options of measuring a pipeline; see `core.work.sweep.own.OwnForm`."""

    python: str
    path: str
    preset: str
    entry: str
    output: str
    body: JsonMap | None
    response: Mapping[str, str]
    key_env: str
    match: MatchBy
    version_cmd: str
    timeout_s: float | None
    usd_per_hour: float | None
    warm_up: int
    budget: float | None


class Measuring(MoreMeasuring, total=False):
    """Every option of measuring a pipeline; `Workspace.measure` describes them."""

    name: str
    k: int
    params: Mapping[str, object] | None
    version: str
    usd_per_query: float | None
    limit: int | None
    repeats: int
    quiet: bool


class Moving(TypedDict, total=False):
    """The criteria for a move to another stack; see `core.decide.switching.Terms`."""

    queries_per_month: float | None
    passages: int | None
    tokens_per_passage: float | None
    passages_per_month: float
    batch_usd: float | None
    tokens_per_minute: float | None
    weeks_both: float
    engineering_days: float
    usd_per_day: float | None
    evaluation_usd: float
    margin: float
    months: float
    value_usd: float | None
