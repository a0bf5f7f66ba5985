"""``gate RECORD``: whether a recorded decision still holds, for CI: exit codes by cause, and files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.bidi import escaped
from core.cli.base import complain
from core.cli.context import Format, FormatOption, emit, lay
from core.cli.deciding import Question, deciding
from core.decide.axes import LIMITS
from core.files import write_text

if TYPE_CHECKING:
    from core.report.gate import Held


def compared(
    ctx: typer.Context,
    path: Path,
    question: Question,
    *,
    share: float,
    least_pgs: float = 0.0,
    waive: Sequence[str] = (),
) -> Held:
    """Compare a record with today's store and prices; anything no option sets is asked as in the record."""
    from core.report.data import verdict  # noqa: PLC0415
    from core.report.gate import Held, asked_again, record_of, waived  # noqa: PLC0415

    was = record_of(path)
    given = [name for name in vars(question) if _given(ctx, name)]
    snapshot = ctx.obj.store().read(question.revision)
    view, dropped = waived(was, asked_again(was, question, snapshot, given).on_page(ctx.obj), waive)
    if was.command is None:
        complain("warning: the record leaves out what does not compare in a way that no option repeats.")
    return Held(was, view, verdict(view), share, least_pgs, dropped)


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


@deciding
def run(
    ctx: typer.Context,
    record: Annotated[
        Path, typer.Argument(help="A decision record (JSON), as `record` wrote it.", show_default=False)
    ],
    question: Question,
    *,
    share: ShareOption = 0.8,
    least_pgs: LeastOption = 0.0,
    waive: WaiveOption = None,
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

    Exit codes: 0 it holds; 1 refused, such as no record or no such workspace; 2 wrong usage; 4 it is surely
    worse than what the rule chooses, or its PGS is below what is asked; 5 it breaks a limit; 6 it is gone; 7
    what a limit asks for is unknown of it, unless --waive says to go on without. Of several causes the
    gravest counts. Files are written whether or not it holds; one that is there is replaced.
    """
    from core.report import gate_files  # noqa: PLC0415
    from core.report.gate_blocks import gate_blocks  # noqa: PLC0415
    from core.report.plain import pieces  # noqa: PLC0415

    held = compared(ctx, record, question, share=share, least_pgs=least_pgs, waive=waive or ())
    whole = escaped(
        json.dumps(
            gate_files.as_data(held, dashboard=dashboard), ensure_ascii=False, indent=2, allow_nan=False
        )
    )
    if junit is not None:
        write_text(junit, gate_files.as_junit(held, record.name))
    if markdown is not None:
        write_text(markdown, gate_files.as_markdown(held, dashboard=dashboard))
    if json_ is not None:
        write_text(json_, f"{whole}\n")
    if form is Format.JSON:
        typer.echo(whole)
    elif form is Format.CSV:
        emit(held.changes, form)
    else:
        lay(pieces(gate_blocks(held)))
    if not held.holds:
        raise typer.Exit(gate_files.CODES[held.cause])
