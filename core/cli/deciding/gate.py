"""``gate RECORD``: whether a recorded decision still holds, for CI: exit codes by cause, and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.base import complain, waiting
from core.cli.context import Format, FormatOption, emit, lay
from core.cli.deciding import QuestionOptions, deciding
from core.decide.axes import LIMITS

if TYPE_CHECKING:
    from core.report.gate import Held


def compared(
    ctx: typer.Context,
    path: Path,
    question: QuestionOptions,
    *,
    share: float,
    least_pgs: float = 0.0,
    waive: Sequence[str] = (),
    results: Sequence[Path] = (),
    into: str | None = None,
) -> Held:
    """Compare a record with today's store and prices; anything no option sets is asked as in the record.

    Args:
        results: Files and folders that are imported first, into the workspace `into`.
    """
    from core.report.data import verdict  # noqa: PLC0415
    from core.report.gate import Held, asked_again, waived  # noqa: PLC0415
    from core.report.gate_results import given  # noqa: PLC0415
    from core.report.recorded import record_of  # noqa: PLC0415

    was, store = record_of(path), ctx.obj.store()
    said = [name for name in vars(question) if _given(ctx, name)]
    if question.collection is not None:
        was.in_workspace(question.collection)
    came = given(store, results, into, was.question.collection, waiting)
    was = was.beside_results(came)
    snapshot = store.read(question.revision)
    view, dropped = waived(was, asked_again(was, question, snapshot, said).on_page(ctx.obj), waive)
    if was.command is None:
        complain("warning: the record leaves out what does not compare in a way that no option repeats.")
    return Held(was, view, verdict(view), share, least_pgs, dropped, came)


def _given(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name != "DEFAULT"


ShareOption = Annotated[
    float,
    typer.Option(
        min=0, max=1,
        help="Of records of the rule until 0.2: probability above which another stack must be chosen "
        "to fail.",
    ),
]  # fmt: skip
LeastOption = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Least probability of good selection (PGS) of the recorded stack; 0 asks for none."
    ),
]
WaiveOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A limit to go on without where nothing is known of it for the recorded stack: "
        f"{', '.join(LIMITS)}. May be repeated.",
        show_default=False,
    ),
]
ResultsOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="File or folder of results to import first; may be repeated. They take the place of what has "
        "their names.",
        show_default=False,
    ),
]
IntoOption = Annotated[
    str | None,
    typer.Option(help="Workspace that --results belong to: that of the record.", show_default=False),
]


@deciding
def run(
    ctx: typer.Context,
    record: Annotated[
        Path, typer.Argument(help="A decision record (JSON), as `record` wrote it.", show_default=False)
    ],
    question: QuestionOptions,
    *,
    share: ShareOption = 0.8,
    least_pgs: LeastOption = 0.0,
    waive: WaiveOption = None,
    results: ResultsOption = None,
    into: IntoOption = None,
    junit: Annotated[Path | None, typer.Option(help="JUnit XML to write: a test case per check.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Markdown to write: for a step's summary, or one comment.")
    ] = None,
    json_: Annotated[Path | None, typer.Option("--json", help="JSON to write, by gate.schema.json.")] = None,
    dashboard: Annotated[
        str,
        typer.Option(
            help="Address of the dashboard that the link in the files opens; Markdown has none where others "
            "cannot open it."
        ),
    ] = "http://localhost:8501/",
    form: FormatOption = Format.TABLE,
) -> None:
    """Say whether a recorded decision still holds, what flipped it, and what changed since.

    Limits, measure and prices are those of the record unless options say otherwise.

    A record that says to stay with the stack that runs holds until the rule says to switch, a model ends, or
    the stack breaks a limit that it kept.

    Exit codes: 0 it holds; 1 refused, such as no record or no such workspace; 2 wrong usage; 4 it is surely
    worse than what the rule chooses, its PGS is below what is asked, or staying no longer holds; 5 it breaks
    a limit; 6 it is gone; 7 what a limit asks for is unknown of it, unless --waive says to go on without; 8
    what is judged is not what came: nothing of --results, or not the newest results of the stack. Of several
    causes the gravest counts. Files are written whether it holds, fails or refuses; one that is there is
    replaced.
    """
    from core.report import gate_files  # noqa: PLC0415
    from core.report.gate_blocks import gate_blocks  # noqa: PLC0415
    from core.report.plain import pieces  # noqa: PLC0415

    files = gate_files.Files(record.name, dashboard, junit, markdown, json_)
    try:
        files.try_out()
        held = compared(
            ctx, record, question, share=share, least_pgs=least_pgs, waive=waive or (),
            results=results or (), into=into,
        )  # fmt: skip
        said = files.write(held)
    except Exception as error:
        files.refuse(error)
        raise
    if form is Format.JSON:
        typer.echo(gate_files.as_json(said))
    elif form is Format.CSV:
        emit(held.changes, form)
    else:
        lay(pieces(gate_blocks(held)))
    if not held.holds:
        raise typer.Exit(gate_files.CODES[held.cause])
