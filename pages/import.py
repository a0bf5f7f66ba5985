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
from core.ui.view import end
from core.views.text import plain

show.head(
    "What this does: brings results you already have into the store; nothing is written before you say so.",
    "Drop result files: rankings, judgements, corpora or tables of figures.",
)
if forbidden := access.forbidden():
    st.info(plain(forbidden), icon=":material/lock:")
    end()
importing_done.done()
importing_large.underway()
files = offering.offered()
if not files:
    st.caption("No file yet? A table to fill in; as it is, it can be imported to look around:")
    offering.templates()
    st.markdown(
        "The same from the command line: `python -m core import PATH…` (add `--dry-run` to only look)."
    )
    st.page_link("pages/formats.py", label="What can be imported", icon=":material/description:")
    end()

decided = importing.options()
if offering.large(files):
    seen = importing_large.looked(importing.fingerprint(files, decided), files, decided)
    decided = importing_look.previews(seen, decided)
    seen = importing_large.looked(importing.fingerprint(files, decided), files, decided)
    importing_large.start(files, decided, seen, importing.open_workspace(decided))
    end()
decided = importing_look.previews(importing.read(files, decided).previews, decided)
found = importing.read(files, decided)
if found.made is None:
    importing.problem(found)
    end()
decided, unmatched = importing_match.asked(found, decided)
found = importing.read(files, decided, unmatched)
if found.made is None:
    importing.problem(found)
    end()
importing_match.shown(found)
importing.outcome(found.made)
strange = unmatched != "take" and importing_match.foreign(found)
importing.write(found.made, [each.name for each in files], unmatched, refused=strange)
