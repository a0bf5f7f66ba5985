"""What a world of the gate's tests holds as plain numbers, and what follows without the product."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

QUERIES, SLA, BUDGET, SURE = 20, 200, 2.0, 10
"""Questions; limits of the record, ms and $ per 1,000; questions more that are surely better."""
Shape = Literal["", "cut", "odd", "part", "untimed", "averages"]
"""All, only first passages, unknown passages, half of the questions, no times, nothing by question."""
FILE = {"averages": "averages", "untimed": "untimed"}
Q = range(QUERIES)


@dataclass(frozen=True)
class Results:
    """Results of a stack: in how many questions passage p is before x, ms, and what is special about them."""

    found: int
    ms: int
    shape: Shape = ""

    def lines(self, name: str, mark: str = "q") -> list[str]:
        """Return rows of a table, without its header."""
        if self.shape == "averages":
            return [f"{name},{self.mean},{self.ms}"]
        asked = [query for query in Q if self.shape != "part" or query < QUERIES // 2]
        return [
            ",".join(
                [name, f"{mark}{query}", passage, str(rank), str(self.ms)][: 5 - (self.shape == "untimed")]
            )
            for query in asked
            for rank, passage in enumerate(self.passages(query), 1)
        ]

    def passages(self, query: int) -> str:
        """Return what it ranks, a letter each."""
        if self.shape == "odd":
            return "yz"
        ranked = "px" if query < self.found else "xp"
        return ranked[:1] if self.shape == "cut" else ranked

    def value(self, query: int, relevant: str) -> float | None:
        """Return 1 / rank of the relevant passage, None where the question was not asked."""
        if self.shape == "averages" or (self.shape == "part" and query >= QUERIES // 2):
            return None
        ranked = self.passages(query)
        return 1 / (1 + ranked.index(relevant)) if relevant in ranked else 0.0

    @property
    def mean(self) -> float:
        """The average that it reports."""
        return (1 + self.found / QUERIES) / 2


def tables(stacks: dict[str, Results], mark: str = "q") -> dict[str, str]:
    """Write results of stacks as tables, by the name of their file."""
    made: dict[str, list[str]] = {}
    for name, results in stacks.items():
        file = FILE.get(results.shape, "results")
        head = {"averages": "stack,RR@10,latency_ms", "untimed": "run,query_id,passage_id,rank"}
        first = head.get(results.shape, "run,query_id,passage_id,rank,latency_ms")
        made.setdefault(file, [first]).extend(results.lines(name, mark))
    return {f"{file}.csv": "\n".join(rows) + "\n" for file, rows in made.items()}


def qrels(cut: int) -> str:
    """Write judgements: passage p is relevant for the first `cut` questions, x for the others."""
    rows = [(query, passage, 3 * (passage == relevant(query, cut))) for query in Q for passage in "px"]
    return "".join(f"q{query} 0 {passage} {grade}\n" for query, passage, grade in rows)


def relevant(query: int, cut: int) -> str:
    """Return the relevant passage of a question."""
    return "p" if query < cut else "x"


def near(name: str) -> str:
    """Return a name without what a reader overlooks."""
    return " ".join(name.casefold().split())


@dataclass
class Golden:
    """The versions of a golden set, the recorded one first: what is relevant, and whether it is there."""

    versions: list[tuple[int, bool]] = field(default_factory=lambda: [(QUERIES, True)])

    def keep(self, cut: int, choice: str | None) -> None:
        """Note judgements that came; without a choice, other ones are refused."""
        there = [place for place, (_, live) in enumerate(self.versions) if live]
        if choice is None or any(self.versions[place][0] == cut for place in there):
            return
        if choice == "new":
            self.versions.append((cut, True))
            return
        again = [place for place, (known, _) in enumerate(self.versions) if known == cut][:1]
        self.versions[(again or there or [len(self.versions) - 1])[-1]] = (cut, True)

    def delete(self) -> None:
        """Note that all of them were deleted."""
        self.versions = [(cut, False) for cut, _ in self.versions]


def too_bad(chosen: Results, cost: float | None, *, budget: bool, filtered: bool) -> str:
    """Say why a stack may not ship by its own numbers, or return ""."""
    if chosen.ms > SLA and chosen.shape != "untimed":
        return "it is too slow"
    if chosen.shape == "untimed":
        return "its time is not known"
    if budget and (cost is None or cost > BUDGET):
        return "its cost is not known or too high"
    if filtered and chosen.shape not in {"cut", "odd", "averages"}:
        return "it shows what a permission forbids"
    return ""


def surely_better(other: Results, chosen: Results, cut: int) -> bool:
    """Return whether another stack is never worse, and better in at least `SURE` questions by half."""
    if other.shape in {"untimed", "part", "averages"} or other.ms > SLA:
        return False
    if chosen.shape == "averages":
        mean = sum(other.value(query, relevant(query, cut)) or 0.0 for query in Q) / QUERIES
        return mean - chosen.mean >= SURE / 2 / QUERIES
    pairs = [
        (other.value(query, relevant(query, cut)), chosen.value(query, relevant(query, cut))) for query in Q
    ]
    gains = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
    return min(gains) >= 0 and sum(gain >= 0.5 for gain in gains) >= SURE


def plain(stacks: dict[str, dict[str, list[Results]]]) -> Any:
    """Return stacks as JSON can hold them."""
    return {
        place: {name: [asdict(one) for one in versions] for name, versions in there.items()}
        for place, there in stacks.items()
    }


def read(stacks: Any) -> dict[str, dict[str, list[Results]]]:
    """Return stacks from what `plain` made of them."""
    return {
        place: {name: [Results(**one) for one in versions] for name, versions in there.items()}
        for place, there in stacks.items()
    }
