"""``router FOLDER``: learn which stack answers which query; write the two files that decide so elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.cli.base import complain
from core.cli.context import Format, emit
from core.cli.deciding import QuestionOptions, deciding
from core.cli.page import choices_of
from core.errors import InputError
from core.files import write_out


@deciding
def run(
    ctx: typer.Context,
    question: QuestionOptions,
    *,
    folder: Annotated[Path, typer.Argument(help="A new folder for router.json and router.py.")],
    choose: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A choice of the section Router of page What if: fam, ks, among, signs, routby, most.",
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print what it gains.")] = Format.TABLE,
) -> None:
    """Learn a router from several signs, print what it gains on queries it has not seen, and write it."""
    # Imported here as the charting library is slow to load, and no other command should wait for it.
    from core.contrib.router import learned  # noqa: PLC0415
    from core.contrib.router import section as router  # noqa: PLC0415
    from core.views.ask import Given  # noqa: PLC0415

    if folder.exists():
        raise InputError("It exists already.", where=str(folder), do="Name a new folder.")
    view, ask = question.on_page(ctx.obj), Given(choices_of(choose or ()))
    plan = router.asked(view, ask)
    ask.unasked()
    rule = plan if isinstance(plan, str) else router.learnt(view, plan)
    if isinstance(plan, str) or isinstance(rule, str):
        raise InputError(str(rule))
    written = learned.files(router.told(view, plan, rule))
    folder.mkdir(parents=True)
    for name, text in written.items():
        write_out(folder / name, text)
    complain(router.sentence(view, plan, rule))
    complain(f"written: {', '.join(str(folder / name) for name in written)}")
    emit(rule.methods, form)
