"""The questions an agent can ask: each answer consists of the blocks and data behind pages and commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from core.agents.small import NOTICE, ROWS, Small, fitting, number, small, untrusted
from core.analysis.workspace.view import View
from core.api.decision import Decision
from core.api.store import Results
from core.api.workspace import Workspace, loading
from core.errors import InputError, UnknownNameError
from core.views.pages import PAGES
from core.views.words.near import kind, sentence, way_in

_NEAR = 3  # Near misses included with a decision
_REPLAYED = 3  # Replayed fusions included with an answer
_PAGED = 50  # Rows of a table requested alone
_COMPARED = 5  # Rows of each table of a comparison
_WORST = 20  # Maximum queries in a list
_LONGEST = 200_000  # Characters of a specification
Limits = Mapping[str, Any]
"""The question to a workspace: the keyword arguments of `Workspace.decide`; None is left open."""


@dataclass(frozen=True)
class Answers:
    """Answers from one store; each reads the store's current state."""

    results: Results
    folder: Path  # the working folder: files outside it are not read

    def workspaces(self) -> Small:
        """Return the workspaces of the store and the size of each."""
        from core.views.library.data import collections  # noqa: PLC0415

        rows = collections(self.results.store.read())
        names = ("collection_id", "runs", "golden_sets", "queries", "passages")
        known = {name: place for place, name in enumerate(self.results.workspaces)}
        listed = sorted(rows.to_dicts(), key=lambda row: known.get(row["collection_id"], len(known)))
        spaces = [{"workspace" if name == names[0] else name: row[name] for name in names} for row in listed]
        return {
            "workspaces": spaces,
            "usual": spaces[0]["workspace"] if spaces else None,
            "revision": self.results.revision,
        }

    def decide(self, workspace: str | None, limits: Limits) -> Small:
        """Return the stack to ship, the candidates and the confidence."""
        from core.views.decision import words  # noqa: PLC0415

        decision = self._decided(workspace, limits)
        view, verdict = decision.view, decision.verdict
        said = words.answer(view)
        sure, data = decision.confidence, decision.data
        counts = dict(decision.table.group_by("status").len().sort("status").iter_rows())
        notes = [said.reason, said.warning and f"warning: {said.warning}", *view.compared.remarks]
        near = self._near(decision)
        return {
            "answer": untrusted(said.sentence),
            "verdict": data["verdict"],
            "check_grades": data["check_grades"],
            "notes": [untrusted(words) for words in notes if words],
            "ship": _stack(view, verdict.table, verdict.decision.chosen),
            "runner_up": _stack(view, verdict.table, verdict.decision.runner_up),
            "sure": sure
            and {
                "in_words": untrusted(sure.words),
                "pgs": number(sure.pgs, 3),
                "expected_quality": number(sure.expected_quality),
                "expected_low": number(sure.expected_low),
                "expected_high": number(sure.expected_high),
                "p_feasible": number(sure.p_feasible, 3),
                "p_best": number(sure.p_best, 3),
                "p_again": number(sure.p_again, 3),
                "draws": sure.draws,
                "seed": sure.seed,
            },
            "delta": verdict.decision.delta,
            "ties": [untrusted(stack["stack"]) for stack in data["ties"]],
            "alternatives": [_offer(other) for other in data["alternatives"] if not other["alike_to"]][
                :_NEAR
            ],
            "taken": data["taken"],
            "decided_by": data["decided_by"],
            "stacks_by_status": counts,
            "near_misses": near[:_NEAR],
            "near_misses_in_all": len(near),
            "asked": _asked(view),
            "made_of": _made_of(view),
            "link": decision.link(),
        }

    def stay_or_switch(self, workspace: str | None, limits: Limits, terms: Mapping[str, float]) -> Small:
        """Return whether to replace the stack that runs today, in the form of `switch --format json`."""
        from core.views.words.moving import answered  # noqa: PLC0415

        move = [f"{name}={value:.10g}" for name, value in terms.items()]
        view = self._decided(workspace, {**limits, "move": move}).view
        said = answered(view)
        replayed = [{**each, "name": untrusted(each["name"])} for each in said["replayed"][:_REPLAYED]]
        few, names = said["few_grades"], ("in_words", "incumbent", "to")
        return {
            **{name: number(value) if isinstance(value, float) else value for name, value in said.items()},
            **{name: said[name] and untrusted(said[name]) for name in names},
            "few_grades": few and {**few, "in_words": untrusted(few["in_words"])},
            "replayed": [{name: each[name] for name in each if name != "spec"} for each in replayed],
            "asked": _asked(view),
            "made_of": _made_of(view),
        }

    def near_misses(self, workspace: str | None, limits: Limits) -> Small:
        """Return the near misses, and the limit that would admit each."""
        decision = self._decided(workspace, limits)
        found = self._near(decision)
        return {
            "near_misses": found,
            "asked": _asked(decision.view),
            "made_of": _made_of(decision.view),
        }

    def page(
        self,
        name: str,
        section: str | None,
        workspace: str | None,
        limits: Limits,
        *,
        choices: Mapping[str, Any] = MappingProxyType({}),
        rows: int = ROWS,
        part: str | None = None,
        start: int = 0,
    ) -> Small:
        """Return a section's content for a workspace under limits, or the items of a part of it."""
        known = [page.name for page in PAGES.values() if page.home]
        if name not in known:
            raise UnknownNameError("page", name, known)
        said = (
            self._decided(workspace, limits).page(name, section, choices).said
            if PAGES[name].settings
            else self._space(workspace).page(name, section, choices).said
        )
        whole = {"rows": start + _PAGED, "passages": start + _PAGED} if part else {"rows": rows}
        return fitting(small(said, **whole), part, start)

    def compare(self, workspace: str | None, first: str, second: str, measure: str | None) -> Small:
        """Return the differences of two stacks, query by query, as page Compare does."""
        said = self._space(workspace).compare(first, second, measure=measure).said
        return fitting(small(said, rows=_COMPARED))

    def worst_queries(self, workspace: str | None, stack: str | None, limits: Limits, most: int) -> Small:
        """Return the queries on which a stack is weakest; the chosen stack by default."""
        said, rows = self._queries(workspace, limits, _named({"stack": stack}))
        worst = rows.head(min(most, _WORST)).to_dicts()
        return {
            "answer": untrusted(said["answer"]),
            "notice": NOTICE,
            "queries": [
                {
                    "query_id": row["query_id"],
                    "score": number(row["score"]),
                    "best_order_of_its_pool": number(row["best"]),
                    "unjudged_of_the_top_k": row["holes"],
                    "judged_passages": row["judged"],
                    "tags": row["tags"],
                    "untrusted_question": untrusted(row["text"] or ""),
                }
                for row in worst
            ],
            "queries_in_all": rows.height,
            "numbers": said.get("numbers", []),
            "made_of": said["made_of"],
        }

    def query(self, workspace: str | None, query_id: str, stack: str | None, limits: Limits) -> Small:
        """Return a stack's ranking for a query, beside the best order of its pool."""
        said, rows = self._queries(workspace, limits, _named({"stack": stack, "q": query_id}))
        row = rows.row(by_predicate=pl.col("query_id") == query_id, named=True)
        view = self._decided(workspace, limits).view
        access = view.snapshot.access(view.scope.collection_id)
        asked = None if access is None else access.filters.get(query_id)
        return {
            "query_id": query_id,
            "notice": NOTICE,
            "untrusted_question": untrusted(row["text"] or ""),
            **({"untrusted_filter": untrusted(asked.text)} if asked is not None else {}),
            "score": number(row["score"]),
            "best_order_of_its_pool": number(row["best"]),
            "passages": said.get("passages", {}).get("untrusted", []),
            "made_of": said["made_of"],
        }

    def plan(self, spec: str) -> Small:
        """Return the runs, calls and cost of a specification; spends and writes nothing."""
        with loading():
            from core.work.paid import bill  # noqa: PLC0415
            from core.work.sweep.words import dollars, size_of, time_and_memory  # noqa: PLC0415

        _, planned = self.planned(spec)
        own = bill(planned)
        return {
            "answer": size_of(planned),
            "costs": dollars(planned),
            "time_and_memory": list(time_and_memory(planned)),
            "stages": own["stages"][:_WORST],
            **{name: own[name] for name in ("calls", "usd", "usd_known", "budget_usd", "over_budget")},
            "problems": [untrusted(problem["message"]) for problem in own["problems"]][:_WORST],
        }

    def planned(self, spec: str) -> tuple[Any, Any]:
        """Read a specification of this folder, or its text; one that would run code is refused.

        Returns:
            The specification, and its plan.
        """
        with loading():
            from core.pipeline.own.version import refuse_code  # noqa: PLC0415
            from core.pipeline.sweep import load  # noqa: PLC0415
            from core.pipeline.sweep.plan import plan  # noqa: PLC0415
            from core.work.readers.plan import with_readers  # noqa: PLC0415
            from core.work.sweep import into  # noqa: PLC0415

        if len(spec) > _LONGEST:
            raise InputError(f"A specification of {len(spec):,} characters.", do=f"At most {_LONGEST:,}.")
        read = load(spec if "\n" in spec or "=" in spec else self.inside(spec))
        refuse_code(read.own, "A specification of an agent")
        job, problems = into.read(self.results.store, self.results.prices, read, to_run=False)
        return read, with_readers(plan(job, problems=problems), job)

    def formats(self, name: str | None) -> Small:
        """Return the importable formats, or everything about one format."""
        from core.work.imports.imports import described, format_table  # noqa: PLC0415

        rows = format_table()
        if name is None:
            kept = rows.select("as", "format", "brings").to_dicts()
            return {"formats": kept, "more": "Name one to hear how its files are recognised and read."}
        if name not in rows["as"]:
            raise UnknownNameError("format", name, rows["as"].to_list())
        return {"format": name, "about": dict(described(name))}

    def inside(self, path: str) -> Path:
        """Return a path, which must be in the working folder.

        Raises:
            InputError: If it isn't there, or doesn't exist.
        """
        whole = (self.folder / path).resolve()
        if not whole.is_relative_to(self.folder.resolve()):
            raise InputError("The file lies outside the working folder.", where=path, do="Copy it there.")
        if not whole.exists():
            raise InputError("There is no such file.", where=path, do=f"Name one in {self.folder}.")
        return whole

    def _space(self, name: str | None) -> Workspace:
        known = self.results.workspaces
        if name is None and not known:
            raise InputError("The store is empty.", do="Run `python -m core demo`, or import results.")
        return self.results.workspace(known[0] if name is None else name)

    def _decided(self, workspace: str | None, limits: Limits) -> Decision:
        return self._space(workspace).decide(**_named(limits))

    def _near(self, decision: Decision) -> list[Small]:
        quality = decision.view.quality.name
        return [
            {
                "stack": row["stack"],
                "kind": kind(row),
                "in_words": untrusted(sentence(row, quality)),
                "let_in_by": way_in(row),
                "gain_of_quality": number(row["gain"]),
            }
            for row in decision.near_misses.to_dicts()
        ]

    def _queries(
        self, workspace: str | None, limits: Limits, choices: Mapping[str, Any]
    ) -> tuple[Small, pl.DataFrame]:
        page = self._decided(workspace, limits).page("queries", None, choices)
        rows = page.tables.get("queries")
        if rows is None:
            raise InputError(page.sentence, do="Ask for a workspace with rankings per query.")
        return small(page.said, rows=1), rows


def _named(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values, without the open ones."""
    return {key: value for key, value in choices.items() if value is not None}


def _stack(view: View, table: pl.DataFrame, row: int | None) -> Small | None:
    """Return a stack with its numbers, each with unit, n, interval and how it is known."""
    if row is None:
        return None
    named = table.row(row, named=True)
    return {
        "stack": named["name"],
        "quality": {
            "measure": view.quality.name,
            "value": number(named["quality"]),
            "low": number(named["quality_low"]),
            "high": number(named["quality_high"]),
            "interval": "95 % over queries" if named["quality_low"] is not None else None,
            "n_queries": named["n"],
            "clusters": named["clusters"],
            "cluster_kind": named["cluster_kind"],
            "basis": named["quality_basis"],
        },
        "latency": {
            "what": view.latency.name,
            "ms": number(named["latency_ms"]),
            "low": number(named["latency_low"]),
            "high": number(named["latency_high"]),
            "n_queries": named["latency_n"],
            "basis": named["latency_basis"],
        },
        "cost": {
            "usd_per_1000_queries": number(named["cost"]),
            "at_least": number(named["cost_least"]),
            "unknown_because": named["cost_missing"],
            "basis": named["cost_basis"],
        },
        "unjudged_share_of_the_top_k": number(named["hole"]),
        **_leaks(view, named),
    }


def _leaks(view: View, named: Mapping[str, Any]) -> Small:
    """Return how many questions show what their filter forbids; {} where no question has a filter."""
    if view.snapshot.access(view.scope.collection_id) is None:
        return {}
    ends = {end: number(named[f"leak_{end}"]) for end in ("low", "high")}
    return {"leaks": {"measure": f"Leak@{view.quality.k}", "value": number(named["leak"]), **ends}}


def _offer(other: Mapping[str, Any]) -> Small:
    """Return an alternative with its numbers rounded."""
    return {name: number(value) if isinstance(value, float) else value for name, value in other.items()}


def _asked(view: View) -> Small:
    from core.report.words import question  # noqa: PLC0415

    kept = ("measure", "sla_ms", "on", "latency", "budget", "min_quality", *view.constraints.beside, "rule")
    asked: Mapping[str, Any] = question(view)
    units = {"sla_ms": "ms", "budget": "$ per 1,000 queries"}
    return {**{name: asked[name] for name in kept}, "units": units}


def _made_of(view: View) -> str:
    from core.report.page import made_of  # noqa: PLC0415

    return made_of(view)
