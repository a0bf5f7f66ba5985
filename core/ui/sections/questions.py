"""Section Questions of Golden sets: from documents alone to questions, and on to page Run; needs no store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.ui import access, cache, show, work
from core.ui.address.links import go
from core.ui.sections.review import review
from core.ui.view import chosen_here, here
from core.views import columns as cols
from core.views.text import plain
from core.work.paid import models
from core.work.questions import words as asking
from core.work.questions.drafts import KINDS
from core.work.questions.folder import read
from core.work.questions.form import RULES, QuestionsForm, specification
from core.work.questions.kind import QUESTIONS
from core.work.sweep import form as run_form
from core.work.work import StartedWork

_MADE = cols.Rows(
    "made",
    *(cols.text("question", width=320), cols.text("type")),
    cols.score("overlap", "words in quote", "Share of its words that stand in its quote, 0 to 1."),
    *(cols.text("source", "document"), cols.text("quote", width=320)),
    cols.count("frequency", "times asked", "Of a log."),
    cols.text("reason", "thrown out because"),
)


def questions() -> None:
    """Draw running work, the form, and earlier sets."""
    forbidden = access.forbidden()
    show.head(asking.headline([one.status for one in work.known(QUESTIONS)]), forbidden or asking.GOOD_FOR)
    work.underway(QUESTIONS, may_start=not forbidden, finish=_finish, inside=_inside)
    if not forbidden:
        _new()
    work.earlier(QUESTIONS, may_start=not forbidden, finish=_finish, inside=_inside)
    if not forbidden:
        _review()


def sets_made() -> dict[str, Path]:
    """Return the sets of questions that were made here: name → folder."""
    return {one.name: folder for one in work.known(QUESTIONS) if (folder := asking.made_in(one.status))}


def _review() -> None:
    """Draw the review of one of the sets."""
    if not (made := sets_made()):
        return
    with st.expander("Review by keys: accept, edit, reject", key="review_questions"):
        review(made[st.selectbox("Set", list(made), key="reviewed_set")])


def _finish(one: StartedWork, bar: DeltaGenerator) -> None:
    """Draw the link to page Run, with documents, questions and judgements filled in."""
    folder = asking.made_in(one.status)
    if folder is not None and bar.button("Run stacks on these", key=f"run_{one.name}", type="primary"):
        st.session_state[run_form.MADE] = here(str(folder))
        go("run")


def _inside(one: StartedWork) -> None:
    """Draw the questions, and the rejected ones with the reason."""
    folder = asking.made_in(one.status)
    if folder is None:
        return
    with st.expander("The questions", key=f"made_{one.name}"):
        st.caption(plain(str(folder)))
        rows = asking.rows(read(folder))
        shown = rows if (rows["frequency"] > 1).any() else rows.drop("frequency")
        known = [column for column in _MADE.columns if column.name in shown.columns]
        show.table(shown, cols.Rows(f"made_{one.name}", *known))


def _new() -> None:
    """Draw the form, the same as text, its errors, and its plan with the button."""
    as_form, as_text = st.tabs(["Form", "Text"])
    with as_form:
        filled = _fill_in()
    with as_text:
        written = specification(filled)
        text = work.draft(written, "questions", "TOML or YAML; docs/questions.md has every key.")
    if text != written:
        st.caption("The text was edited, and counts; a change in the form writes it anew.")
    elif not filled.documents:
        workspace, _ = here("")
        has_texts = not workspace or workspace in run_form.stored(cache.snapshot(None))[0]
        st.caption(plain(asking.choose("" if has_texts else workspace)))
        return
    elif filled.method == "log" and not filled.log:
        st.caption("Choose the log, or type a path.")
        return
    work.offer(QUESTIONS, text, key="questions")


def _fill_in() -> QuestionsForm:
    stored = run_form.stored(cache.snapshot(None))[0]
    workspace, begun = here(chosen_here(run_form.ASKED_OF))
    own_first = sorted(stored, key=lambda name: name != workspace)
    first, second = st.columns([3, 3, 1]), st.container()
    documents = work.chosen(first[0], "Documents", begun, own_first, key=f"questions_{workspace}_{begun}")
    offered = [*RULES, *(name for name in models() if name != "fake")]
    method = first[1].selectbox(
        "How", offered, key="questions_method", accept_new_options=True, help=asking.METHODS,
        format_func=lambda name: RULES.get(name, name),
    )  # fmt: skip
    count = first[2].number_input("How many", 1, 5_000, 64, key="questions_count")
    stem = Path(documents).stem or "questions"
    form = QuestionsForm(
        name=f"{stem}-{method}", documents=documents, stored=documents in stored, method=method, count=count
    )
    if method == "log":
        return _of_log(form, second, stored)
    return form if method in RULES else _of_model(form, second)


def _of_log(form: QuestionsForm, place: DeltaGenerator, stored: list[str]) -> QuestionsForm:
    left, right = place.columns(2)
    log = work.chosen(left, "Log", "", stored, key="questions_log")
    column = right.text_input("Column with the questions", key="questions_column", placeholder="by its name")
    mask = work.chosen(left, "Names to mask", "", [], key="questions_mask", empty="a list, one a line")
    names = right.text_input(
        "Model that finds names", key="questions_names", placeholder="none; spaCy: en_core_web_sm",
        help="E-mail and street addresses, cards, accounts and numbers are masked in any case.",
    )  # fmt: skip
    return replace(form, log=log, log_stored=log in stored, column=column, mask=mask, names=names)


def _of_model(form: QuestionsForm, place: DeltaGenerator) -> QuestionsForm:
    left, middle, right = place.columns([3, 3, 1])
    kinds = left.multiselect("Kinds", KINDS, KINDS[:1], key="questions_kinds")
    closed = middle.checkbox(
        "Throw out what the model knows without the text", value=True, key="questions_closed"
    )
    twins = middle.checkbox(
        "Each in other words, too", key="questions_twins",
        help="A second set: whether the choice rests on shared words.",
    )  # fmt: skip
    budget = work.budget(right, "questions_budget", "written")
    address = ""
    if form.method not in models():
        address = place.text_input(
            "Address of the model", key="questions_address", placeholder="http://localhost:11434/v1",
            help="Of a service that speaks OpenAI's language (Ollama, vLLM). With a key: Text.",
        )  # fmt: skip
    chosen = tuple(kinds) or KINDS[:1]
    return replace(
        form, kinds=chosen, closed_book=closed, twins=twins, address=address.strip(), budget=budget
    )
