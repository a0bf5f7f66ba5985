"""Random worlds for a gate: what was imported, renamed and deleted, kept as plain data beside the store.

The plain data say when a gate must not pass; nothing of the gate, the store or the rule is used for that.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import core.api as clq
from core.errors import ClqError
from core.store import Store

QUERIES, SLA, SURE = 20, 200, 10
"""Questions; the SLA of the record, ms; questions more that make another stack surely better."""
JUDGED, OTHERS = "shop", ("shop-old", "elsewhere")
NAMES = ("good", "cheap", "better", "fast", "good-v2", "Good")
Numbers = tuple[int, int]  # questions that are answered at rank 1, of the others at rank 2; ms


def table(stacks: dict[str, Numbers], mark: str = "q") -> str:
    """Write results of stacks as a table: rankings and times of every question."""
    lines = ["run,query_id,passage_id,rank,latency_ms"]
    for name, (found, ms) in stacks.items():
        for query in range(QUERIES):
            for rank, passage in enumerate("px" if query < found else "xp", 1):
                lines.append(f"{name},{mark}{query},{passage},{rank},{ms}")
    return "\n".join(lines) + "\n"


QRELS = "".join(f"q{query} 0 p 3\nq{query} 0 x 0\n" for query in range(QUERIES))


@dataclass
class World:
    """A store, and what it must hold as plain data."""

    folder: Path
    random: Random
    stacks: dict[str, dict[str, list[Numbers]]] = field(default_factory=dict)
    """Workspace → stack → its versions that are there, the newest last."""
    shown: frozenset[str] = frozenset()  # the stacks that the record compares; empty = all
    chosen: str = ""
    told: list[str] = field(default_factory=list)  # what was done, in words
    judged: bool = True

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self.folder / "store"

    def file(self, text: str, name: str = "results.csv") -> Path:
        """Write a file of results."""
        path = self.folder / f"{len(self.told)}" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def begin(self, random: Random) -> None:
        """Fill workspaces with the same questions, and write the record of one of them."""
        first = {"good": (random.randint(11, 14), random.randint(80, 190)), "cheap": (2, 20)}
        for place in (JUDGED, *OTHERS):
            clq.open(self.path).add(
                self.file(table(first), f"{place}.csv"), self.file(QRELS, f"{place}.qrels"), collection=place
            )
            self.stacks[place] = {name: [numbers] for name, numbers in first.items()}
        runs = ["good", "cheap"] if random.random() < 0.3 else None
        self.shown = frozenset(runs or ())
        made = clq.open(self.path).workspace(JUDGED).decide(measure="RR@10", sla_ms=SLA, runs=runs)
        made.record(self.folder / "record.json")
        self.chosen = made.chosen.name if made.chosen else ""

    def numbers(self) -> Numbers:
        """Draw the numbers of a stack, some beyond the SLA, some far better than the first ones."""
        ms = self.random.choice((20, 90, 150, 199, 290, 400))
        return self.random.choice((0, 4, 12, 13, 20)), ms

    def results(self) -> dict[str, Numbers]:
        """Draw results of one to three stacks, often of the recorded one."""
        names = self.random.sample(NAMES, self.random.randint(1, 3))
        return {name: self.numbers() for name in names}

    def change(self) -> None:
        """Do one thing to the store that people do: import, delete, restore."""
        act = self.random.choice((self.imported, self.imported, self.deleted, self.cleared))
        self.told.append(act.__name__)
        act()

    def imported(self) -> None:
        """Import results into some workspace, as a new version or in place of what is there."""
        place = self.random.choice((JUDGED, JUDGED, *OTHERS))
        choice = self.random.choice((None, "new", "replace"))
        stacks = self.results()
        self.told[-1] += f" {stacks} into {place}, {choice}"
        try:
            clq.open(self.path).add(self.file(table(stacks)), collection=place, if_changed=choice)
        except ClqError as error:
            self.told[-1] += f": refused ({type(error).__name__})"
            return
        self.keep(place, stacks, replacing=choice == "replace")

    def keep(self, place: str, stacks: dict[str, Numbers], *, replacing: bool) -> None:
        """Note results that came."""
        there = self.stacks.setdefault(place, {})
        for name, numbers in stacks.items():
            versions = there.setdefault(name, [])
            if numbers in versions:  # known already
                continue
            if replacing and versions:
                versions[-1] = numbers
            else:
                versions.append(numbers)

    def deleted(self) -> None:
        """Delete all versions of a stack of some workspace."""
        place = self.random.choice((JUDGED, *OTHERS))
        runs = Store.open(self.path).read().runs(place)
        names = sorted({label.partition(" (")[0] for label in runs["label"]})
        if not names:
            return
        name = self.random.choice(names)
        gone = [run for run, label in runs.select("run_id", "label").iter_rows()
                if label.partition(" (")[0] == name]  # fmt: skip
        with Store.open(self.path).write("delete", "") as writer:
            writer.remove("run", gone)
        self.told[-1] += f" {name} of {place}"
        self.stacks[place].pop(name, None)

    def cleared(self) -> None:
        """Now and then delete the judgements or the whole workspace."""
        kind = self.random.choice(("nothing", "nothing", "nothing", "golden_set", "collection"))
        store = Store.open(self.path)
        self.told[-1] += f" {kind}"
        if kind == "golden_set" and self.judged:
            with store.write("delete", "") as writer:
                writer.remove(kind, store.read().golden_sets(JUDGED)["golden_set_id"].to_list())
            self.judged = False
        elif kind == "collection":
            place = self.random.choice((JUDGED, *OTHERS))
            if place in store.read().collections()["collection_id"]:
                with store.write("delete", "") as writer:
                    writer.remove(kind, [place])
                self.told[-1] += f" {place}"
                self.stacks[place] = {}
                self.judged = self.judged and place != JUDGED

    def given(self) -> tuple[list[Path], str | None, str]:
        """Draw what a gate is given: files, the named workspace, and why it must not pass ("" = it may)."""
        if self.random.random() < 0.2:
            return [], None, ""
        stacks, into = self.results(), self.random.choice((JUDGED, JUDGED, JUDGED, "shopp", *OTHERS, None))
        kind = self.random.choice(("new", "new", "new", "same", "empty", "none", "strange", "no file"))
        if kind == "same":
            now = {name: versions[-1] for name, versions in self.stacks[JUDGED].items() if versions}
            stacks = now or stacks
        self.told.append(f"given {kind} {stacks} into {into}")
        text = {"empty": "", "strange": table(stacks, "other-")}.get(kind, table(stacks))
        files = {"none": [], "no file": [self.folder / "absent.csv"]}.get(kind, [self.file(text)])
        if kind in {"empty", "none", "strange", "no file"} and (into is not None or files):
            return files, into, f"the results are {kind}"
        if into != JUDGED and (files or into):
            return files, into, f"the results are for {into}"
        if files:
            self.keep(JUDGED, stacks, replacing=True)
            for name, numbers in stacks.items():  # what is given counts, though it was there before
                versions = self.stacks[JUDGED][name]
                versions.append(versions.pop(versions.index(numbers)))
        return files, into, ""

    def must_fail(self) -> str:
        """Say why a decision on what is there cannot hold, or return ""."""
        there = {name: versions[-1] for name, versions in self.stacks[JUDGED].items() if versions}
        if not self.judged:
            return "nothing is judged"
        if self.chosen not in there:
            return "the stack is not there"
        found, ms = there[self.chosen]
        if ms > SLA:
            return "it is too slow"
        rivals = {name for name in there if not self.shown or name in self.shown}
        better = [name for name in rivals if there[name][1] <= SLA and there[name][0] - found >= SURE]
        return f"{better[0]} is surely better" if better else ""


BEGUN = 12
"""How many different beginnings there are, each made once."""


def passes(seed: int, folder: Path, begun: Path) -> tuple[bool, str, list[str]]:
    """Play a world: whether the gate passes, why it must not ("" = it may), and what was done.

    Args:
        folder: A new folder.
        begun: Where the beginnings are kept.
    """
    first = begun / str(seed % BEGUN)
    world = World(first, Random(seed))  # noqa: S311 - a world is played again by its seed
    if not first.exists():
        first.mkdir(parents=True)
        world.begin(Random(seed % BEGUN))  # noqa: S311
        (first / "world.json").write_text(json.dumps([world.stacks, sorted(world.shown), world.chosen]))
    shutil.copytree(first, folder, dirs_exist_ok=True)
    stacks, shown, world.chosen = json.loads((folder / "world.json").read_text())
    world.folder, world.shown = folder, frozenset(shown)
    world.stacks = {
        place: {name: [tuple(numbers) for numbers in versions] for name, versions in there.items()}
        for place, there in stacks.items()
    }
    for _ in range(world.random.randint(0, 4)):
        world.change()
    files, into, why = world.given()
    why = why or world.must_fail()
    try:
        holds = clq.open(world.path).gate(folder / "record.json", results=files, into=into).holds
    except ClqError as error:
        world.told.append(f"refused: {error}")
        holds = False
    return holds, why, world.told
