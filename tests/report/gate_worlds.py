"""Random worlds for a gate: what was imported, renamed and deleted, kept as plain data beside the store.

The plain data say when a gate must not pass; nothing of the gate, the store or the rule is used for that.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from typer.testing import CliRunner

import core.api as clq
from core.cli.app import app
from core.errors import ClqError
from core.store import Store
from tests.report.gate_plain import (
    BUDGET,
    QUERIES,
    SLA,
    Golden,
    Results,
    Shape,
    near,
    plain,
    qrels,
    read,
    surely_better,
    tables,
    too_bad,
)

JUDGED, OTHERS = "shop", ("shop-old", "elsewhere")
NAMES = ("good", "good", "cheap", "better", "fast", "good-v2", "Good", "GOOD ")
SHAPES: tuple[Shape, ...] = ("", "", "", "", "", "cut", "odd", "part", "untimed", "averages", "averages")
CUTS = (0, 4, 12, QUERIES)
FILTERED = {
    "corpus.jsonl": [{"_id": one, "text": one, "metadata": {"tenant": to}} for one, to in ("pa", "xb")],
    "queries.jsonl": [
        {"_id": f"q{query}", "text": "?"} | ({"filter": {"tenant": "b"}} if query < 4 else {})
        for query in range(QUERIES)
    ],
}
"""Texts, of which the first four questions may not see passage p."""


@dataclass
class World:
    """A store, and what it must hold as plain data."""

    folder: Path
    random: Random
    stacks: dict[str, dict[str, list[Results]]] = field(default_factory=dict)
    """Workspace → stack → its versions that are there, the newest last."""
    costs: dict[str, float] = field(default_factory=dict)  # $ per 1,000 queries of results that were priced
    golden: Golden = field(default_factory=Golden)  # judgements of the judged workspace
    shown: frozenset[str] = frozenset()  # the stacks that the record compares; empty = all
    chosen: str = ""
    budget: bool = False  # whether the record has one
    stays: bool = False  # whether the record says to stay with what runs
    filtered: bool = False
    told: list[str] = field(default_factory=list)  # what was done, in words

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self.folder / "store"

    @property
    def results(self) -> clq.Results:
        """The store in Python."""
        return clq.open(self.path)

    def file(self, text: str, name: str) -> Path:
        """Write a file of a new folder."""
        folder = self.folder / f"files-{len(self.told)}"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return folder / name

    def files(self, stacks: dict[str, Results], mark: str = "q") -> list[Path]:
        """Write results of stacks as tables."""
        return [self.file(text, name) for name, text in tables(stacks, mark).items()]

    def begin(self) -> None:
        """Fill workspaces with the same questions, and write the record of one of them."""
        random = self.random
        first = {"good": Results(random.randint(11, 14), random.randint(80, 190)), "cheap": Results(2, 20)}
        for place in (JUDGED, *OTHERS):
            self.results.add(
                *self.files(first), self.file(qrels(QUERIES), f"{place}.qrels"), collection=place
            )
            self.stacks[place] = {name: [results] for name, results in first.items()}
        self.budget, self.stays = random.random() < 0.25, random.random() < 0.2
        if self.budget:
            for name in first:
                self.price(name, 1.0)
        runs = ["good", "cheap"] if random.random() < 0.3 else None
        self.shown = frozenset(runs or ())
        made = self.results.workspace(JUDGED).decide(
            measure="RR@10",
            sla_ms=SLA,
            budget=BUDGET if self.budget else None,
            runs=runs,
            incumbent="good" if self.stays else None,
        )
        made.record(self.folder / "record.json")
        said = json.loads((self.folder / "record.json").read_text()).get("stay_or_switch") or {}
        self.stays = said.get("answer") == "stay"
        self.chosen = "good" if self.stays else made.chosen.name if made.chosen else ""

    def save(self) -> None:
        """Keep a beginning for other worlds."""
        kept = (plain(self.stacks), self.costs, sorted(self.shown), self.chosen, self.budget, self.stays)
        (self.folder / "world.json").write_text(json.dumps(kept))

    def load(self) -> None:
        """Go on from a beginning."""
        stacks, self.costs, shown, self.chosen, self.budget, self.stays = json.loads(
            (self.folder / "world.json").read_text()
        )
        self.stacks, self.shown = read(stacks), frozenset(shown)
        if self.random.random() < 0.15:
            self.rebuilt()

    def rebuilt(self) -> None:
        """Import the same results into a new store, as CI does: its revisions are fewer than the record's."""
        self.told.append("rebuilt")
        shutil.rmtree(self.path)
        first = {name: versions[0] for name, versions in self.stacks[JUDGED].items()}
        self.results.add(*self.files(first), self.file(qrels(QUERIES), "shop.qrels"), collection=JUDGED)
        self.stacks = {JUDGED: {name: [one] for name, one in first.items()}, **{one: {} for one in OTHERS}}
        self.costs = {}
        if self.budget:
            for name in first:
                self.price(name, 1.0)

    def draw(self) -> dict[str, Results]:
        """Draw results of one to three stacks, some beyond the SLA, some far better than the first ones."""
        names = dict.fromkeys(self.random.sample(NAMES, self.random.randint(1, 3)))
        return {
            name: Results(
                self.random.choice((0, 4, 12, 13, QUERIES)),
                self.random.choice((20, 90, 150, 199, 290, 400)),
                self.random.choice(SHAPES),
            )
            for name in names
        }

    def change(self) -> None:
        """Do one thing to the store that people do: import, judge, price, delete, restore."""
        acts = (self.imported, self.imported, self.imported, self.deleted, self.cleared,
                self.judged, self.priced, self.protected, self.marked)  # fmt: skip
        act = self.random.choice(acts)
        self.told.append(act.__name__)
        act()

    def add(self, *files: Path, place: str, choice: str | None, **more: Any) -> bool:
        """Import files; return whether they were taken."""
        try:
            self.results.add(*files, collection=place, if_changed=choice, **more)  # type: ignore[arg-type]
        except ClqError as error:
            self.told[-1] += f": refused ({type(error).__name__})"
            return False
        return True

    def imported(self) -> None:
        """Import results into some workspace, as a new version or in place of what is there."""
        place = self.random.choice((JUDGED, JUDGED, *OTHERS))
        choice = self.random.choice((None, "new", "replace"))
        stacks = self.draw()
        self.told[-1] += f" {stacks} into {place}, {choice}"
        if self.add(*self.files(stacks), place=place, choice=choice):
            self.keep(place, stacks, replacing=choice == "replace")

    def keep(self, place: str, stacks: dict[str, Results], *, replacing: bool) -> None:
        """Note results that came."""
        there = self.stacks.setdefault(place, {})
        for name, results in stacks.items():
            versions = there.setdefault(name.strip(), [])
            if results in versions:  # known already
                continue
            if replacing and versions:
                versions[-1] = results
            else:
                versions.append(results)

    def deleted(self) -> None:
        """Delete all versions of a stack of some workspace."""
        place = self.random.choice((JUDGED, *OTHERS))
        named = self.runs(place)
        if named:
            name = self.random.choice(sorted(named))
            with Store.open(self.path).write("delete", "") as writer:
                writer.remove("run", named[name])
            self.told[-1] += f" {name} of {place}"
            self.stacks[place].pop(name, None)

    def runs(self, place: str) -> dict[str, list[str]]:
        """Return the ids of all versions of each stack of a workspace."""
        named: dict[str, list[str]] = {}
        for run, label in Store.open(self.path).read().runs(place).select("run_id", "label").iter_rows():
            named.setdefault(label.partition(" (")[0], []).append(run)
        return named

    def cleared(self) -> None:
        """Now and then delete the judgements or the whole workspace."""
        kind = self.random.choice(("nothing", "nothing", "golden_set", "collection"))
        store = Store.open(self.path)
        self.told[-1] += f" {kind}"
        if kind == "golden_set":
            ids = store.read().golden_sets(JUDGED)["golden_set_id"].to_list()
            if ids:
                with store.write("delete", "") as writer:
                    writer.remove(kind, ids)
            self.golden.delete()
        elif kind == "collection":
            place = self.random.choice((JUDGED, *OTHERS))
            if place in store.read().collections()["collection_id"]:
                with store.write("delete", "") as writer:
                    writer.remove(kind, [place])
                self.told[-1] += f" {place}"
                self.stacks[place] = {}
                if place == JUDGED:
                    self.golden.delete()

    def judged(self) -> None:
        """Import other judgements of the same name, or those of another judge."""
        cut, choice = self.random.choice(CUTS), self.random.choice((None, "new", "replace"))
        name = self.random.choice(("shop", "shop", "judge"))
        self.told[-1] += f" {name} by {cut}, {choice}"
        file = self.file(qrels(cut), f"{name}.qrels")
        if self.add(file, place=JUDGED, choice=choice) and name == "shop":
            self.golden.keep(cut, choice)

    def priced(self) -> None:
        """Set the price of a stack."""
        there = sorted(self.stacks[JUDGED].keys() & self.runs(JUDGED).keys())
        if there:
            name, cost = self.random.choice(there), self.random.choice((0.5, 1.5, 3.0))
            self.told[-1] += f" {name} {cost}"
            self.price(name, cost)

    def price(self, name: str, cost: float) -> None:
        """Set the price of all versions of a stack of the judged workspace."""
        done = self.call("prices", "set", *self.runs(JUDGED)[name], "--usd-per-query", cost / 1000)
        assert done.exit_code == 0, done.output
        self.costs |= {f"{name} {results}": cost for results in self.stacks[JUDGED][name]}

    def protected(self) -> None:
        """Now and then import texts of which some askers may not see a passage."""
        if self.random.random() < 0.4:
            files = [
                self.file("".join(json.dumps(row) + "\n" for row in rows), name)
                for name, rows in FILTERED.items()
            ]
            if self.add(files[0].parent, place=JUDGED, choice="replace", permissions=frozenset({"tenant"})):
                self.filtered = True

    def marked(self) -> None:
        """Mark a stack as the one that runs today."""
        there = sorted(self.runs(JUDGED))
        if there:
            name = self.random.choice(there)
            self.told[-1] += f" {name}"
            self.call("incumbent", self.runs(JUDGED)[name][0])

    def call(self, *words: object) -> Any:
        """Call the command."""
        return CliRunner().invoke(app, ["--store", str(self.path), *map(str, words)])

    def given(self) -> tuple[list[Path], str | None, str]:
        """Draw what a gate is given: files, the named workspace, and why it must not pass ("" = it may)."""
        if self.random.random() < 0.2:
            return [], None, ""
        stacks = self.draw()
        into = self.random.choice((JUDGED,) * 6 + ("shopp", "Shop", *OTHERS, None))
        kinds = ("new",) * 6 + ("same", "empty", "none", "strange", "no file", "twice", "judged", "both")
        kind = self.random.choice(kinds)
        if kind == "same":
            stacks = {name: versions[-1] for name, versions in self.stacks[JUDGED].items()
                      if versions} or stacks  # fmt: skip
        cut = self.random.choice(CUTS)
        self.told.append(f"given {kind} {stacks if kind != 'judged' else ''} {cut} into {into}")
        files = self._given(kind, stacks, cut)
        if kind in {"empty", "none", "strange", "no file"} and (into is not None or files):
            return files, into, f"the results are {kind}"
        if into != JUDGED and (files or into):
            return files, into, f"the results are for {into}"
        return files, into, self._came(kind, stacks, cut) if files else ""

    def _given(self, kind: str, stacks: dict[str, Results], cut: int) -> list[Path]:
        """Write the files that a gate is given."""
        judgements = partial(self.file, qrels(cut), "shop.qrels")
        if kind == "twice":
            other = {name: Results(QUERIES - one.found, one.ms) for name, one in stacks.items()}
            files = self.files(stacks)
            self.told.append("the second of both")
            more = self.files(other)
            return files + [Path(shutil.copy(file, file.with_name(f"again-{file.name}"))) for file in more]
        made: dict[str, Callable[[], list[Path]]] = {
            "none": list,
            "no file": lambda: [self.folder / "absent.csv"],
            "empty": lambda: [self.file("", "results.csv")],
            "judged": lambda: [judgements()],
            "both": lambda: [*self.files(stacks), judgements()],
            "strange": lambda: self.files(stacks, "other-"),
        }
        return made.get(kind, lambda: self.files(stacks))()

    def _came(self, kind: str, stacks: dict[str, Results], cut: int) -> str:
        """Note what a gate imported, and say why that alone must fail."""
        if kind in {"judged", "both"}:
            self.golden.keep(cut, "replace")
            if self.golden.versions[0] != (cut, True):
                return "other judgements came than those that it judges by"
        if kind == "judged":
            return ""
        ours = {name: one for name, one in stacks.items() if near(name) == near(self.chosen)}
        if kind == "twice" and ours:
            return "two results of the stack came"
        self.keep(JUDGED, stacks, replacing=True)
        for name, one in stacks.items():  # what is given counts, though it was there before
            versions = self.stacks[JUDGED][name.strip()]
            versions.append(versions.pop(versions.index(one)))
        if ours and self.chosen not in ours:
            return "results of a stack came that is written like this one"
        others = [v[-1] for name, v in self.stacks[JUDGED].items() if v and name != self.chosen]
        if ours and ours[self.chosen].shape == "averages" and any(one.shape != "averages" for one in others):
            return "averages came of the stack, rankings are there of others"
        return ""

    def must_fail(self) -> str:
        """Say why a decision on what is there cannot hold, or return ""."""
        there = {name: versions[-1] for name, versions in self.stacks[JUDGED].items() if versions}
        cut, live = self.golden.versions[0]
        if not live:
            return "the judgements are not there"
        if self.chosen not in there:
            return "the stack is not there"
        chosen = there[self.chosen]
        ruled = {"budget": self.budget, "filtered": self.filtered}
        bad = too_bad(chosen, self.costs.get(f"{self.chosen} {chosen}"), **ruled)
        if bad:
            return bad
        for name, other in there.items():
            if self.shown and name not in self.shown:
                continue
            if not too_bad(other, self.costs.get(f"{name} {other}"), **ruled) and surely_better(
                other, chosen, cut
            ):
                return f"{name} is surely better"
        return ""

    def holds(self, files: list[Path], into: str | None) -> tuple[bool, str]:
        """Ask a gate in one of its ways: whether it passes, and why this way must not ("" = it may)."""
        others = ("other", "other command", "other decision")
        way = self.random.choice((*("store",) * 4, "workspace", "command", *others))
        elsewhere = self.random.choice(OTHERS)
        record = self.folder / "record.json"
        self.told.append(f"asked by {way}")
        try:
            match way:
                case "store":
                    return self.results.gate(record, results=files, into=into).holds, ""
                case "workspace":
                    return self.results.workspace(JUDGED).gate(record, results=files, into=into).holds, ""
                case "other":
                    space = self.results.workspace(elsewhere)
                    return space.gate(record, results=files, into=into).holds, f"it is asked in {elsewhere}"
                case "other decision":
                    made = self.results.workspace(elsewhere).decide(measure="RR@10", sla_ms=SLA)
                    return made.gate(record).holds, f"it is a decision on {elsewhere}"
        except ClqError as error:
            self.told.append(f"refused: {error}")
            return False, ""
        words: list[object] = ["gate", record, *(word for file in files for word in ("--results", file))]
        words += ["--into", into] if into else []
        words += ["--collection", elsewhere] if way == "other command" else []
        done = self.call(*words)
        self.told.append(done.output)
        return done.exit_code == 0, f"it is asked in {elsewhere}" if way == "other command" else ""


BEGUN = 24
"""How many different beginnings there are, each made once."""


def passes(seed: int, folder: Path, begun: Path) -> tuple[bool, str, list[str]]:
    """Play a world: whether the gate passes, why it must not ("" = it may), and what was done.

    Args:
        folder: A new folder.
        begun: Where the beginnings are kept.
    """
    first = begun / str(seed % BEGUN)
    if not first.exists():
        first.mkdir(parents=True)
        world = World(first, Random(seed % BEGUN))  # noqa: S311 - a world is played again by its seed
        world.begin()
        world.save()
    shutil.copytree(first, folder, dirs_exist_ok=True)
    world = World(folder, Random(seed))  # noqa: S311
    world.load()
    for _ in range(world.random.randint(0, 4)):
        world.change()
    files, into, why = world.given()
    why = why or world.must_fail()
    holds, elsewhere = world.holds(files, into)
    return holds, elsewhere or why, world.told
