"""What a search keeps in the folder of its evaluation: answers, proposals, what was dropped, and the study.

A search that was killed is run again from its beginning: answers and proposals that are kept are taken from
here, so that it comes the same way to where it was, asks nothing twice and goes on.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.files import write_json
from core.pipeline.search.asking import Answers
from core.pipeline.search.propose import distributions, quiet
from core.pipeline.search.race import Race
from core.pipeline.search.space import Space

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (stack TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    figures BLOB NOT NULL, seconds REAL NOT NULL, usd REAL NOT NULL, PRIMARY KEY (stack, first));
CREATE TABLE IF NOT EXISTS proposals (known TEXT PRIMARY KEY, rows TEXT NOT NULL);
"""


class Kept:
    """Answers and proposals of one search."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.executescript(_SCHEMA)
        self.seconds = self.usd = 0.0  # of the answers that were given out so far

    def answer(self, stack: str, part: tuple[int, int]) -> Answers | None:
        """Return what a stack answered; None = it has not."""
        row = self._db.execute(
            "SELECT figures, seconds, usd FROM answers WHERE stack = ? AND first = ? AND last = ?",
            (stack, *part),
        ).fetchone()
        if row is None:
            return None
        self.seconds, self.usd = self.seconds + row[1], self.usd + row[2]
        return tuple(np.load(io.BytesIO(row[0])))

    def keep(self, stack: str, part: tuple[int, int], answers: Answers, cost: tuple[float, float]) -> None:
        """Keep what a stack answered, with the seconds and dollars that it took."""
        held = io.BytesIO()
        np.save(held, np.stack(answers))
        self._db.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
            (stack, *part, held.getvalue(), *cost),
        )
        self.seconds, self.usd = self.seconds + cost[0], self.usd + cost[1]

    def proposed(self, known: str) -> list[int] | None:
        """Return what was proposed from the same knowledge."""
        row = self._db.execute("SELECT rows FROM proposals WHERE known = ?", (known,)).fetchone()
        return None if row is None else list(json.loads(row[0]))

    def propose(self, known: str, rows: Sequence[int]) -> None:
        """Keep what was proposed."""
        self._db.execute("INSERT OR REPLACE INTO proposals VALUES (?, ?)", (known, json.dumps(list(rows))))

    def close(self) -> None:
        """Release the file."""
        self._db.close()


def tell(path: Path, space: Space, race: Race, measure: str) -> None:
    """Write down every stack that was begun, what is known of it and why it was dropped."""
    entries = list(race.entries.values())
    harm = race.harm(entries)
    limited = np.full(len(entries), np.nan) if harm is None else harm
    figures = zip(*race.figures(entries), limited, strict=True)
    rows = [
        {
            "stack_id": space.stacks[entry.row].stack_id,
            "label": space.stacks[entry.row].label,
            "spec": dict(space.stacks[entry.row].spec),
            "queries": entry.n,
            "round": race.rounds.index(entry.n) + 1,
            **{
                name: None if np.isnan(value) else float(value)
                for name, value in zip(("quality", "latency_ms", "usd_per_1k", "harm"), values, strict=True)
            },
            "state": "dropped" if entry.out else "through" if entry.n == race.queries else "racing",
            "beaten_by": None if entry.by is None else space.stacks[entry.by].label,
            "bound": entry.bound,
        }
        for entry, values in zip(entries, figures, strict=True)
    ]
    told = {
        "measure": measure,
        "queries": race.queries,
        "stacks": len(space),
        "begun": len(entries),
        "dropped": sum(bool(each.out) for each in entries),
        "through": len(race.whole),
        "asked": race.asked,
        "asked_of": len(space) * race.queries,
        "level": race.rules.level,
        "margin": race.rules.margin,
        "entries": rows,
    }
    write_json(path, told)


def write_study(path: Path, name: str, space: Space, race: Race) -> None:
    """Bring the study up to date: a trial per stack that is through (complete) or dropped (pruned).

    optuna-dashboard opens it: ``optuna-dashboard sqlite:///…/study.sqlite``. What became known of time or
    money, or turned out to be unknown of some stack, begins the study anew.
    """
    settled = [each for each in race.entries.values() if each.out or each.n == race.queries]
    figures = race.figures(list(race.entries.values()))
    axes = [at for at, axis in enumerate(figures) if not np.isnan(axis).any()]
    places = {row: at for at, row in enumerate(race.entries)}
    names = [("quality", "latency ms", "$ per 1,000 queries")[at] for at in axes]
    with quiet() as package:
        states, storage = package.trial.TrialState, f"sqlite:///{path}"
        held = path.exists() and name in package.get_all_study_names(storage)
        if held and package.load_study(study_name=name, storage=storage).metric_names != names:
            package.delete_study(study_name=name, storage=storage)
        study = package.create_study(
            storage=storage,
            study_name=name,
            directions=["maximize" if not at and race.rules.higher_is_better else "minimize" for at in axes],
            load_if_exists=True,
        )
        study.set_metric_names(names)
        known = {trial.user_attrs.get("stack_id") for trial in study.get_trials(deepcopy=False)}
        for entry in settled:
            stack = space.stacks[entry.row]
            if stack.stack_id in known:
                continue
            params = space.parameters(entry.row)
            about = {"stack_id": stack.stack_id, "label": stack.label, "queries": entry.n}
            if entry.by is not None:
                about |= {"beaten by": space.stacks[entry.by].label, "bound": entry.bound}
            trial = package.trial.create_trial(
                state=states.PRUNED if entry.out else states.COMPLETE,
                values=[float(figures[at][places[entry.row]]) for at in axes],
                params={key: value for key, (value, _) in params.items()},
                distributions=distributions(package, params),
                user_attrs=about,
            )
            study.add_trial(trial)
