"""Section Live quality: an alarm over the judged queries of imported traces that may be checked at any time.

The T measure's paper (recall_t_measure, Limitations) judges a monitored system's retrieved passages while it
runs. Judging all is expensive: a query is sampled or not by its id alone, so that the sample grows with
the traffic and nobody's suspicion selects it.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.scores import at_cutoff, evidence
from core.analysis.workspace.telling import dated
from core.analysis.workspace.view import View
from core.importers.samples import ASKED_AT
from core.stats.alarm import ALPHA, FIRST, watch
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Chart, Table, Text, Way, section
from core.views.diagnostics.drifting import NOTHING, WAY_OUT, dates, timed

LEAST = 10  # Minimum number of queries that later ones are ranked among
HOW = (
    "Every judged query is ranked among all before it; evidence grows while ranks are low. Where nothing "
    f"changed it ever reaches {1 / ALPHA:g} in at most {100 * ALPHA:g} % of cases, however often one looks "
    "(conformal test martingale). Equal values are ranked by seeded lots."
)
LIMITS = (
    "It takes queries as independent: of a session judge one. A rise, or a daily cycle, is no alarm by "
    "itself; other questions than at first are one."
)
ABOUT_SHARE = "Share of the live queries to judge, in percent; their ids draw them, not their scores."
ABOUT_FIRST = "Judged queries that stand for how it was."
JUDGE = cols.Rows(
    "to_judge",
    cols.text("query_id", "query", width=160),
    cols.text("asked", "asked (UTC)", width=150),
    cols.text("query", "text", width=420),
)


def in_sample(query_id: str, percent: float) -> bool:
    """Return whether a query belongs to the sample of a size; a larger sample contains every smaller one."""
    return crc32(query_id.encode()) / 2**32 < percent / 100


@cached("Reading judged traces…", entries=16)
def watched(view: View, run_id: str, percent: float) -> pl.DataFrame:
    """Return the sampled queries by time: query_id, at, value (null = unjudged)."""
    asked = view.snapshot.signals([run_id], signal=ASKED_AT).select("query_id", at="value")
    sample = asked.filter([in_sample(name, percent) for name in asked["query_id"]])
    kinds = {"query_id": pl.String, "value": pl.Float64}
    values = pl.DataFrame(schema=kinds)
    measure = view.quality.measure
    if view.scope.golden_set_id is not None and measure is not None:
        graded = evidence(view.snapshot, [run_id], view.scope.golden_set_id, [measure])
        if graded.query_ids:
            scores = at_cutoff(graded, measure)[0]
            values = pl.DataFrame({"query_id": graded.query_ids, "value": scores}, schema=kinds)
    return sample.join(values.drop_nans(), on="query_id", how="left").sort("at", "query_id")


@section("live quality", "Has live quality fallen?", dated)
def live_quality(view: View, ask: Ask) -> Blocks:
    """Yield whether the judged queries of imported traces raise an alarm, and which to judge next."""
    runs = timed(view)
    if not runs:
        yield Answer(NOTHING)
        yield Text(WAY_OUT, "guide")
        return
    run_id = runs[ask.listed("Traces", runs, "live", width=230)]
    percent = ask.number("Sample, %", "drawn", 100.0, 0.1, 100.0, about=ABOUT_SHARE) or 100.0
    first = int(
        ask.number("Reference", "before", float(FIRST), float(LEAST), 1000.0, about=ABOUT_FIRST) or FIRST
    )
    rows = watched(view, run_id, percent)
    judged = rows.drop_nulls("value")
    yield from _alarm(view, judged, first)
    lacking = rows.filter(pl.col("value").is_null())
    if lacking.height:
        yield Text(
            f"{text.count(lacking.height, 'sampled query', 'sampled queries')} to judge, newest first:"
        )
        texts = view.snapshot.queries(view.scope.collection_id).select("query_id", query="text")
        shown = lacking.sort("at", descending=True).join(
            texts, on="query_id", how="left", maintain_order="left"
        )
        yield Table(shown.with_columns(dates(shown["at"]).alias("asked")), JUDGE)
        yield Way("golden", "Judge them", "judge")


def _alarm(view: View, judged: pl.DataFrame, first: int) -> Blocks:
    if judged.height <= first:
        need = f"{judged.height} of {first + 1} judged queries"
        yield Answer(f"Too few to watch {view.quality.name}: {need}.", caveats={"how it is watched": HOW})
        return
    measure = view.quality.measure
    sign = -1.0 if measure is not None and not measure.info.higher_is_better else 1.0
    values = judged["value"].to_numpy()
    found = watch(sign * values, first=first, seed=view.seed)
    sentence, more = answer(judged, found.evidence, found.raised, first, view.quality.name)
    yield Answer(sentence, more, caveats={"how it is watched": HOW, "limits": LIMITS})
    table = judged.with_columns(
        dates(judged["at"]).alias("asked"),
        pl.Series("evidence", found.evidence),
        number=pl.int_range(1, pl.len() + 1),
    )
    yield Chart(chart(table, found.needed, view.quality.name), "live_quality", sentence)
    yield Table(
        table.sort("number", descending=True),
        cols.Rows(
            "watched",
            cols.exact("number", "judged", "In the order of time."),
            *JUDGE.columns[:2],
            cols.score("value", view.quality.name),
            cols.number("evidence", help=f"Alarm at {found.needed:g}."),
        ),
    )


def answer(
    judged: pl.DataFrame, evidence_of: np.ndarray[tuple[int], np.dtype[np.float64]], raised: int | None,
    first: int, name: str,
) -> tuple[str, str]:  # fmt: skip
    """Say whether the alarm is raised, since when, and the means before and since."""
    values = judged["value"]
    before, since = (text.score(part.mean()) for part in (values[:first], values[first:]))  # type: ignore[arg-type]
    means = f"{name} {before} in the first {first} queries, {since} since"
    if raised is None:
        return f"No alarm: {means}.", f"Evidence of a fall: {evidence_of[-1]:.1f} of {1 / ALPHA:g}."
    when = dates(judged["at"])[raised]
    return f"Quality has fallen: {means}.", f"Alarm since {when} UTC, at judged query {raised + 1}."


def chart(table: pl.DataFrame, needed: float, name: str) -> go.Figure:
    """Draw the qualities, and the evidence on a log axis with the alarm threshold."""
    panels = theme.Panels([text.escape(name), "evidence of a fall"], across=1, x="judged query", height=220)
    x = table["number"].to_list()
    marks = {"color": theme.NEUTRAL, "size": 6, "opacity": 0.7}
    panels.add(0, theme.scatter(name, x, table["value"].to_numpy(), marker=marks, mode="markers"))
    line = {"color": theme.ACCENT, "width": 2}
    panels.add(1, theme.scatter("evidence", x, table["evidence"].to_numpy(), mode="lines", line=line))
    dotted = {"color": theme.NEUTRAL, "width": 1, "dash": "dot"}
    panels.figure.add_hline(y=needed, line=dotted, **panels.at(1))
    panels.figure.update_yaxes(type="log", **panels.at(1))
    return panels.figure.update_layout(showlegend=False).update_xaxes(range=[0, table.height + 1])
