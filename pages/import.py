from dataclasses import replace

import streamlit as st

from core.importers import matrix
from core.ui import importing, show

show.head(
    "What this does: brings results you already have into the store; nothing is written before you say so.",
    "Drop result files: rankings, judgements, corpora or tables of figures.",
)
importing.done()
files = importing.uploads()
if not files:
    st.markdown(
        "The same from the command line: `python -m core import PATH…` (add `--dry-run` to only look)."
    )
    with st.expander("What can be imported"):
        columns = {name: show.text_column(name) for name in ("name", "title", "brings")}
        st.dataframe(matrix(), column_config=columns, hide_index=True, width="stretch")
    st.stop()

decided = importing.options()
first = importing.read(importing.fingerprint(files, decided), files, decided)
mapping, chosen = importing.previews(first.previews)
decided = replace(decided, columns=mapping, split=chosen.get("split"), sheet=chosen.get("sheet"))
found = importing.read(importing.fingerprint(files, decided), files, decided)
if found.made is None:
    importing.problem(found)
    st.stop()
importing.outcome(found.made)
importing.write(found.made, [each.name for each in files])
