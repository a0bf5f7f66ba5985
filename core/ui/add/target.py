"""The destination of files: the workspace, how far their ids match it, and what to do with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.importers import FORMATS, GRADE_MAPPINGS, Options, mapping_text
from core.importers.formats.table.rowed import OpenRowError
from core.importers.read.number_format import SAID, OpenNumbersError, Reading
from core.importers.read.ordering import OwnIds
from core.pipeline.own.config import MatchBy as By
from core.ui import cache
from core.ui.add.files import leave_out
from core.views.text import plain
from core.work.imports import imports, words
from core.work.imports.anchored import StoredDocuments
from core.work.imports.imports import ImportPlan, Strange
from core.work.imports.matching import Match

if TYPE_CHECKING:
    from core.work.imports.placing import Placeable

_SLOT, _INTO, _NAMED = "_add_decided", "_into", "_add_named"
_BY_CONTENT = "by their values"
_LINES = 6


@dataclass
class Decided:
    """A visitor's decisions about one set of files: on ids unknown to the workspace, and on numbers."""

    files: str  # key of the files
    names: tuple[str, ...] = ()  # their names
    # File → prefix or suffix removed from its ids; "" = it becomes a separate workspace
    strips: dict[str, Mapping[str, str]] = field(default_factory=dict)
    take: bool = False  # whether everything is taken unchanged
    by: By = "ids"  # how passages of rankings may be identified
    own_ids: OwnIds = "keep"  # what to do with passages that have the id of their query
    # File → column → how to read its numbers, if they are ambiguous
    numbers: dict[str, dict[str, Reading]] = field(default_factory=dict)


def decided_about(items: Sequence[Any]) -> Decided:
    """Return the decisions about these files, or empty ones if the files have changed."""
    files = " ".join(str(getattr(item, "file_id", item)) for item in items)
    decided: Decided | None = st.session_state.get(_SLOT)
    if decided is None or decided.files != files:
        decided = st.session_state[_SLOT] = Decided(files, tuple(map(imports.name_of, items)))
    return decided


def options(decided: Decided) -> Options:
    """Return the user's options for all files; any may stay open."""
    snapshot = cache.snapshot(None)
    known = frozenset(snapshot.collections()["collection_id"])
    titles = {known_format.name: known_format.title for known_format in FORMATS}
    into: str | None = st.session_state.get(_INTO + decided.files)
    named = st.session_state.get(_NAMED, {}).get(decided.files)  # the one that the files name
    with st.popover("Options", icon=":material/tune:"):
        label = st.text_input("Name", placeholder="from the file", help="What the stack is called in charts.")
        golden = st.text_input(
            "Golden set", placeholder="from the file", help="What the judgements are called."
        )
        grades = st.selectbox(
            "Grades are",
            [_BY_CONTENT, *GRADE_MAPPINGS],
            format_func=lambda name: mapping_text(name) if name in GRADE_MAPPINGS else name,
            accept_new_options=True,
            help="How grades become 1 to 5. Type another mapping as 0→1, 1→3, 2→5; the grades as they were "
            "given are kept.",
        )
        format_ = st.selectbox(
            "Format",
            list(titles),
            index=None,
            format_func=titles.__getitem__,
            placeholder="by content",
            help="Only where a file could be of several formats, or is taken for another.",
        )
    return Options(
        format=format_,
        collection_id=None if into in ("", named) else into,
        label=label or None,
        golden_set_id=golden or None,
        grades=None if grades == _BY_CONTENT else grades,
        known_collections=known,
        documents=StoredDocuments.of(snapshot),
    )


def as_decided(chosen: Options, decided: Decided) -> Options:
    """Return the options with the chosen number format and treatment of own ids."""
    chosen = replace(chosen, own_ids=decided.own_ids)
    tables = {
        name: replace(chosen.table_as(name), numbers=numbers) for name, numbers in decided.numbers.items()
    }
    return replace(chosen, tables={**chosen.tables, **tables}) if tables else chosen


def numbers(problem: OpenNumbersError, decided: Decided) -> None:
    """Ask how to read each column with ambiguous numbers, showing its first cells either way."""
    st.markdown(f":material/help: {plain(words.open_numbers(problem))}")
    own = decided.numbers.setdefault(problem.name, {})
    for place, column in enumerate(problem.columns):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(column.column)}** {plain(' · '.join(column.cells))}", width="content")
            for way in column.ways:
                label = plain(words.read_as(column, way))
                st.button(label, key=f"{way}{place}", on_click=own.update, args=({column.column: way},))


def rows(problem: OpenRowError, names: Sequence[str]) -> None:
    """Ask whether the rows of a table are stacks or queries.

    Args:
        names: The files, in the order of their blocks.
    """
    st.markdown(f":material/help: {plain(words.on_page(problem.found))}")
    if problem.name in names:
        key = f"row{names.index(problem.name)}"  # the key of the block's own choice
        with st.container(horizontal=True):
            for row in problem.ways:
                label = f"Each row is {words.ROWS[row]}"
                st.button(label, key=f"each_{row}", on_click=st.session_state.update, args=({key: row},))


def numbers_read(decided: Decided) -> None:
    """Draw the chosen number format, and the button that asks again."""
    said = [f"{column}: {SAID[way]}" for read in decided.numbers.values() for column, way in read.items()]
    if said:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(plain("; ".join(said)), width="content")
            st.button("Undo", key="undo_numbers", type="tertiary", icon=":material/undo:",
                      on_click=decided.numbers.clear)  # fmt: skip


def open_workspace(chosen: Options) -> str | None:
    """Return the sidebar's workspace if the ids should decide whether the files belong to it."""
    workspace = st.session_state.get("ws")
    return workspace if chosen.collection_id is None and workspace in chosen.known_collections else None


def goes_into(plan: ImportPlan, chosen: Options, decided: Decided) -> None:
    """Draw the workspace, chosen or newly named, and how many queries and passages exist there."""
    named = st.session_state.get(_NAMED, {}).get(decided.files)
    if plan.made is not None and chosen.collection_id is None:
        named = imports.collection_of(plan.made) if imports.came(plan.made) == 1 else ""
        st.session_state[_NAMED] = {decided.files: named}
    known = sorted(chosen.known_collections)
    st.selectbox(
        "Import into",
        list(dict.fromkeys(name for name in (named, chosen.collection_id, *known) if name)),
        index=0 if named else None,
        accept_new_options=True,
        placeholder="as the files say" if named == "" else "named by the file",
        format_func=lambda name: name if name in chosen.known_collections else f"{name} (new workspace)",
        key=_INTO + decided.files,
        width=360,
        help="The workspace that rankings and judgements belong to. Choose one, or type a new name.",
    )


def matches(plan: ImportPlan, decided: Decided, workspace: str | None) -> None:
    """Draw how many ids exist in the destination, or in which other workspace they do."""
    strange = {match for group in plan.strange for match in group.matches}
    listed = [match for match in plan.matches if match not in strange and (match.foreign or not match.own)]
    lines = words.matched(listed)
    for line, whole in list(lines.items())[:_LINES]:
        st.markdown(f"{':green[:material/check:]' if whole else ':material/link:'} {plain(line)}")
    if len(lines) > _LINES:
        st.caption(f"And {len(lines) - _LINES} more workspaces.")
    if plan.suggested:
        fitting = plan.suggested[0].collection_id
        with st.container(horizontal=True, vertical_alignment="center"):
            line = plain("; ".join(words.matched(plan.suggested)))
            st.markdown(f":material/link: {line}", width="content")
            label = plain(f"Put it into {fitting}")
            st.button(label, on_click=_into, args=(decided, fitting), key="put_into")
    elif plan.apart:  # a new workspace beside the open one, which has other ids
        with st.container(horizontal=True, vertical_alignment="center"):
            _chip(plan.apart)
            if workspace and any(match.strip for match in plan.apart):
                _strip_button(Strange(decided.names, plan.apart), decided, workspace, "foreign")


def placed(plan: ImportPlan, decided: Decided) -> None:
    """Draw passages known to the workspace under other names, and the button that maps them."""
    for place, found in enumerate(plan.placeable):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/link: {plain(str(found))}", width="content")
            label = f"Match {found.found:,} by where they stand"
            st.button(label, key=f"place{place}", on_click=_by, args=(decided, found))
    if decided.by != "ids":
        st.button(
            "Undo the matching", key="undo_match", type="tertiary", icon=":material/undo:",
            on_click=setattr, args=(decided, "by", "ids"),
        )  # fmt: skip


def own_ids(plan: ImportPlan, decided: Decided) -> None:
    """Draw how many queries retrieve themselves, and the button that excludes those passages."""
    if plan.own:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/help: {plain(plan.own)}.", width="content")
            st.button("Leave these out", key="drop_own", on_click=setattr, args=(decided, "own_ids", "drop"))
    elif decided.own_ids == "drop":
        st.button("Undo leaving out own ids", key="undo_own", type="tertiary", icon=":material/undo:",
                  on_click=setattr, args=(decided, "own_ids", "keep"))  # fmt: skip


def _by(decided: Decided, found: Placeable) -> None:
    decided.by = found.match
    _into(decided, found.collection_id)


def strangers(plan: ImportPlan, decided: Decided) -> None:
    """Draw files whose ids are unknown to the workspace: both kinds of id, and a button per option."""
    for place, group in enumerate(() if decided.take else plan.strange):
        into = group.matches[0].collection_id
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(', '.join(group.files[:3]))}**", width="content")
            _chip(group.matches)
            _strip_button(group, decided, into, str(place))
            args = (plan, decided, group)
            st.button("A new workspace", key=f"own{place}", on_click=_own, args=args)
            if set(group.files) != set(decided.names):
                st.button("Leave out", key=f"without{place}", on_click=leave_out, args=group.files)
            st.button(
                "Take it as it is",
                key=f"take{place}",
                on_click=setattr,
                args=(decided, "take", True),
                type="tertiary",
            )
    if decided.strips or decided.take:
        label = "Undo what was decided about ids"
        st.button(
            label,
            key="undo_ids",
            type="tertiary",
            icon=":material/undo:",
            on_click=st.session_state.pop,
            args=(_SLOT, None),
        )


def _chip(matched: Sequence[Match]) -> None:
    """Draw the number of matches, and sample ids of both sides."""
    lost = [match for match in matched if match.foreign]
    st.badge(plain("; ".join(words.matched(matched))), color="orange", icon=":material/link_off:")
    for match in lost[:2]:
        st.caption(plain(words.sides(match)), width="content")


def _strip_button(group: Strange, decided: Decided, into: str, place: str) -> None:
    strips = {match.what: match.strip for match in group.matches if match.strip}
    if strips:
        label = plain(words.strip_label(group.matches))
        st.button(label, key=f"strip{place}", on_click=_strip, args=(decided, group.files, strips, into))


def _strip(decided: Decided, files: Sequence[str], strips: Mapping[str, str], into: str) -> None:
    decided.strips |= dict.fromkeys(files, strips)
    _into(decided, into)


def _own(plan: ImportPlan, decided: Decided, group: Strange) -> None:
    if set(group.files) == set(decided.names) and plan.made is not None:
        _into(decided, imports.own_name(plan.made, cache.snapshot(None)))
    else:
        decided.strips |= {name: {} for name in group.files}


def _into(decided: Decided, collection: str) -> None:
    st.session_state[_INTO + decided.files] = collection
