"""The button that puts the link to this view of this data on the clipboard."""

from __future__ import annotations

import streamlit as st

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
    button:focus-visible { outline: 2px solid var(--st-text-color); outline-offset: 2px; }
    input { font: inherit; width: 100%; margin-top: 0.25rem; }
    [role=status] { position: absolute; clip-path: inset(50%); }
    """,
    js="""
    const address = (revision) => {
      const url = new URL(window.location.href);
      url.searchParams.set("rev", revision);
      return url.href;
    };
    export default ({ data, parentElement }) => {
      const [button, field, status] = ["button", "input", "[role=status]"].map((one) =>
        parentElement.querySelector(one));
      if (!button.textContent) button.textContent = data.label;
      button.title = data.about;
      button.dataset.longest = data.copied;  // whose width stays reserved
      button.onclick = async () => {
        const link = address(data.revision);
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


def share(revision: int) -> None:
    """Draw the button.

    Args:
        revision: The data that the link pins.
    """
    _component(
        key="share",
        data={
            "revision": str(revision),
            "label": "Share",
            "copied": "Link copied",
            "refused": "Copy the link from the field.",
            "about": f"Copies the link to this view of revision {revision} of the data.",
        },
    )
