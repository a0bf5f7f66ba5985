import streamlit as st

from core.ui import (
    access,
    importing,
    importing_done,
    importing_large,
    importing_look,
    importing_match,
    offering,
    show,
)
from core.ui.pages import PAGES, pick_section
from core.ui.view import end
from core.views.add.formats import described, format_table, headline, matrix_table
from core.views.text import plain


def files() -> None:
    """Look at result files, match them with the workspace, and write them."""
    show.head("Drop result files: rankings, judgements, corpora or tables of figures.")
    if forbidden := access.forbidden():
        st.info(plain(forbidden), icon=":material/lock:")
        end()
    importing_done.done()
    importing_large.underway()
    offered = offering.offered()
    if not offered:
        st.caption("No file yet? A table to fill in; as it is, it can be imported to look around:")
        offering.templates()
        st.markdown(
            "The same from the command line: `python -m core import PATH…` (add `--dry-run` to only look)."
        )
        end()

    decided = importing.options()
    if offering.large(offered):
        seen = importing_large.looked(importing.fingerprint(offered, decided), offered, decided)
        decided = importing_look.previews(seen, decided)
        seen = importing_large.looked(importing.fingerprint(offered, decided), offered, decided)
        importing_large.start(offered, decided, seen, importing.open_workspace(decided))
        end()
    decided = importing_look.previews(importing.read(offered, decided).previews, decided)
    found = importing.read(offered, decided)
    if found.made is None:
        importing.problem(found)
        end()
    decided, unmatched = importing_match.asked(found, decided)
    found = importing.read(offered, decided, unmatched)
    if found.made is None:
        importing.problem(found)
        end()
    importing_match.shown(found)
    importing.outcome(found.made)
    strange = unmatched != "take" and importing_match.foreign(found)
    importing.write(found.made, [each.name for each in offered], unmatched, refused=strange)


def formats() -> None:
    """Which tools' output can be imported, and what is taken of it."""
    show.head(*headline())
    rows = format_table()
    st.subheader("What is taken", anchor=False)
    matrix = matrix_table()
    show.table(matrix, "matrix", {name: show.text_column(name) for name in matrix.columns}, height="content")
    st.caption(
        "A cell says what of the format fills the table; empty where the format has nothing of the kind. "
        "Click a cell twice to read all of it, or choose the format below."
    )

    st.subheader("One format", anchor=False)
    titles = dict(zip(rows["as"], rows["format"], strict=True))
    name = st.selectbox("Format", list(titles), format_func=titles.__getitem__, label_visibility="collapsed")
    st.markdown("\n".join(f"- **{plain(what)}:** {plain(how)}" for what, how in described(name)))

    st.subheader("How they are recognised, converted, and what is left out", anchor=False)
    columns = {column: show.text_column(column.replace("_", " ")) for column in rows.columns}
    show.table(rows, "formats", columns, height="content")


PAGE = PAGES["add"]
SECTIONS = dict(zip(PAGE.sections, (files, formats), strict=True))
SECTIONS[pick_section(PAGE)]()
