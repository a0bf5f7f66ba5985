"""The exports of a page: the link to this view, and the decision record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.workspace.sure import drawn
from core.analysis.workspace.view import View
from core.decide.rules import Rule
from core.report.data import Verdict
from core.report.files import file_name, record_file, snapshot_file
from core.views.confidence import data

_component = st.components.v2.component(
    "clq_share",
    html='<button type="button"></button><input type="text" readonly hidden aria-label="Link">'
    '<span role="status"></span>',
    css="""
    :host { display: block; position: relative; }
    button {
      font: inherit; color: var(--st-background-color); background: var(--st-primary-color);
      border: 1px solid var(--st-primary-color);
      border-radius: var(--st-button-radius); padding: 0.35rem 0.9rem; min-height: 2.5rem; cursor: pointer;
      white-space: nowrap; vertical-align: top;
    }
    button::after {
      content: attr(data-longest); display: block; height: 0; overflow: hidden; visibility: hidden;
    }
    @media (max-width: 640px) { button { min-height: 44px; } }
    button:focus-visible { outline: 2px solid var(--st-text-color); outline-offset: 2px; }
    input { font: inherit; width: 100%; margin-top: 0.25rem; }
    [role=status] { position: absolute; clip-path: inset(50%); }
    """,
    js="""
    const address = ({ revision, workspace }) => {
      const url = new URL(window.location.href);
      url.searchParams.set("rev", revision);
      // The address leaves out the first workspace, which may be another one where the link is opened.
      url.searchParams.set("ws", workspace);
      return url.href;
    };
    export default ({ data, parentElement }) => {
      const [button, field, status] = ["button", "input", "[role=status]"].map((one) =>
        parentElement.querySelector(one));
      if (!button.textContent) button.textContent = data.label;
      button.title = data.about;
      button.dataset.longest = data.copied;  // whose width stays reserved
      button.onclick = async () => {
        const link = address(data);
        try {
          await navigator.clipboard.writeText(link);
          button.textContent = status.textContent = data.copied;
          field.hidden = true;
        } catch {
          field.hidden = false;
          field.value = link;
          field.select();
          status.textContent = data.refused;
        }
        setTimeout(() => { button.textContent = data.label; status.textContent = ""; }, 2500);
      };
    };
    """,
)


def share(revision: int, workspace: str) -> None:
    """Draw the button that copies the link to a revision of a workspace."""
    _component(
        key="share",
        data={
            "revision": str(revision),
            "workspace": workspace,
            "label": "Share",
            "copied": "Link copied",
            "refused": "Copy the link from the field.",
            "about": f"Copies the link to this view of revision {revision} of the data.",
        },
    )


_FILES = (
    (".html", "HTML", "text/html", ":material/description:"),
    (".md", "Markdown", "text/markdown", ":material/notes:"),
    (".json", "JSON", "application/json", ":material/data_object:"),
)


def offer(
    place: DeltaGenerator, view: View, link: str, rule: Rule = "quality", *, weak: bool = False
) -> None:
    """Draw a button that opens the choice of files."""
    screen = (view, link, rule, weak)
    button = place.popover("Record", icon=":material/fact_check:", key="record", on_change="rerun")
    if not button.open:  # hidden content would slow down every move of a slider
        return
    with button:
        st.caption(
            "What was chosen, the runner-up, the frontier, why the others are out, what would turn the "
            "choice, how far to trust it, prices, and this view's link where others can open it. The HTML is "
            "small, opens without a network and prints well."
        )
        bar = st.container(horizontal=True)
        for ending, label, mime, icon in _FILES:
            bar.download_button(
                label,
                partial(_written, partial(record_file, ending), *screen),
                file_name=file_name("decision-record", view, ending),
                mime=mime,
                key=f"record{ending}",
                on_click="ignore",
                icon=icon,
            )
        st.caption(
            "Snapshot: the whole workspace as one HTML file that stands still, with the frontier, headroom, "
            "K curves, evidence and a table of every stack."
        )
        st.download_button(
            "Snapshot",
            partial(_written, snapshot_file, *screen),
            file_name=file_name("snapshot", view, ".html"),
            mime="text/html",
            key="snapshot",
            on_click="ignore",
            icon=":material/photo_camera:",
        )


def _written(render: Callable[..., str], view: View, link: str, rule: Rule, weak: bool) -> str:
    """Render a file of the current screen."""
    view = view.replace(rule=rule, weak=weak)
    return render(view, decided(view), address=link, made_at=datetime.now(UTC))


def decided(view: View) -> Verdict:
    """Return the decision on screen, with its confidence."""
    shares = data.chances(view, view.constraints, view.rule)
    return Verdict(view.table, view.decision, shares, view.sure, view.paired, drawn(view, view.noise))
