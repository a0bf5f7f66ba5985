import streamlit as st

from core.ui import cache, deleting, inventory, show
from core.ui.view import end, find_view
from core.views.decision import overview
from core.views.library.inventory import answer
from core.views.text import plain

view = find_view()
snapshot = cache.snapshot(None) if view is None else view.snapshot
why_not = deleting.forbidden(snapshot)
sentence, details = answer(snapshot)
show.head(
    sentence,
    details,
)
with st.container():  # always there, so that the tabs below keep their place
    deleting.outcome()
if snapshot.revision == 0:
    st.info("The store is empty. Import results, or load the demo with `make demo`.", icon=":material/inbox:")
    st.page_link("pages/add.py", label="Import results", icon=":material/upload:")
    end()

held, gone, records, out, papers, past = st.tabs(
    ["Runs", "Deleted", "Collections and golden sets", "Export", "Published tables", "History"]
)
with held:
    inventory.runs(snapshot, why_not=why_not)
with gone:
    inventory.deleted(snapshot, why_not=why_not)
with records:
    st.caption(plain(overview.latest_change(snapshot)))
    show.table(
        overview.contents(snapshot),
        "contents",
        {
            "collection_id": show.text_column("workspace"),
            "name": show.text_column("collection", width="large"),
            "runs": show.number_column("runs", 0),
            "measured": show.number_column("measured here", 0),
            "imported": show.number_column("imported", 0),
            "published": show.number_column("published", 0),
            "queries": show.number_column("queries", 0),
            "passages": show.number_column("passages", 0),
            "golden_sets": show.number_column("golden sets", 0),
            "judgements": show.number_column("judgements", 0),
        },
    )
    inventory.records(snapshot, why_not=why_not)
with out:
    inventory.exports(snapshot, view.scope.collection_id if view else None)
with papers:
    inventory.published()
with past:
    inventory.history(snapshot)
