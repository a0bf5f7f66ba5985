"""The decision record as files (one self-contained HTML, Markdown, JSON), and a workspace as one."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urljoin

from core.analysis.workspace.comparable import ALL, ALL_MACHINES, EVERY, SHARED
from core.analysis.workspace.narrow import NarrowChoices, narrow
from core.analysis.workspace.noise import OFF, auditors, usual_auditor
from core.analysis.workspace.scope import Ids, Judging
from core.analysis.workspace.view import View
from core.bidi import escaped, strip_bidi_controls
from core.errors import InputError
from core.files import write_out
from core.paths import PROGRAM
from core.report import render, snapshot
from core.report.data import Verdict, record_data
from core.report.picture import picture
from core.report.render import Chart
from core.report.tables import Data
from core.report.words import DEFAULTS, context, named, narrowed, question
from core.views import link, theme
from core.views.decision.charts import pareto_of
from core.views.words.choice import limits

_UNNAMED = re.compile(r"[^\w.]+")  # What a file's name is written without
RUNS_NAMED = 20  # Maximum chosen runs named one by one in a command; with more there is no command
ENDINGS = (".html", ".md", ".json")  # File extensions of a record


def file_name(kind: str, view: View, ending: str) -> str:
    """Return the name of a file: what it is, of which workspace, within which limits, at which revision."""
    within = limits(view.constraints, view.latency) or "no limits"
    parts = [kind, strip_bidi_controls(view.scope.collection_id), within]
    words = "-".join(_UNNAMED.sub("-", part).strip("-.")[:80] for part in parts)
    return f"{words}-revision-{view.snapshot.revision}{ending}"


def record_file(ending: str, view: View, verdict: Verdict, *, address: str, made_at: datetime) -> str:
    """Render the record of a decision.

    Args:
        ending: One of `ENDINGS`.
        address: The pinned link to this view; see `core.views.link`.
        made_at: The time of the record; the only time-dependent part of the file.
    """
    data = record_data(view, verdict, link=address, made_at=made_at, command=command(view))
    if ending == ".json":
        return escaped(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"
    filled = context(data, "Decision record", f"Decision record: {_name(data)}")
    drawn = picture(data)
    charts = {} if drawn is None else {"stacks": drawn}
    return (render.still if ending == ".html" else render.markdown)("record.j2", charts, **filled)


def snapshot_file(view: View, verdict: Verdict, *, address: str, made_at: datetime) -> str:
    """Render a workspace as one HTML file that needs no network; takes the arguments of `record_file`."""
    data = record_data(view, verdict, link=address, made_at=made_at, command=command(view))
    name = _name(data)
    filled = context(data, f"Snapshot of {name}", f"Snapshot: {name}")
    more, charts = snapshot.parts(view, verdict)
    tables = {**filled.pop("tables"), "every": snapshot.every_stack(view, verdict)}
    charts = {"pareto": _pareto(view, data), **charts}
    return render.html("snapshot.j2", charts, tables=tables, **filled, **more)


def _name(data: Data) -> str:
    return str(data["workspace"]["name"] or data["collection"])


def _pareto(view: View, data: Data) -> Chart:
    caption = (
        f"{theme.best_corner(higher=view.quality.higher_is_better)} The line is the frontier of what the "
        "limits allow; dimmed stacks break a limit. The ring marks the chosen stack."
    )
    return Chart(pareto_of(view).figure, data["answer"]["sentence"], caption)


def pinned_link(view: View, dashboard: str) -> str:
    """Return the link that opens a case in a dashboard."""
    values = link.settings(view, runs=named(view, "name"))
    if view.scope.shared:
        values["cq"] = SHARED
    if view.compared.sentences and not narrowed(view):
        values |= {"cq": EVERY, "figs": ALL, "env": ALL_MACHINES}
    elif view.latency.machine:
        values["env"] = view.latency.machine
    if auditors(view.snapshot, view.scope):
        values["noise"] = view.noise or OFF
    if view.rule != "quality":  # the other pages have no rule
        words = next(words for words, rule in link.RULES.items() if rule == view.rule)
        values, dashboard = {**values, "rule": words}, urljoin(dashboard, "confidence")
    return link.pinned(dashboard, values, view.snapshot.revision)


def command(view: View) -> str | None:
    """Return the command line that decides a case; None if there is none.

    There is none if many runs would have to be named, if incomparable runs were left out
    differently than by the command, or if the latency includes the generator, whose model has separate
    settings.
    """
    asked = question(view)
    if (
        len(named(view, "run_id")) > RUNS_NAMED
        or (narrowed(view) and not _as_usual(view))
        or view.latency.scope == "end-to-end"
        or asked.pop("generation") is not None  # there is no option for the generator's speed
    ):
        return None
    usual = {**DEFAULTS, "judge_noise": usual_auditor(view.snapshot, view.scope) or OFF}
    words = [
        word
        for name, value in {"revision": view.snapshot.revision, **asked}.items()
        if value != usual.get(name)
        for word in _option(name, value)
    ]
    return f"{PROGRAM} decide {shlex.join(words)}"


def _option(name: str, value: object) -> list[str]:
    """Return an option as typed; a flag has no value, and one with several values is repeated."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    return [word for text in link.written(value) for word in (option, text)]


def _as_usual(view: View) -> bool:
    """Return whether the view has the default treatment."""
    whole = replace(view.scope, apart=Ids(), shared=Ids(), lacked=Ids(), judging=Judging())
    anywhere = replace(view.latency, machine=None)
    quality, wanted = view.quality, view.scope.judging
    usual = narrow(view.snapshot, whole, quality, anywhere, view.book, choices=NarrowChoices(wanted))
    return (usual.scope, usual.latency) == (view.scope, view.latency)


def write_record(
    paths: Sequence[Path], view: View, verdict: Verdict, *, dashboard: str, overwrite: bool = False
) -> list[tuple[str, int]]:
    """Write the record of a decision as new files, each in the format of its extension.

    Args:
        dashboard: The URL of the dashboard for the link in them.

    Returns:
        The path and size in bytes of each file.

    Raises:
        InputError: Like `destination`; nothing was written then.
    """
    endings = [destination(path, ENDINGS, overwrite=overwrite) for path in paths]
    address, now = pinned_link(view, dashboard), datetime.now(UTC)
    return [
        (str(path), write_out(path, record_file(ending, view, verdict, address=address, made_at=now)))
        for path, ending in zip(paths, endings, strict=True)
    ]


def destination(path: Path, endings: Sequence[str], *, overwrite: bool) -> str:
    """Check the path of a new file.

    Returns:
        Its extension.

    Raises:
        InputError: If its extension isn't one of `endings`, or something is there that may not be replaced.
    """
    ending = path.suffix.lower()
    if ending not in endings:
        raise InputError(
            f"A file ending in {ending or 'nothing'} is not written.",
            where=str(path),
            do=f"Choose {', '.join(endings)}.",
        )
    if not path.parent.is_dir():
        raise InputError("The folder does not exist.", where=str(path.parent), do="Make it first.")
    if path.exists() and not (overwrite and path.is_file()):
        raise InputError("The path exists already.", where=str(path), do="Choose another, or add --replace.")
    return ending
