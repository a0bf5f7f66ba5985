"""How far the ids of an import are those of its collection, and what to do where none is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from core.importers import Options
from core.views.add.imports import Plan
from core.views.add.matching import Match, Unmatched, refused
from core.views.text import count, plain

_LINES = 6
_POLICY: Mapping[Unmatched, str] = {
    "refuse": "Stop and say so",
    "own": "Make a collection of its own",
    "take": "Take it all the same",
}


def asked(found: Plan, decided: Options) -> tuple[Options, Unmatched]:
    """Where nothing exists in the collection: say so with both kinds of id, and ask what to do.

    Returns:
        `decided`, with what is to be stripped, and what else to do.
    """
    strange = refused(found.matches)
    if not strange:
        return decided, "refuse"
    st.subheader("These ids are not those of the collection", anchor=False)
    for each in strange[:_LINES]:
        st.warning(plain(f"{each}. {each.examples}"), icon=":material/link_off:")
    strips = {each.what: each.strip for each in strange if each.strip}
    ways: dict[str, str] = {}
    if strips:
        shown_as = ", ".join(f"{what} {pattern}" for what, pattern in strips.items())
        ways["strip"] = f"Take off what the ids have more, and keep what the star stands for: {shown_as}"
    ways |= {each: words for each, words in _POLICY.items() if each != "refuse"}
    chosen = st.radio(
        "What should become of it?",
        list(ways),
        index=None,
        format_func=lambda each: plain(ways[each]),
        key="_unmatched",
        help="Or choose another collection above.",
    )
    if chosen == "strip":
        return replace(decided, strip={**decided.strip, **strips}), "refuse"
    return decided, "own" if chosen == "own" else "take" if chosen == "take" else "refuse"


def foreign(found: Plan) -> bool:
    """Whether something of it names nothing that its collection has."""
    return bool(refused(found.matches))


def shown(found: Plan) -> None:
    """How many queries and passages exist in the collection, or in which stored one they do."""
    strange = refused(found.matches)  # those are asked about
    lines = [each for each in found.matches if each not in strange]
    for each in lines[:_LINES]:
        _line(each)
    if more := lines[_LINES:]:
        least = min(more, key=lambda each: each.known / each.offered)
        st.caption(plain(f"{count(len(more), 'more line')} of this kind; the lowest: {least}."))
    if found.apart and not found.suggested:
        said = "; ".join(map(str, found.apart))
        names = " ".join(each.examples for each in found.apart)
        do = "The files make a new collection; choose this one above if they belong to it."
        st.warning(plain(f"{said}. {names} {do}"), icon=":material/link_off:")
    if found.suggested:
        said = "; ".join(map(str, found.suggested))
        st.info(plain(f"{said}: choose it under Collection to put the files there."), icon=":material/link:")


def _line(match: Match) -> None:
    whole = match.known == match.offered
    icon = ":material/check:" if whole else ":material/link_off:" if not match.known else ":material/link:"
    st.markdown(f"{icon} {plain(str(match))}")


def policy() -> Unmatched:
    """What to do where nothing exists, asked beforehand of what is read in the background."""
    chosen: Unmatched = st.selectbox(
        "Where no id exists in the collection",
        list(_POLICY),
        format_func=lambda each: _POLICY[each],
        help="The ids are compared with those of the collection before anything is written.",
    )
    return chosen
