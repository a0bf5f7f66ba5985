import streamlit as st

from core.ui import cache, deleting, inventory, show
from core.ui.view import end, find_view
from core.views.library.inventory import answer

view = find_view()
snapshot = cache.snapshot(None) if view is None else view.snapshot
why_not = deleting.forbidden(snapshot)
sentence, details = answer(snapshot)
show.head(
    "What this tells you: what the store holds, where it came from, and what happened to it.",
    sentence,
    details,
)
with st.container():  # always there, so that the tabs below keep their place
    deleting.outcome()
if snapshot.revision == 0:
    st.info("The store is empty. Import results, or load the demo with `make demo`.", icon=":material/inbox:")
    st.page_link("pages/import.py", label="Import results", icon=":material/upload:")
    end()

held, gone, records, out, papers, past = st.tabs(
    ["Runs", "Deleted", "Collections and golden sets", "Export", "Published tables", "History"]
)
with held:
    inventory.runs(snapshot, why_not=why_not)
with gone:
    inventory.deleted(snapshot, why_not=why_not)
with records:
    inventory.records(snapshot, why_not=why_not)
with out:
    inventory.exports(snapshot, view.scope.collection_id if view else None)
with papers:
    inventory.published()
with past:
    inventory.history(snapshot)
