import streamlit as st

from core.importers import FORMATS, Offered, Options
from core.importers.formats.table.rowed import OpenRowError
from core.importers.read.number_format import OpenNumbersError
from core.pipeline.own.config import MatchBy
from core.ui import access, cache, show
from core.ui.add import files, large, target
from core.ui.pages import pick_section
from core.ui.view import end
from core.views import columns as cols
from core.views.pages import PAGES
from core.views.text import count, plain
from core.work.imports import imports, words
from core.work.imports import imports as known
from core.work.imports.imports import ImportPlan

PAGE = PAGES["add"]


def results() -> None:
    """Draw result files, match them with the workspace, and write them."""
    if forbidden := access.forbidden():
        st.info(plain(forbidden), icon=":material/lock:")
        end()
    show.head(words.DROP)
    large.done()
    large.underway()
    items = files.offered()
    if not items:
        end()
    decided = target.decided_about(items)
    blocks, into, bar = st.container(), st.container(), st.container()
    with into, st.container(horizontal=True, vertical_alignment="bottom"):
        where = st.container(width="content")
        chosen = target.options(decided)
    with blocks:
        chosen, places = files.blocks(files.looked(items, chosen), chosen)
        chosen = target.as_decided(chosen, decided)
        wrong = files.problems(files.looked(items, chosen), places, chosen.skip)
    workspace = target.open_workspace(chosen)
    plan = ImportPlan() if wrong or files.large(items) else read(items, chosen, decided, workspace)
    with where:
        target.goes_into(plan, chosen, decided)
    with bar:
        if files.large(items):
            st.caption(words.NOTHING_YET)
            large.start(items, chosen, workspace, ready=not wrong)
        elif plan.made is None:
            if isinstance(plan.problem, OpenNumbersError):
                target.numbers(plan.problem, decided)
            elif isinstance(plan.problem, OpenRowError):
                target.rows(plan.problem, [file.name for file in files.looked(items, chosen)])
            elif plan.problem is not None:
                st.error(plain(words.on_page(str(plan.problem))), icon=":material/error:")
            target.numbers_read(decided)
            st.caption("Nothing was written.")
        else:
            st.caption(words.NOTHING_YET)
            target.matches(plan, decided, workspace)
            target.placed(plan, decided)
            target.own_ids(plan, decided)
            target.strangers(plan, decided)
            target.numbers_read(decided)
            waiting = [] if decided.take else [name for group in plan.strange for name in group.files]
            large.bar(plan.made, decided.names, "take" if decided.take else "refuse", waiting)


def read(items: list[Offered], chosen: Options, decided: target.Decided, workspace: str | None) -> ImportPlan:
    """Read the content of the files, once per set of files and decisions."""
    key = files.fingerprint(items, chosen, sorted(decided.strips.items()), workspace, decided.by)
    return _read(key, items, chosen, decided.strips, workspace, decided.by)


@cache.cached("Reading the files…", entries=4)
def _read(
    key: str,
    _items: list[Offered],
    _chosen: Options,
    _strips: imports.SplitFiles,
    _ws: str | None,
    _by: MatchBy,
) -> ImportPlan:
    del key
    return imports.plan(_items, _chosen, cache.snapshot(None), workspace=_ws, apart=_strips, by=_by)


def formats() -> None:
    """Draw the formats that can be added, and what is taken from each."""
    show.head(f"{count(len(FORMATS), 'format')} can be added.", known.ALWAYS)
    rows = known.format_table()
    titles = dict(zip(rows["as"], rows["format"], strict=True))
    name = st.selectbox("Find a format", list(titles), index=None, format_func=titles.__getitem__)
    if name:
        st.markdown("\n".join(f"- **{plain(what)}:** {plain(how)}" for what, how in known.described(name)))
    shown = cols.Rows(
        "formats",
        *(cols.text("format", width=390), cols.text("as"), cols.text("brings")),
        more=[cols.text(name) for name in rows.columns if name not in ("format", "as", "brings")],
    )
    show.table(rows, shown, height="content")


dict(zip(PAGE.sections, (results, formats), strict=True))[pick_section(PAGE)]()
