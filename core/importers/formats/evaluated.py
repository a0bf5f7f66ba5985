"""The output of trec_eval, pytrec_eval and ir_measures: one value per line, for all queries or a single one.

trec_eval writes measure, query (or ``all``) and value; ir_measures writes measure and value, or query,
measure and value, also as JSON lines. Values for all queries are results of the run, the others results of
single queries; if the former are missing, they are the means of the latter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import polars as pl

from core.errors import InputError
from core.importers.base import SURE, Format, Import, LeftOut, Options, frames_of, merged
from core.importers.read.member import Archive, Member, head_lines, members_of, per_member
from core.importers.read.text import place, quoted, whole
from core.importers.report import FileReport
from core.importers.runs import Figure, Reported, of_tool, reported_runs

_ALL, _RUN, _QUERIES = "all", "runid", "num_q"
_KNOWN = re.compile(
    r"runid|num_(q|ret|rel|rel_ret)|(gm_)?map|(map|ndcg)(_cut)?_\d+|ndcg|recip_rank|Rprec|bpref|P_\d+|recall_\d+"
    r"|success_\d+|set_(P|F|recall|map|relative_P)|iprec_at_recall_[\d.]+|11pt_avg|infAP"
    r"|(nDCG|AP|RR|MRR|MAP|R|P|Success|Judged|ERR|RBP|Rprec|Bpref|IPrec|SetP|SetR|SetF|NumRet|NumRel|NumQ|alpha_nDCG)"
    r"(\(.*\))?(@[\d.]+)?"
)
_COUNT = re.compile(r"num_\w+|Num\w+(\(.*\))?(@\d+)?|relstring\w*")
_FIELDS = ("measure", "query", "value")
_KEYS = {"query_id", "measure", "value"}


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    measure: str
    query: str
    value: str


class Evaluated(Format):
    """Measures of one run, aggregated and per query."""

    name, title = "eval-output", "Output of trec_eval, pytrec_eval or ir_measures"
    takes = {
        "aggregates": "every measure over all queries, with its cutoff",
        "signals": "every measure of a query (-q)",
    }
    recognised = "lines of measure, query and value, of query, measure and value, or of measure and value"
    traps = ("Counts (num_ret, num_rel) are no measures; num_q is the number of queries.",)

    def sniff(self, probe: Archive) -> float:
        lines = head_lines(probe.members[0]) if len(probe.members) == 1 else []
        try:
            found = list(_lines(probe.members[0], lines))
        except InputError:
            return 0.0
        known = sum(_KNOWN.fullmatch(line.measure) is not None for line in found)
        return SURE if found and known >= len(found) / 4 else 0.0

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        return (FileReport(member.name, "field", _FIELDS) for member in members_of(archives))

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read each file as a run."""
        members = members_of(archives)
        reports = [_reported(member) for member in members]
        imported = reported_runs(reports, options, importer=self.name, source="evaluation output")
        pairs = zip(imported.runs, members, strict=True)
        left = [_counts(member) for member in members]
        return merged((imported, *left, *(_of_queries(member, run.run_id) for run, member in pairs)))


@per_member
def _parted(member: Member) -> tuple[list[_Line], list[_Line]]:
    """Return the lines, and those that repeat what an earlier line says."""
    seen: dict[tuple[object, str], _Line] = {}
    alike = []
    for line in _lines(member, whole(member).decode().split("\n")):
        first = seen.setdefault((of_tool(line.measure), line.query), line)
        if first.value != line.value:
            problem = f"{quoted(line.measure)} of {quoted(line.query)} stands twice."
            do = "Offer the output of each run as a file of its own."
            raise InputError(problem, where=place(member.name, line.number), do=do)
        alike += [line] if first is not line else []
    return list(seen.values()), alike


def _all_of(member: Member) -> list[_Line]:
    return _parted(member)[0]


def _lines(member: Member, texts: Sequence[str]) -> Iterator[_Line]:
    filled = [(number, text) for number, text in enumerate(texts, 1) if text.strip()]
    rows = [(number, _fields(text)) for number, text in filled]
    if bad := next((at for at, fields in rows if not (2 <= len(fields) <= 3 and all(fields[:-1]))), None):
        problem = "The line is not a measure, a query and a value."
        raise InputError(problem, where=place(member.name, bad))
    second = all(_KNOWN.fullmatch(fields[1]) for _, fields in rows if len(fields) == 3)
    for number, fields in rows:
        measure, query = (fields[0], fields[1] if len(fields) == 3 else _ALL)
        if len(fields) == 3 and second:
            query, measure = measure, query
        yield _Line(number, measure, query, fields[-1])
        if not (measure == _RUN or measure.startswith("relstring") or _is_number(fields[-1])):
            problem = f"{quoted(fields[-1])} is not a finite number."
            raise InputError(problem, where=place(member.name, number))


def _fields(text: str) -> list[str]:
    if not text.lstrip().startswith("{"):
        return [field.strip() for field in text.split("\t")] if "\t" in text else text.split()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(value, dict) or not {"measure", "value"} <= value.keys() <= _KEYS:
        return []
    cells = [value[key] for key in ("query_id", "measure", "value") if key in value]
    return ["" if cell is None else str(cell) for cell in cells]


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _measured(member: Member, *, over_all: bool) -> list[_Line]:
    """Return the lines of measures over all queries, or those of single queries."""
    return [line for line in _all_of(member) if (line.query == _ALL) == over_all and not _is_count(line)]


def _reported(member: Member) -> Reported:
    whole_of = {line.measure: line.value for line in _all_of(member) if line.query == _ALL}
    single = _measured(member, over_all=False)
    counted = whole_of.get(_QUERIES, "")
    queries = int(float(counted)) if counted else len({line.query for line in single}) or None
    figures = {}
    for line in _measured(member, over_all=True):
        measure, k = of_tool(line.measure)
        figures[measure, k] = Figure(measure=measure, k=k, value=float(line.value), n=queries)
    values: dict[tuple[str, int | None], list[float]] = {}
    for line in single:
        values.setdefault(of_tool(line.measure), []).append(float(line.value))
    for (measure, k), those in values.items():
        mean = Figure(measure=measure, k=k, value=sum(those) / len(those), n=len(those))
        figures.setdefault((measure, k), mean)
    if not figures:
        raise InputError("The file holds no measure.", where=member.name)
    label = whole_of.get(_RUN, "")
    return Reported(
        label=label,
        stem=member.stem,
        digest=member.digest,
        decided={"run": label},
        spec={"name": label or member.stem},
        figures=tuple(figures.values()),
    )


def _counts(member: Member) -> Import:
    lines, alike = _parted(member)
    said = ((_QUERIES, _ALL), (_RUN, _ALL))
    counts = [line for line in lines if _is_count(line) and (line.measure, line.query) not in said]
    why = {
        "counts, which are not measures (num_ret and the like)": counts,
        "lines that stand twice, alike: they count once": alike,
    }
    left = [LeftOut(len(at), reason, place(member.name, at[0].number)) for reason, at in why.items() if at]
    return Import(left_out=tuple(left))


def _is_count(line: _Line) -> bool:
    return line.measure == _RUN or _COUNT.fullmatch(line.measure) is not None


def _of_queries(member: Member, run_id: str) -> Import:
    single = _measured(member, over_all=False)
    rows = [(line.query, *of_tool(line.measure), float(line.value)) for line in single]
    if not rows:
        return Import()
    schema = {"query_id": pl.String, "signal": pl.String, "k": pl.Int32, "value": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row").with_columns(run_id=pl.lit(run_id))
    return Import(frames=frames_of(signals=table))
