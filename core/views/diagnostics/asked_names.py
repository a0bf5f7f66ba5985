"""Diagnostics, section Names: the effect of other names in questions on quality and on the name margin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.perturbed import QUICK, Gathered, gather, rewritten
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.scope import Quality, Scope
from core.diagnostics.names.margins import CHANGE, MARGINS, MEASURED, NamedQuestion, asked_margins, questions
from core.diagnostics.noise import CLEAN, effects
from core.pipeline.query.entities import Names, named
from core.pipeline.query.perturb import LANGUAGES, NAMES
from core.records import Batch, Collection, JsonMap
from core.stats.correlation import correlate
from core.store import Snapshot
from core.tables import frame, schema
from core.views import text, theme
from core.work.names.stored import diagnosed

if TYPE_CHECKING:
    from core.providers.embed import Embedder

DIAGNOSIS = "names in questions"
MEASURE = "N-Recall4+"  # The measure that the paper compares with D_name (§4.5)
_OF = ("embedder", "dim")
_GOOD = 4
_PAIRS = 4  # With fewer pairs of changes no correlation is reported
_Measured = tuple[str, int]  # An embedder with its dimension
MARGINED = schema("embedder dim:int32 language condition measure value:float low:float high:float n:int32")
"""Columns of `margins`: condition is named as in runs ("names 1"), "" = the questions as they are."""
FORMS = ("1", "2", "3", "mask", "gibberish", "label", "accents", "initials", "inverted", "case", "nfd")
"""Forms of a name, as the axis has them."""
BESIDE = pl.Schema([
    *((name, pl.String) for name in ("stack", "rewrite", "names")),
    *((name, pl.Float64) for name in ("clean", "quality", "change", "change_low", "change_high")),
    ("n", pl.Int32),
    *((name, pl.Float64) for name in ("d_name", "d_change", "d_low", "d_high")),
    ("d_n", pl.Int32),
])  # fmt: skip
"""Columns of `side_by_side`."""
PAPER = (-71.0, -0.18)
"""Change by random tokens of D_name (in percent) and of N-Recall4+@10 (.78 → .60) in the paper, §4.5."""
MEANS: Mapping[str, str] = {
    "1": "one letter off",
    "2": "two letters off",
    "3": "three letters off",
    "mask": "one mask for every name",
    "gibberish": "a random token for each name",
    "label": "without “Author:”",
    "accents": "names without accents",
    "initials": "J. Smith",
    "inverted": "Smith, John",
    "case": "upper, lower, title case",
    "nfd": "accents and spaces coded otherwise",
}
"""Description of each form of a name."""
HOW = (
    "Questions that name something (tags entity=…, sources and titles of the collection, capitals, codes), "
    "asked with other names. Quality: paired over these questions. Lead of the name (D_name): "
    "cosine with the best judged passage minus the better of that passage with two other names; passages "
    "keep their names, so a mask leaves about 0. Changes in percent count questions of a signal ≥ 0.02; "
    "intervals of 95 %."
)
NO_RUNS = (
    "No questions with other names were run here. Run a sweep with "
    '`names = [0, 1, 2, "mask"]` on questions that name people, places, products or parts.'
)


@dataclass(frozen=True)
class Renamed:
    """Stacks of a workspace that were run on other names."""

    gathered: Gathered  # clean runs and those with other names, on the questions that contain a name
    names: Names  # the names in these questions
    asked: tuple[tuple[str, str], ...]  # the texts of the questions, each with its best judged passage

    def __bool__(self) -> bool:
        return bool(self.gathered)


def renamed(snapshot: Snapshot, scope: Scope, quality: Quality) -> Renamed:
    """Read the runs of a workspace with other names; empty if there are none."""
    whole = gather(snapshot, scope, quality)
    alone = pl.col("perturb").str.contains(rf"^{NAMES} \S+$")
    other = whole.rows.filter(alone)
    if other.is_empty():
        return Renamed(Gathered(whole.rows.clear(), (), {}), {}, ())
    rows = whole.rows.filter(alone | (pl.col("perturb") == CLEAN)).join(
        other.select("family", "rewrite").unique(), on=["family", "rewrite"], maintain_order="left"
    )
    queries = snapshot.queries(scope.collection_id).filter(pl.col("query_id").is_in(list(whole.query_ids)))
    passages = snapshot.passages(scope.collection_id)
    names = named(queries.drop_nulls("text"), passages)
    naming = set(queries.filter(pl.col("text").is_in(list(names)))["query_id"])
    kept = np.array([query_id in naming for query_id in whole.query_ids], dtype=np.bool_)
    ids = tuple(query_id for query_id in whole.query_ids if query_id in naming)
    values = {run_id: whole.values[run_id][kept] for run_id in rows["run_id"]}
    asked = _asked(snapshot, scope, queries.filter(pl.col("query_id").is_in(list(ids))), passages)
    alike = groups(snapshot, scope).labels(ids)
    return Renamed(Gathered(rows if ids else rows.clear(), ids, values, alike), names, asked)


def _asked(
    snapshot: Snapshot, scope: Scope, queries: pl.DataFrame, passages: pl.DataFrame
) -> tuple[tuple[str, str], ...]:
    """Return questions with their passage of the highest grade (4 or 5), in the text that is searched."""
    if scope.golden_set_id is None:
        return ()
    best = snapshot.within(scope.golden_set_id).filter(pl.col("grade") >= _GOOD)
    best = best.sort("grade", "passage_id", descending=[True, False]).unique("query_id", maintain_order=True)
    searched = pl.concat_str("title", "text", separator="\n", ignore_nulls=True)
    texts = queries.join(best.select("query_id", "passage_id"), on="query_id").join(
        passages.select("passage_id", passage=searched), on="passage_id"
    )
    return tuple(texts.select("text", "passage").iter_rows())


def embedders(snapshot: Snapshot, renamed: Renamed) -> dict[_Measured, dict[str, JsonMap]]:
    """Return the embedders of the stacks, each with its query-text settings."""
    specs = dict(snapshot.runs().select("run_id", "spec").iter_rows())
    embedders_of: dict[_Measured, dict[str, JsonMap]] = {}
    for run_id, perturb in renamed.gathered.rows.select("run_id", "perturb").iter_rows():
        spec = json.loads(specs[run_id])
        if perturb and spec.get("embedder") and spec.get("dim"):
            embedders_of.setdefault((spec["embedder"], spec["dim"]), {})[perturb] = spec["perturb"]
    return embedders_of


def margins(
    asked: Sequence[NamedQuestion],
    wanted: Mapping[_Measured, Mapping[str, JsonMap]],
    make: Callable[[str, int], Embedder],
) -> pl.DataFrame:
    """Measure D_name of embedders on the questions: `MARGINED`, empty if no question allows it."""
    from core.providers.base import Purpose  # noqa: PLC0415 - takes long to load

    parts = []
    for (name, dim), ways in wanted.items() if asked else ():
        embedder = make(name, dim)
        by = (partial(embedder.embed, purpose=purpose) for purpose in (Purpose.QUERY, Purpose.PASSAGE))
        language = LANGUAGES.get(str(next(iter(ways.values())).get("language", "english")), "")
        of = {"embedder": name, "dim": dim, "language": language}
        rows = asked_margins(asked, ways, *by)
        parts.append(rows.with_columns(pl.lit(it, MARGINED[key]).alias(key) for key, it in of.items()))
    return pl.concat([pl.DataFrame(schema=MARGINED), *(part.select(*MARGINED) for part in parts)])


def batch_of(scope: Scope, rows: pl.DataFrame) -> Batch:
    """Convert margins to store records: a collection per embedder and dimension."""
    collections, parts = [], []
    for (name, dim), some in rows.group_by(_OF, maintain_order=True):
        own = f"names-{name}-{dim}-in-{scope.collection_id}"
        title = f"Names in questions of {scope.collection_id}: {name} {dim} d"
        collections.append(
            Collection(collection_id=own, name=title, source=f"{MEASURED} on {scope.collection_id}")
        )
        parts.append(some.with_columns(collection_id=pl.lit(own), diagnosis=pl.lit(DIAGNOSIS)))
    frames = {"diagnostics": frame("diagnostics", pl.concat(parts).to_dict())} if parts else {}
    return Batch(collections=tuple(collections), frames=frames)


def known_margins(snapshot: Snapshot, scope: Scope, renamed: Renamed) -> pl.DataFrame:
    """Return the stored margins of a workspace, and those of embedders that are fast enough to run here."""
    from core.providers.embed import make_embedder  # noqa: PLC0415 - takes long to load

    wanted = embedders(snapshot, renamed)
    own = [f"names-{name}-{dim}-in-{scope.collection_id}" for name, dim in wanted]
    held = diagnosed(snapshot, DIAGNOSIS).filter(pl.col("collection_id").is_in(own)).select(*MARGINED)
    there = set(held.select(_OF).iter_rows())
    quick = {
        embedder: ways for embedder, ways in wanted.items() if embedder[0] in QUICK and embedder not in there
    }
    return pl.concat([held, margins(questions(renamed.asked, renamed.names), quick, make_embedder)])


def side_by_side(renamed: Renamed, margined: pl.DataFrame) -> pl.DataFrame:
    """Compare the effect of other names on quality with their effect on D_name.

    Returns:
        `BESIDE`: names ("1", "mask"…), clean (quality of the original questions), quality and its change,
        n (questions that contain a name), and d_name (of the originals), d_change (in percent) and d_n, null
        without an embedder; stacks by their clean quality, the best first.
    """
    if not renamed:
        return pl.DataFrame(schema=BESIDE)
    asked = renamed.gathered
    rows = effects(asked.rows, asked.values, lambda *_: (None, None), asked.clusters)
    clean = rows.filter(perturb=CLEAN).select("family", "rewrite", clean="quality")
    of = pl.col("family").str.json_path_match
    rows = rows.filter(pl.col("perturb") != CLEAN).join(clean, on=["family", "rewrite"], how="left")
    rows = rows.with_columns(
        names=pl.col("perturb").str.strip_prefix(f"{NAMES} "),
        embedder=of("$.embedder"),
        dim=of("$.dim").cast(pl.Int32),
    )
    base = margined.filter(condition="", measure=MARGINS[0]).select(*_OF, d_name="value")
    change = margined.filter(measure=CHANGE).select(
        *_OF, perturb="condition", d_change="value", d_low="low", d_high="high", d_n="n"
    )
    both = rows.join(base, on=_OF, how="left").join(change, on=[*_OF, "perturb"], how="left")
    order = pl.Enum(FORMS)
    keys = ("clean", "stack", "rewrite", pl.col("names").cast(order))
    return both.sort(keys, descending=[True, False, False, False], nulls_last=True).select(*BESIDE)


def paper() -> dict[str, Any]:
    """Return the paper's values in the form of a row of `side_by_side`."""
    return {"names": "gibberish", "language": "fr", "d_change": PAPER[0], "change": PAPER[1]}


def answer(table: pl.DataFrame, quality: Quality) -> str:
    """Say how much quality and margin the best stack loses to the lightest near miss."""
    row = table.row(0, named=True)
    stack = rewritten(row["stack"], row["rewrite"])
    said = MEANS.get(row["names"], row["names"])
    if row["change"] is None:
        return f"What {said} costs {stack} is not known: no clean run stands beside it."
    ends = text.interval(row["change_low"], row["change_high"]).strip()
    now = f"{text.score(row['clean'])} → {text.score(row['quality'])}"
    by = f"{text.signed(row['change'])} {ends}".strip()
    margin = ""
    if row["d_change"] is not None:
        margin = f"; the name signal changes by {text.signed(row['d_change'], '{:.0f} %'.format)}"
    return f"Names {said}: {quality.name} of {stack} goes {now} ({by}, n = {row['n']:,}){margin}."


def linked(table: pl.DataFrame, quality: Quality) -> str:
    """Say whether stacks and forms that lose more D_name lose more quality (CLQ paper, §4.5).

    Rank correlation over the rows of `side_by_side` that have both changes; its interval resamples stacks.
    """
    both = table.drop_nulls(["d_change", "change"])
    found = correlate(both["d_change"].to_numpy(), both["change"].to_numpy(), both["stack"].to_list())
    of = f"the changes of the name signal and of {quality.name}"
    if found.value is None or found.n < _PAIRS:
        reason = f"{text.count(found.n, 'pair')} of stack and form, {_PAIRS} are needed"
        return f"Whether {of} go together cannot be told: {found.reason if found.n >= _PAIRS else reason}."
    alone = " (one stack only, so no interval)"
    ends = alone if found.low is None else f" [{_rho(found.low)}, {_rho(found.high)}]"
    stacks = text.count(both["stack"].n_unique(), "stack")
    return (
        f"Spearman's rho of {of} is {_rho(found.value)}{ends}, n = {found.n} pairs of stack and form, "
        f"{stacks}. In the paper −71 % of that signal stands beside .78 → .60."
    )


def _rho(value: float | None) -> str:
    return "" if value is None else text.signed(value, "{:.2f}".format)


def chart(table: pl.DataFrame, quality: Quality) -> go.Figure:
    """Draw the change of D_name beside the change of quality by form: a colour and a symbol per stack."""
    panels = theme.Panels(
        ["Change of the name signal, %", f"Change of {quality.name}"],
        across=2,
        height=260 + 40 * table["names"].n_unique(),
    )
    stacks = table.select("stack", "rewrite").unique(maintain_order=True)
    labels = [rewritten(*row) for row in stacks.iter_rows()]
    colours = theme.colours_for(labels)
    for place, (label, (stack, rewrite)) in enumerate(zip(labels, stacks.iter_rows(), strict=True)):
        rows = table.filter(stack=stack, rewrite=rewrite)
        look = {"color": colours[label], "size": 9, "symbol": theme.SYMBOLS[place % len(theme.SYMBOLS)]}
        for panel, (x, low, high, n) in enumerate(
            (("d_change", "d_low", "d_high", "d_n"), ("change", "change_low", "change_high", "n"))
        ):
            some = rows.drop_nulls(x)
            if some.height:
                panels.add(panel, _dots(some, label, look, (x, low, high, n)))
    there = {*table["names"], "gibberish"}  # also in the paper
    forms = [MEANS[form] for form in reversed(FORMS) if form in there]
    panels.figure.update_yaxes(categoryorder="array", categoryarray=forms)
    panels.figure.update_yaxes(showticklabels=False, col=2)
    for panel, reference in enumerate(PAPER):
        at = panels.at(panel)
        panels.figure.add_vline(x=0, line={"color": theme.NEUTRAL, "width": 1}, **at)
        paper = theme.scatter(
            "paper, French", [reference], [MEANS["gibberish"]],
            hover=[f"{MEANS['gibberish']}: {reference:+.3g}, clq_ra_nwg §4.5"],
            marker={"color": theme.NEUTRAL, "size": 12, "symbol": "star-open", "line": {"width": 2}},
        )  # fmt: skip
        panels.add(panel, paper)
    return panels.figure


def _dots(rows: pl.DataFrame, label: str, look: Mapping[str, Any], columns: Sequence[str]) -> theme.Spec:
    x, low, high, n = (rows[name].to_numpy() for name in columns)
    forms = [MEANS[form] for form in rows["names"]]
    hover = [f"{form}: {at:+.3g}, n = {of:,}" for form, at, of in zip(forms, x, n, strict=True)]
    bars = theme.whiskers(low, x, high, thickness=1)
    return theme.scatter(text.escape(label), x, forms, hover=hover, marker=dict(look), error_x=bars)
