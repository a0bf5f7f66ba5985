"""Acceptance of readers: killed and resumed jobs on Cranfield, with the fake reader and behind a server.

    python -m bench.readers [--questions 225] [--served 40] [--kills 10]

The same job runs once in peace and once with kills at random moments; the server also refuses, cuts and drops
calls. Counts are printed line by line.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.golden import tell
from core.store.doctor import examine
from tests.work.golden import hidden
from tests.work.readers import killed


def report(name: str, told: killed.Told, place: hidden.Place) -> None:
    """Counts of one comparison."""
    tell(f"{name}: answers, scores", f"{told.answers:,}, {told.scores:,}")
    tell(f"{name}: answers and calls of the plan", f"{told.plan['answers']:,}, {told.plan['asked']:,}")
    tell(f"{name}: killed, gave up, ended", tuple(map(len, (told.killing.kills, told.killing.failed,
                                                           told.killing.ends))))  # fmt: skip
    tell(f"{name}: seconds in peace", told.whole_s)
    tell(f"{name}: same as in peace, store sound", (told.same, examine(place.store).sound))


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    for name, default in (("questions", 225), ("served", 40), ("kills", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        base = killed.stored(folder / "base", given.questions)
        _, place, told = killed.compare(folder / "here", base, None, None, given.kills)
        report("fake", told, place)
        base = killed.stored(folder / "few", given.served)
        calm = hidden.Moody({}, delay_s=0.0)
        moody = hidden.Moody({**hidden.FAULTS, "form": 0.0}, delay_s=0.02, seed=1)
        _, place, told = killed.compare(folder / "served", base, moody, calm, given.kills)
        report("server", told, place)
        tell("server: requests", dict(moody.kinds("attempt")))
        tell("server: paid", hidden.paid(place, moody, told.killing))


if __name__ == "__main__":
    main()
