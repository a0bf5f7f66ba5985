"""Tables of tools in which a row is a stack and columns are measures of known names.

big-ann-benchmarks and ann-benchmarks (``data_export.py``): a row per algorithm, parameters and data set. A
mean latency of 0 was not measured; the unit of other values is unknown. Two rows of a setting are two runs.

sentence-transformers' evaluators of retrieval and reranking: a row per epoch and step, columns per way of
scoring. The file name contains the name of the data set.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from core.errors import InputError
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged, summed
from core.importers.naming import named
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.rows import numbers
from core.importers.read.tabular import Table, columns, kind_of, read_table
from core.importers.read.text import no_column, place, shown
from core.importers.report import AS_YOU_WISH, TAKEN, FileReport, settled
from core.importers.runs import MEASURES, Figure, Reported, reported_runs

_QUANTILES = {"p50", "p95", "p99"}
_MISSING = "empty cells: missing, not 0"
_Row = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class StackColumn:
    """The meaning of a column's numbers."""

    measure: str
    k: int | None = None
    stage: str | None = None
    factor: float = 1.0
    of: str = ""  # what distinguishes its stack from other stacks on the row
    zero: str = ""  # why 0 is not a value here, if so


@dataclass(frozen=True, slots=True)
class ToldRows:
    """What a row says about its stack."""

    label: str
    collection: str
    spec: Mapping[str, str]
    k: int | None = None  # cutoff of measures that have none


class StackRows(Format):
    """A table whose rows are stacks."""

    marks: ClassVar[frozenset[str]]  # columns that identify the table
    why: ClassVar[Mapping[str, str]] = {}  # columns that are left out, each with the reason
    says: ClassVar[tuple[str, ...]] = ()  # columns that `told` reads

    def kind(self, member: Member) -> str | None:
        names = set(columns(member))
        return self.name if self.marks <= names and any(map(self.column, names)) else None

    def sniff(self, probe: Archive) -> float:
        return SURE if all(map(self.kind, probe.members)) else 0.0

    @abstractmethod
    def column(self, name: str) -> StackColumn | None:
        """Return the meaning of a column, or None if it isn't a measure."""

    @abstractmethod
    def told(self, row: _Row, member: Member) -> ToldRows:
        """Return what a row says about its stack."""

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        left: list[LeftOut] = []
        reports = [
            report for member in members_of(archives) for report in self._reported(member, options, left)
        ]
        if not reports:
            raise InputError("No row holds a measure.", where=archives[0].name)
        made = reported_runs(reports, options, importer=self.name, source=self.title)
        return merged((made, Import(left_out=summed(left))))

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:
        for member in members_of(archives):
            names, taken = columns(member), (*self._measures(member, options), *self.says)
            without = dict.fromkeys(options.table_as(member.name).without, AS_YOU_WISH)
            yield settled(
                member.name, "column", names, {**self.why, **dict.fromkeys(taken, TAKEN), **without}
            )

    def _measures(self, member: Member, options: Options) -> dict[str, StackColumn]:
        """Return the columns of measures: those the user names, or else by their names."""
        said = options.table_as(member.name)
        known = {name: self.column(name) for name in columns(member)}
        for meant, column in said.columns.items():
            if column in known and (value := named(meant, column)):
                known[column] = StackColumn(value.measure, value.k, value.stage, value.factor)
        return {name: what for name, what in known.items() if what and name not in said.without}

    def _reported(self, member: Member, options: Options, left: list[LeftOut]) -> Iterator[Reported]:
        for name in sorted(self.marks - set(columns(member))):
            raise no_column(name, columns(member), member.name)
        table, measures = read_table(member, kind_of(member)), self._measures(member, options)
        values = {name: numbers(table.taking({name: name}), name, table.name) for name in measures}
        times: Counter[tuple[str, str]] = Counter()
        for index, row in enumerate(_rows(table)):
            told, where = self.told(row, member), place(member.name, table.lines[index])
            figures: dict[str, list[Figure]] = {}
            for name, what in measures.items():
                value = values[name][index]
                if value is None or (what.zero and value == 0):
                    left.append(LeftOut(1, what.zero if value == 0 else _MISSING, where))
                    continue
                k = what.k or (told.k if what.stage is None else None)
                figure = Figure(measure=what.measure, value=value * what.factor, k=k, stage=what.stage)
                figures.setdefault(what.of, []).append(figure)
            for of, some in figures.items():
                label = " · ".join(filter(None, (told.label, of)))
                times[label, told.collection] += 1
                again = times[label, told.collection]
                repeat = {} if again == 1 else {"repeat": again}
                yield Reported(
                    label=label if again == 1 else f"{label} ({again})",
                    stem=f"{member.stem} {index + 1}",
                    digest=member.digest,
                    decided={"row": index + 1, "of": of},
                    spec={**told.spec, **({"score": of} if of else {}), **repeat},
                    figures=tuple(some),
                    collection=told.collection,
                )


def _rows(table: Table) -> Iterator[_Row]:
    names = [name for name in table.rows.columns if name != "line"]
    return table.taking({name: name for name in names}).drop("line").iter_rows(named=True)


class AnnRows(StackRows):
    """Results of ann-benchmarks and big-ann-benchmarks as a table."""

    name, title = "ann-rows", "ann-benchmarks, big-ann-benchmarks results (CSV)"
    takes = {
        "aggregates": "recall/ap and k-nn as recall of the neighbours at `count`, p50, p95, p99, per data set"
    }
    recognised = "the columns algorithm, parameters, dataset and count beside recall/ap or k-nn"
    untried = "built from small inputs of the same layout: no file that the tools wrote was tried"
    traps = (
        "A mean latency of 0 was not measured. Of another the unit is not said: map it to take it.",
        "Two rows of one setting are two runs; the second is numbered.",
    )
    marks = frozenset({"algorithm", "parameters", "dataset", "count"})
    says = ("algorithm", "parameters", "dataset", "count")
    why = {
        "mean_latency": "its unit is not said; --column latency_mean_ms=mean_latency takes it, 0 not",
        **dict.fromkeys(("qps", "distcomps", "mean_ssd_ios"), "throughput and work: no latency of a query"),
        **dict.fromkeys(("build", "indexsize", "queriessize", "track"), "of the index, not of a query"),
    }

    def column(self, name: str) -> StackColumn | None:
        if name in _QUANTILES:
            return StackColumn(f"latency_{name}", stage="retrieve")
        return StackColumn("ANN-Recall") if name in ("recall/ap", "k-nn") else None

    def _measures(self, member: Member, options: Options) -> dict[str, StackColumn]:
        found = super()._measures(member, options)
        unmeasured = "latencies of 0: not measured"
        return {
            name: StackColumn(what.measure, what.k, what.stage, what.factor, zero=unmeasured)
            if what.measure.startswith("latency_")
            else what
            for name, what in found.items()
        }

    def told(self, row: _Row, member: Member) -> ToldRows:  # noqa: ARG002
        algorithm, parameters = row["algorithm"] or "unnamed algorithm", row["parameters"] or ""
        spec = {"index": shown(algorithm, 200)} | ({"params": shown(parameters, 200)} if parameters else {})
        count = row["count"] or ""
        return ToldRows(
            " ".join(filter(None, (algorithm, parameters))),
            row["dataset"] or "",
            spec,
            int(count) if re.fullmatch(r"[1-9]\d{0,5}", count) else None,
        )


class SentenceTransformers(StackRows):
    """Results of the evaluators of sentence-transformers."""

    name, title = "sentence-transformers", "sentence-transformers evaluator (CSV)"
    takes = {"aggregates": "Success (Accuracy), P, R, RR, nDCG and AP at their cutoffs, per step and scoring"}
    recognised = "the columns epoch and steps beside measures such as cosine-NDCG@10"
    untried = "built from the names of its columns: no file that the evaluators wrote was tried"
    traps = ("Accuracy@k there is Success@k here: one relevant passage among the first k.",)
    marks = frozenset({"epoch", "steps"})
    says = ("epoch", "steps")
    _measure = re.compile(
        r"(?:(?P<of>[A-Za-z_]+)-)?(?P<name>Accuracy|Precision|Recall|MRR|NDCG|MAP)(?:@(?P<k>[1-9]\d{0,5}))?"
    )
    _file = re.compile(r"\w+-?\w*_evaluation_(?P<data>.+?)_results(?:_@\d+)?")

    def column(self, name: str) -> StackColumn | None:
        matched = self._measure.fullmatch(name)
        if matched is None:
            return None
        short = matched["name"].lower().replace("accuracy", "success")
        return StackColumn(
            MEASURES[short], int(matched["k"]) if matched["k"] else None, of=matched["of"] or ""
        )

    def told(self, row: _Row, member: Member) -> ToldRows:
        data = self._file.fullmatch(member.stem)
        at = {"epoch": row["epoch"], "step": row["steps"]}
        known = {key: value for key, value in at.items() if value and not value.startswith("-1")}
        said = ", ".join(f"{key} {value}" for key, value in known.items())
        name = shown(member.stem if not data else data["data"], 200)
        label = " ".join(filter(None, ("" if data else name, said))) or name
        return ToldRows(label, data["data"] if data else "", {"name": name, **known})
