"""What the Headroom page says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.decide.headroom import LEVERS, Reading
from core.views import text
from core.views.workspace.scope import Quality

POOL = (
    "What the final order could choose from. dense@50: the first 50 of a dense search. A ceiling means "
    "something only together with its convention (CLQ paper §5.1, A.8)."
)
HOW = (
    "1 = actual + ordering headroom (in the pool, but ranked too low) + retrieval headroom (not in the "
    "pool). PROC is the best order of the pool; %PROC = mean actual / mean PROC, over the same n queries."
)
MIXED_POOLS = "These bars stand on several pool conventions: compare ceilings only within one of them."
_ANSWERS: Mapping[Reading, str] = {
    "improve retrieval": "Retrieval is the limit of {}: its pool lacks more than its order loses.",
    "improve ordering": "Ordering is the limit of {}: its order loses more than its pool lacks.",
    "balanced": "Retrieval and ordering limit {} about equally.",
}


def no_ceiling(quality: Quality) -> tuple[str, str]:
    """Why the page is empty, and the way out."""
    return (
        f"No stack here has a ceiling for {quality.name}.",
        "A ceiling (PROC) needs rankings with their candidate pool, or published ceilings at this cutoff: "
        "choose another measure or cutoff.",
    )


def answer(row: Mapping[str, Any]) -> str:
    """Whether retrieval or ordering limits a stack; a row of `headroom.page.HeadroomView.table`."""
    return _ANSWERS[row["reading"]].format(row["name"])


def numbers(row: Mapping[str, Any], quality: Quality) -> str:
    """The three parts of a stack in one sentence, for files that have no cards."""
    return (
        f"{row['name']} reaches {text.score(row['quality'])} of a possible 1 ({quality.name}, "
        f"{text.sample(row['n'])}): {text.score(row['ordering'])} is lost in ordering and "
        f"{text.score(row['retrieval'])} in retrieval."
    )


def levers(row: Mapping[str, Any]) -> str:
    """What the paper suggests to try."""
    reading: Reading = row["reading"]
    return f"The CLQ paper (§6) suggests: {'; '.join(LEVERS[reading])}."


def caveats(row: Mapping[str, Any], *, mixed: bool) -> dict[str, str]:
    """What to try and how to read the bars, by the words of the chip; mixed = of several pool conventions."""
    pools = MIXED_POOLS if mixed else ""
    return {"what to try": levers(row), "several pools": pools, "how to read": HOW}


def cards(row: Mapping[str, Any], quality: Quality) -> tuple[tuple[str, str, str], ...]:
    """The four numbers of a stack: label, number, what it rests on."""
    interval = text.interval(row["quality_low"], row["quality_high"]).strip()
    return (
        (quality.name, text.score(row["quality"]), f"{interval} {text.sample(row['n'])}".strip()),
        ("Ordering headroom", text.score(row["ordering"]), "in the pool, ranked too low"),
        ("Retrieval headroom", text.score(row["retrieval"]), "not in the pool"),
        ("%PROC", text.percent(row["pct_proc"]), f"of the best order of {row['pool']}"),
    )
