"""The tables of record and snapshot: the text, sort key and origin of each cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from core.analysis.stack_cost import MACHINES, idle_words, price_basis
from core.decide.axes import LIMITS, axes
from core.decide.selection import SHOWN
from core.number_format import PER_1K, CostUnit
from core.records import Basis
from core.views import text
from core.views.decision.words import also
from core.views.words.advice import ROLES
from core.views.words.choice import COSTED
from core.views.words.trade import PAIR

FINALISTS = 30
STACKS = 300  # Maximum rows of the record's tables; the JSON has all
EVERY_STACK = 1000  # Maximum rows of the snapshot's table of stacks
Data: TypeAlias = Mapping[str, Any]
_SHARES = {
    "p_sla": "meets the SLA",
    "p_feasible": "within the limits",
}
WORDS = {axis.key: axis.word for axis in axes()}
CHOSEN, LETTERS = "chosen", "ABC"[:SHOWN]


@dataclass(frozen=True)
class Cell:
    """A text, the column's sort key if it is a number, and a badge behind it."""

    text: str
    order: float | None = None
    basis: str = ""


@dataclass(frozen=True)
class Column:
    """A heading; whether its cells are numbers, or long texts; and the cell for a row."""

    label: str
    cell: Callable[[Data], Cell]
    number: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Table:
    """A table."""

    columns: tuple[Column, ...]  # from left to right
    rows: tuple[tuple[Cell, ...], ...]  # a cell per column
    strong: int = 0  # how many of the first rows are set in bold
    left_out: int = 0  # number of rows that the file omits
    sortable: bool = False  # whether a reader may sort it


def table(
    rows: Sequence[Data], columns: Sequence[Column], most: int = STACKS, strong: int = 0, **more: bool
) -> Table | None:
    """Arrange rows as a table, or return None if there are none."""
    cells = tuple(tuple(column.cell(row) for column in columns) for row in rows[:most])
    return Table(tuple(columns), cells, strong, max(0, len(rows) - most), **more) if rows else None


def finalists(data: Data) -> list[Data]:
    """Return chosen, runner-up and the rest of the frontier, each once, with its role as status."""
    rows: dict[str, Data] = {}
    candidates = [("chosen", data["chosen"]), ("runner-up", data["runner_up"])]
    both = roles(data)
    others = {one["run_id"]: one for one in data["alternatives"]}
    frontier = [("frontier", {**others.get(one["run_id"], {}), **one}) for one in data["frontier"]]
    for status, row in [*candidates, *frontier]:
        if row is not None and row["run_id"] not in rows:
            rows[row["run_id"]] = {**row, "status": both.get(row["run_id"], status)}
    return list(rows.values())


def offered(data: Data) -> list[Data]:
    """Return the first alternatives, each with the numbers of its stack."""
    rows = {row["run_id"]: row for row in data["stacks"]}
    twins: dict[str | None, int] = defaultdict(int)
    for one in data["alternatives"]:
        twins[one.get("alike_to")] += 1
    first = [one for one in data["alternatives"] if one.get("alike_to") is None][: len(LETTERS)]
    return [
        {**rows[one["run_id"]], **one, "stack": f"{one['stack']}{also(twins[one['stack']])}"} for one in first
    ]


def letters(data: Data) -> dict[str, str]:
    """Return, by run_id, the letters of the chosen stack and the first alternatives in table and chart.

    Where none clearly wins, the two stacks are called as in the heading.
    """
    chosen = {} if data["chosen"] is None else {data["chosen"]["run_id"]: CHOSEN}
    both = dict(zip(roles(data), places(data), strict=True))
    others = (row["run_id"] for row in offered(data) if row["run_id"] not in both)
    return chosen | both | dict(zip(others, LETTERS, strict=False))


def roles(data: Data) -> dict[str, str]:
    """Return what both stacks are where none clearly wins, by run_id; otherwise empty."""
    if not data.get("no_clear_winner"):
        return {}
    return dict(zip((data["chosen"]["run_id"], data["trade"]["run_id"]), ROLES, strict=True))


def places(data: Data) -> list[str]:
    """Return how the two stacks are called of which none clearly wins; otherwise empty."""
    return [words.removeprefix("with the ") for words in data["trade"]["called"]] if roles(data) else []


def said_in(data: Data) -> CostUnit:
    """Return a record's cost unit; per 1,000 for one of an earlier release."""
    return CostUnit.of(data["asked"])


def written_as(data: Data) -> dict[str, Callable[[float | None], str]]:
    """Return the number formatter of each axis in a record, by the axis's key."""
    return {axis.key: axis.written for axis in axes(said=said_in(data))}


def counted(data: Data) -> str:
    """Return the unit that the costs of a record are per: ``queries``."""
    per = None if data["chosen"] is None else data["chosen"]["cost_per"]
    return COSTED.get(str(per), "queries")


def costs(row: Data, said: CostUnit) -> str:
    """Return the cost of a stack without its unit."""
    return text.cost(row["cost"], row["cost_least"], row["cost_missing"], said.bare)


def _alternatives(data: Data) -> Table | None:
    """Return a table of the chosen stack and the first alternatives: their cost in quality, and savings."""
    chosen, named = data["chosen"], letters(data)
    rows = [chosen, *others] if (others := offered(data)) else []
    said = said_in(data)
    known = any(row["expected_quality"] is not None for row in rows)

    def differs(row: Data) -> str:
        if row is chosen:
            return ""
        low, high = row["low"], row["high"]
        ends = "" if low is None or high is None else f" [{text.signed(low)}, {text.signed(high)}]"
        return f"{text.signed(row['difference'])}{ends}"

    def time(row: Data) -> str:
        # a difference within the jitter band counts as none
        saved = row.get("saves_ms") if row.get("latency_told_apart", True) else None
        return text.ms(row["latency_ms"]) + _saved(saved, text.ms)

    def cost(row: Data) -> str:
        saved = None if row.get("same_bill") else row.get("saves_usd_per_1k")
        return costs(row, said) + _saved(saved, said.bare)

    def within(row: Data) -> str:
        return "" if row is chosen else text.percent(row["p_within_delta"])

    columns = (
        Column("", lambda row: Cell(named[row["run_id"]])),
        _text("stack", wide=True),
        Column(data["asked"]["measure"], lambda row: Cell(text.score(row["quality"])), number=True),
        *([Column("expected on new queries", _expected, number=True)] * known),
        Column(f"difference [{PAIR}]", lambda row: Cell(differs(row)), number=True),
        Column(f"time ({data['question']['on']})", lambda row: Cell(time(row)), number=True),
        Column(f"cost per {said.many} {counted(data)}", lambda row: Cell(cost(row)), number=True),
        Column(
            f"chance to be as good (within {data['delta']:g})", lambda row: Cell(within(row)), number=True
        ),
    )
    return table(rows, columns, strong=max(1, len(roles(data))))


def _expected(row: Data) -> Cell:
    ends = text.interval(row.get("expected_low"), row.get("expected_high"))
    return Cell(text.score(row.get("expected_quality")) + ends, row.get("expected_quality"))


def _saved(amount: float | None, written: Callable[[float], str]) -> str:
    return f" ({written(abs(amount))} {'less' if amount > 0 else 'more'})" if amount else ""


def record_tables(data: Data) -> dict[str, Table | None]:
    """Return the tables shared by record and snapshot, by name; None if there is nothing to show."""
    best, measure, said = finalists(data), data["asked"]["measure"], said_in(data)
    shares = {key: name for key, name in _SHARES.items() if any(row.get(key) is not None for row in best)}
    known = any(row.get("expected_quality") is not None for row in best)
    return {
        "finalists": table(
            best,
            (
                _text("status"),
                *numbers(measure, said=said),
                *([Column("expected on new queries", _expected, number=True)] * known),
                *(share(key, name) for key, name in shares.items()),
            ),
            FINALISTS,
            strong=int(data["chosen"] is not None),
        ),
        "alternatives": _alternatives(data),
        "turns": _turns(data),
        "constraints": _constraints(data["excluded"]),
        "stacks": _stacks(data, said),
        "prices": _prices(data["price_entries"]),
    }


def _text(label: str, key: str = "", *, wide: bool = False) -> Column:
    return Column(label, lambda row: Cell(row[key or label] or ""), wide=wide)


def dollars(said: CostUnit, note: str = "", *, badge: bool = True) -> Column:
    """Return the column of the stacks' costs.

    Args:
        note: Words after the heading.
        badge: Whether it shows how each was obtained.
    """

    def cell(row: Data) -> Cell:
        return Cell(costs(row, said), row["cost"], basis(row, "cost") if badge else "")

    return Column(f"$ / {said.per}{note}", cell, number=True)


def numbers(
    quality: str, latency: str = "latency", cost_note: str = "", said: CostUnit = PER_1K
) -> tuple[Column, ...]:
    """Return the columns of a stack, its three numbers and n, and how each was obtained.

    Args:
        cost_note: Words after the heading of its cost.
        said: The cost unit.
    """

    def of_quality(row: Data) -> Cell:
        return Cell(text.score(row["quality"]), row["quality"], basis(row, "quality"))

    def interval(row: Data) -> Cell:
        spread = text.interval(row["quality_low"], row["quality_high"]).strip() or text.NOT_APPLICABLE
        return Cell(spread, row["quality_low"])

    def sample(row: Data) -> Cell:
        return Cell(text.UNKNOWN if row["n"] is None else f"{row['n']:,}", row["n"])

    def of_latency(row: Data) -> Cell:
        return Cell(text.ms(row["latency_ms"]), row["latency_ms"], basis(row, "latency_ms"))

    return (
        _text("stack", wide=True),
        Column(quality, of_quality, number=True),
        Column("95 % interval", interval, number=True),
        Column("n", sample, number=True),
        Column(latency, of_latency, number=True),
        dollars(said, cost_note),
    )


def share(key: str, name: str) -> Column:
    """Return a column of a share in percent."""
    return Column(name, lambda row: Cell(text.percent(row[key]), row[key]), number=True)


def _turns(data: Data) -> Table | None:
    """Return a table of what would have to be true for another stack to be chosen."""
    written = written_as(data)

    def now(row: Data) -> str:
        return str(written[row["of"]](row["now"]))

    def then(row: Data) -> str:
        value = str(written[row["of"]](row["then"]))
        return f"a trace {'higher' if row['by'] > 0 else 'lower'}" if value == now(row) else value

    columns = (
        _text("stack", wide=True),
        Column("number", lambda row: Cell(WORDS[row["of"]])),
        Column("now", lambda row: Cell(now(row), row["now"]), number=True),
        Column("turns at", lambda row: Cell(then(row), row["then"]), number=True),
        Column("the choice is then", lambda row: Cell(row["winner"] or "no stack at all"), wide=True),
    )
    return table([row for row in data["would_turn"] if row["then"] is not None], columns)


def _constraints(excluded: Sequence[Data]) -> Table | None:
    """Return a table of how many stacks each limit excludes, and which one misses it by least."""
    kinds: dict[str, list[Data]] = {}
    for row in excluded:
        kinds.setdefault(row["constraint"], []).append(row)

    def nearest(row: Data) -> str:
        known = [known_row for known_row in row["rows"] if known_row["by"] is not None]
        least = min(known, key=lambda known_row: known_row["by"], default=None)
        return f"{least['stack'] or least['run_id']}: {least['reason']}" if least else text.NOT_APPLICABLE

    def limit(row: Data) -> str:
        return LIMITS[row["name"]].limit_word if row["name"] in LIMITS else str(row["name"])

    columns = (
        Column("constraint", lambda row: Cell(limit(row))),
        Column("stacks", lambda row: Cell(f"{len(row['rows']):,}", len(row["rows"])), number=True),
        Column("nearest miss", lambda row: Cell(nearest(row)), wide=True),
    )
    rows = [{"name": name, "rows": missing} for name, missing in kinds.items()]
    return table(sorted(rows, key=lambda row: (-len(row["rows"]), row["name"])), columns)


def _stacks(data: Data, said: CostUnit) -> Table | None:
    """Return every stack with its three numbers and its status."""
    rows, measure, both = data["stacks"], data["asked"]["measure"], roles(data)
    columns = (
        Column("status", lambda row: Cell(both.get(row["run_id"]) or row["status"])),
        _text("stack", wide=True),
        Column(measure, lambda row: Cell(text.score(row["quality"]), row["quality"]), number=True),
        Column("latency", lambda row: Cell(text.ms(row["latency_ms"]), row["latency_ms"]), number=True),
        dollars(said, badge=False),
        _text("excluded because", "reason"),
    )
    return table(rows, columns, strong=int(bool(rows) and rows[0]["status"] == "chosen"))


def _prices(entries: Sequence[Data]) -> Table | None:
    """Return the prices behind the costs, with source and day."""

    def price(row: Data) -> Cell:
        return Cell(f"{row['price']:.10g} {row['currency']} / {row['per']:,.10g}", row["price"])

    def confirmed(row: Data) -> Cell:
        return Cell("yes" if row["confirmed"] else " ".join(filter(None, ("no.", row["note"]))))

    columns = (
        _text("item"),
        Column("unit", lambda row: Cell(row["unit"].replace("_", " "))),
        Column("price", price, number=True),
        Column("looked up", lambda row: Cell(row["looked_up"] or text.UNKNOWN)),
        Column("confirmed", confirmed),
        Column("chosen uses it", lambda row: Cell("yes" if row["of_chosen"] else "no")),
        Column("stacks", lambda row: Cell(f"{row['runs']:,}", row["runs"]), number=True),
        _text("source", wide=True),
    )
    return table(entries, columns, len(entries))


def basis(row: Data, name: str) -> str:
    """Say how a number was obtained, or return "" if it is unknown, or is measured usage at a price."""
    how = (row[f"{name.removesuffix('_ms')}_basis"] or "") if row[name] is not None else ""
    return "" if name == "cost" and how == Basis.MEASURED.value else how


def waits(data: Data) -> bool:
    """Return whether the chosen stack is billed for machine time while it works."""
    return any(entry["of_chosen"] and entry["unit"].endswith("_hour") for entry in data["price_entries"])


def waiting(data: Data) -> str:
    """Say what machine time leaves out, and what one machine of the chosen stack costs all month."""
    if not waits(data):
        return ""
    entries = (entry for entry in data["price_entries"] if entry["of_chosen"] and entry["unit"] in MACHINES)
    return idle_words(sum(entry["price"] / entry["per"] for entry in entries))


def priced(data: Data) -> str:
    """Say how the cost of the chosen stack was obtained: by its price if its usage was measured."""
    if data["chosen"]["cost_basis"] != Basis.MEASURED.value:
        return basis(data["chosen"], "cost")
    return price_basis(entry["confirmed"] for entry in data["price_entries"])
