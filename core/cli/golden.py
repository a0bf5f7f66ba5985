"""``golden …``: build golden sets, judge, refine, and show progress.

``judges agree|merge|add``: whether golden sets of one collection agree, one golden set from several, and
manual grades added to an existing one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.bidi import escaped
from core.cli import questions
from core.cli.base import Context, complain
from core.cli.context import Format, FormatOption, YesOption, emit
from core.cli.deciding import QuestionOptions, deciding
from core.cli.runs import agreed, carried_out, leave_if_cancelled, warn
from core.cli.runs.paid import add_commands, add_resume, add_status
from core.errors import InputError
from core.golden.refine.base import RefineMethod, RefineSettings
from core.importers.read.text import shown
from core.stats.judges import Policy
from core.toml_text import toml
from core.views.golden import judges
from core.views.golden.judges import POLICIES

if TYPE_CHECKING:  # the engines take a second to load, and no other command should wait for them
    from core.analysis.deciding import Contest
    from core.pipeline.evaluate.session import Result
    from core.work.golden.job import GoldenJob
    from core.work.golden.plan import GoldenPlan
    from core.work.work import Work


_JUDGE = "gpt-4o-mini"
_SPEC = """\
name = {name}
collection = {collection}
{queries}budget_usd = {budget:g}                # it stops before it costs more

[golden]
language = "en"                 # of the judges' instructions: en or fr

[[golden.pool]]                 # where candidates come from; add the indexes that you will compare
stack = {{ sparse = "bm25" }}
depth = 50

[[golden.pool]]
stack = {{ embedder = "wordllama" }}   # runs on this machine, without a key
depth = 50

[golden.judge]
models = {judges}

[golden.refine]
method = "none"                 # auto: the best are put in order, too, where the measured noise lets it pay
"""
_SHOWN = ("golden_set_id", "collection_id", "name", "judge", "queries", "judgements")
_HELPS = {
    "plan": "Print how many texts will be judged, with calls, tokens, dollars and time.",
    "build": "Build the golden set of a specification, or what is left; nothing is judged or paid twice.",
    "resume": "Go on with a build where it stopped; the budget counts what was spent before.",
    "status": "List the builds that were begun, newest first.",
}
_LINE = 600
_REFINED = RefineSettings()


def new_spec(
    texts: Annotated[
        Path,
        typer.Argument(
            help="Passages with ids: .csv, .tsv, .jsonl, .parquet, or a BEIR folder.",
            exists=True, show_default=False,
        ),
    ],
    *,
    questions: Annotated[
        Path | None,
        typer.Option(exists=True, help="Questions with ids, as a table; a BEIR folder brings its own."),
    ] = None,
    judge: Annotated[
        list[str] | None, typer.Option(help="Chat model; may be repeated.", show_default=_JUDGE)
    ] = None,
    name: Annotated[str, typer.Option(help="Of the golden set.")] = "judged",
    budget: Annotated[float, typer.Option(min=0, help="The most dollars.")] = 5.0,
) -> None:  # fmt: skip
    """Print a specification for your texts and questions: save it, look it over, and build it.

    golden new texts.csv --questions questions.csv > golden.toml, then golden build golden.toml.
    """
    queries = "" if questions is None else f"queries = {toml(str(questions.absolute()))}\n"
    judges = toml(judge or [_JUDGE])
    collection = toml(str(texts.absolute()))
    typer.echo(
        _SPEC.format(name=toml(name), collection=collection, queries=queries, budget=budget, judges=judges),
        nl=False,
    )


def _work() -> Work[GoldenJob, GoldenPlan, Result]:
    from core.work.golden.kind import GOLDEN  # noqa: PLC0415

    return GOLDEN


def _built(context: Context, _: GoldenJob, result: Result, form: Format) -> None:
    rows = context.store().read().golden_sets().filter(golden_set_id=result.stored)
    emit(rows.select(_SHOWN), form)


@deciding
def proposed(
    ctx: typer.Context,
    question: QuestionOptions,
    *,
    n: Annotated[int, typer.Option("--n", min=1, help="How many passages.")] = 20,
    target: Annotated[
        float, typer.Option(min=0, max=1, help="Probability of good selection that is enough.")
    ] = 0.9,
    queue: Annotated[
        bool,
        typer.Option("--queue", help="Write them down as a queue that a judge can take in the dashboard."),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say which unjudged passages to judge next: those whose grades could change the choice."""
    from core.analysis.judging import what_next  # noqa: PLC0415
    from core.golden.book import Book  # noqa: PLC0415
    from core.views.golden.judging import book_path, propose  # noqa: PLC0415
    from core.views.words.judging import next_words  # noqa: PLC0415

    view = question.on_page(ctx.obj)
    quality, scope = view.quality, view.scope
    proposal = what_next(view)
    if proposal is None:
        raise InputError(
            f"No two stacks differ in {quality.name} by grades of passages.",
            do="Choose another measure, or import rankings and judgements.",
        )
    reached = proposal.filled is not None and proposal.filled >= target
    rows = proposal.worth.rows.head(0 if reached else n)
    name = None
    if queue and rows.height:
        book = Book(book_path(ctx.obj.store()))
        name = propose(book, proposal.within, rows, scope.golden_set_id or "").queue_id
    if form is Format.JSON:
        whole: dict[str, object] = {"stack": proposal.stack, "target": target, "reached": reached}
        whole |= {"pgs": proposal.pgs, "pgs_if_judged": proposal.filled}
        whole |= {"waiting": proposal.worth.rows.height, "queue": name, "next": rows.to_dicts()}
        typer.echo(escaped(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)))
        return
    complain(shown(next_words(proposal, quality, target), _LINE))
    emit(rows, form, empty="Nothing to judge.")
    if name is not None:
        complain(f"Queue {name}: open Golden sets, section judge, to take it.")


@deciding
def between(
    ctx: typer.Context,
    question: QuestionOptions,
    now: Annotated[str, typer.Argument(help="The stack that runs today.", show_default=False)],
    to: Annotated[str, typer.Argument(help="The candidate.", show_default=False)],
    *,
    margin: Annotated[float, typer.Option(min=0, help="What the candidate has to be better by.")] = 0.0,
    alike: Annotated[float, typer.Option(min=0, max=1, help="Difference that does not matter.")] = 0.02,
    queue: Annotated[
        bool, typer.Option("--queue", help="Write down what to judge, for a judge to take in the dashboard.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(help="A golden set, such as a model's, whose grades decide.", show_default=False),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="A chat model that judges question by question, until its grades decide.", show_default=False
        ),
    ] = None,
    judge_usd: Annotated[
        float | None, typer.Option(min=0, help="The most dollars of this judge.", show_default=False)
    ] = None,
    yes: YesOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say what two stacks show differently, and what the grades of their queue decide so far.

    --judge has a model grade: it stops once decided, or at --judge-usd; the same command goes on.
    """
    from core.analysis.between import between as compared  # noqa: PLC0415
    from core.analysis.between import book_of, judged_within  # noqa: PLC0415
    from core.analysis.deciding import Contest  # noqa: PLC0415
    from core.analysis.workspace.resolve import taken  # noqa: PLC0415
    from core.views.golden.sections import begin  # noqa: PLC0415
    from core.views.words.deciding import changed, errs, stands  # noqa: PLC0415

    view = question.on_page(ctx.obj)
    ends = {"now": taken(view.table, now), "to": taken(view.table, to)}
    contest = Contest(**ends, k=view.quality.k, margin=margin, delta=alike)
    if queue:
        begin(book_of(view.snapshot), view.snapshot, view.scope, contest)
    if judge is not None:
        within = judged_within(view.snapshot, view.scope, contest)
        by = _judged_by(ctx.obj, contest, within, judge, judge_usd, yes=yes)
        view = view.replace(snapshot=ctx.obj.store().read())
    found = compared(view, contest, by)
    if form is Format.JSON:
        typer.echo(escaped(json.dumps(found.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)))
        return
    complain(" ".join(changed(found)))
    if found.standing is not None:
        complain(" ".join((stands(found.standing), errs(found))).rstrip())
    emit(found.questions, form)


def _judged_by(
    context: Context, contest: Contest, collection: str, judge: str, budget: float | None, *, yes: bool
) -> str:
    """Have a model grade what decides, or go on with it; return the golden set with its grades."""
    from core.work.golden.spec import GoldenSpec  # noqa: PLC0415

    work = _work()
    asked = {"now": contest.now, "to": contest.to, "k": contest.k}
    told = {
        "name": f"{contest.now} {contest.to} {contest.measure} by {judge}",
        "collection": {"stored": collection},
        "budget_usd": budget,
        "golden": {
            "between": {**asked, "margin": contest.margin, "alike": contest.delta},
            "judge": {"models": [judge]},
        },
    }
    spec = GoldenSpec.model_validate(told)
    job, problems = work.read(context.store().read(), spec, context.books(), to_run=True)
    warn(problems)
    if not agreed(work.plan(job, ()).usd, yes=yes):
        raise typer.Exit(1)
    result = carried_out(context, work.folder, work.kept, partial(work.run, context.store(), job))
    complain(work.ended(result.status))
    leave_if_cancelled(result)
    return str(result.stored)


def simulated(
    *,
    noise: Annotated[
        float, typer.Option(help="Of the judge: standard deviation in grades.", min=0, show_default=False)
    ],
    items: Annotated[int, typer.Option(help="Passages per query.")] = 40,
    confirmations: Annotated[
        int, typer.Option(help="Judgements that lock a pair; 0 = only a clear margin of the scores does.")
    ] = _REFINED.confirmations,
    stable: Annotated[
        int, typer.Option(help="Turns for which the Top-20 has to stay the same.")
    ] = _REFINED.stable,
    method: Annotated[
        RefineMethod,
        typer.Option(help="locks: Algorithm 1 of the paper; map: the likeliest order of all answers."),
    ] = "locks",
    runs: Annotated[int, typer.Option(help="Queries to simulate.")] = 200,
    turns: Annotated[
        int | None,
        typer.Option(help="Turns at most; by default 1000 of locks, 300 of map.", show_default=False),
    ] = None,
    sure: Annotated[
        float, typer.Option(help="map stops when the Top-20 is right with this probability; 1 = never.")
    ] = _REFINED.sure,
    seed: Annotated[int | None, typer.Option(help="Of all that is random.", show_default=False)] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print Kendall's tau to the true order, refined and by grades alone, and the turns that it takes."""
    # Imported here as it takes a second to load, and no other command should wait for it.
    from core.golden.refine.predict import World, simulate  # noqa: PLC0415
    from core.stats.intervals import SEED  # noqa: PLC0415

    usual = 1_000 if method == "locks" else _REFINED.turns
    limit = usual if turns is None else turns
    settings = RefineSettings(
        method=method, confirmations=confirmations, stable=stable, sure=sure, turns=limit
    )
    world = World(noise=noise, items=items)
    seed = SEED if seed is None else seed
    outcome = simulate(settings, world, runs=runs, seed=seed)
    if outcome.stable < 1:
        complain(f"{1 - outcome.stable:.0%} of the queries had not come to rest after {limit} turns.")
    asked = {"method": method, "noise": noise, "items": items, "confirmations": confirmations,
             "stable_turns": stable, "turn_limit": limit}  # fmt: skip
    emit(pl.DataFrame([{**asked, **asdict(outcome), "runs": runs, "seed": seed}]), form)


app = typer.Typer(
    help="Build golden sets of texts and questions: `golden new TEXTS > golden.toml` writes down what is "
    "wanted, `golden build golden.toml` has it judged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("new")(new_spec)
add_commands(app, _HELPS, _work, _built, empty="No golden set was built here.")
app.command("questions")(questions.run)
add_resume(app, "questions-resume", questions.RESUME, questions.work, questions.made)
add_status(app, "questions-status", questions.STATUS, questions.work, "No questions were made here.")
app.command("simulate")(simulated)
app.command("next")(proposed)
app.command("between")(between)

judging = typer.Typer(
    help="Compare the golden sets of several judges, merge them, or add grades by hand to what was known.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
SetsArgument = Annotated[
    list[str], typer.Argument(help="Golden sets of one collection, two or more.", show_default=False)
]


@judging.command("agree")
def agree(ctx: typer.Context, sets: SetsArgument, form: FormatOption = Format.TABLE) -> None:
    """Print the agreement of every two judges (Cohen's kappa), and of all (Krippendorff's alpha, Fleiss)."""
    context: Context = ctx.obj
    judged = judges.judged(context.store().read(), sets)
    pairs = judges.agreement(judged)
    overall = judges.alpha(judged)
    complain(f"{judges.agreed(overall)} {judges.alike(pairs, overall)}".rstrip())
    complain(judges.all_agree(judged))
    emit(pairs, form)


@judging.command("merge")
def merge(
    ctx: typer.Context,
    sets: SetsArgument,
    *,
    into: Annotated[str, typer.Option(help="Name of the new golden set.", show_default=False)],
    policy: Annotated[
        Policy, typer.Option(help="; ".join(f"{name}: {words}" for name, words in POLICIES.items()) + ".")
    ] = "majority",
    form: FormatOption = Format.TABLE,
) -> None:
    """Write one golden set made of several; those stay as they are."""
    store = ctx.obj.store()
    golden = judges.write_merged(store, sets, policy, into)
    emit(store.read().golden_sets().filter(golden_set_id=golden.golden_set_id), form)


@judging.command("add")
def add(
    ctx: typer.Context,
    graded: Annotated[
        str, typer.Argument(help="Golden set with the grades by hand.", metavar="GRADES", show_default=False)
    ],
    *,
    to: Annotated[str, typer.Option("--to", help="Golden set of what was known.", show_default=False)],
    form: FormatOption = Format.TABLE,
) -> None:
    """Write a golden set of what was known and of grades by hand, which count where both grade a place."""
    from core.views.golden.adding import write_added  # noqa: PLC0415

    store = ctx.obj.store()
    golden = write_added(store, graded, to)
    complain(shown(golden.notes, _LINE))
    emit(store.read().golden_sets().filter(golden_set_id=golden.golden_set_id), form)
