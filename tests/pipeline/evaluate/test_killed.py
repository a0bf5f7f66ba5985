"""`kill -9` in the middle of an evaluation: nothing is paid twice but the calls that were under way."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.pipeline.evaluate.budget import Receipts
from core.store import Store
from tests import warm
from tests.pipeline.evaluate import kills, paid
from tests.pipeline.evaluate.vendor import vendor
from tests.shared import EVERY_PAGE

_KILLS = 20
_BETWEEN = 20 if EVERY_PAGE else 3


@pytest.mark.slow
def test_killed_evaluations(tmp_path: Path):
    draw = np.random.default_rng(2026)
    with vendor(tmp_path, delay_s=0.004) as server:
        whole = paid.work_much(tmp_path / "whole", server.url, "whole")
        attempts = kills.kill_until_done(paid.work_much, tmp_path / "killed", server, draw, _KILLS)
        needed, requests = server.paid("whole"), [server.requests(key) for key in attempts]
        billed = server.billed() - server.billed("whole")

    died = list(attempts.values())
    assert died.count(True) >= _KILLS
    bought = Counter(thing for sent in requests for things in sent for thing in things)
    assert not needed - bought
    again = bought - needed
    lost = _only_what_was_under_way(again, died, requests)
    paid.require_same(tmp_path / "whole", tmp_path / "killed")

    receipts = Receipts(paid.folder_of(tmp_path / "killed").receipts)
    usd = billed * paid.USD_PER_TOKEN
    assert receipts.settled <= usd + 1e-9
    assert usd <= receipts.settled + receipts.lost + 1e-9
    assert lost <= receipts.again <= died.count(True) * paid.AT_ONCE, (
        "every call that was sent again is counted"
    )
    assert whole.status.calls_again == 0
    ended = paid.folder_of(tmp_path / "killed").status()
    assert ended is not None
    assert ended.calls_again == receipts.again
    told = f"{receipts.again} calls told"
    receipts.close()
    assert whole.status.usd == pytest.approx(receipts.settled, rel=0.2)
    print(
        f"{died.count(True)} kills; {needed.total()} paid things, {again.total()} of them paid again, {told}"
    )


@pytest.mark.slow
def test_killed_between_stored_stacks(tmp_path: Path):
    draw, killed, count = np.random.default_rng(28), tmp_path / "killed", 3 * _BETWEEN + 4
    with vendor(tmp_path, delay_s=0.004) as server:
        paid.work(tmp_path / "whole", server.url, "whole", paid.many(server.url, count))
        died: list[bool] = []
        while not died or died[-1]:
            before = Store.open(killed / "store").read().runs()
            process = warm.process(paid.work_one_by_one, killed, server.url, f"attempt-{len(died)}", count)
            while died.count(True) < _BETWEEN and process.is_alive():
                if Store.open(killed / "store").read().runs().height > before.height:
                    time.sleep(float(draw.uniform(0, 0.05)))
                    process.kill()
                    break
                time.sleep(0.002)
            process.join()
            died.append(process.exitcode == -9)
            assert process.exitcode in (-9, 0)
            runs = Store.open(killed / "store").read().runs()
            assert not died[-1] or before.height < runs.height < count
            assert runs.filter(pl.col("run_id").is_in(before["run_id"].to_list())).equals(before)
        requests = [server.requests(f"attempt-{number}") for number in range(len(died))]
        needed = server.paid("whole")

    assert died.count(True) == _BETWEEN
    bought = Counter(thing for sent in requests for things in sent for thing in things)
    assert not needed - bought
    _only_what_was_under_way(bought - needed, died, requests)
    paid.require_same(tmp_path / "whole", killed)


def _only_what_was_under_way(again: Counter[str], died: list[bool], requests: list[list[list[str]]]) -> int:
    """What was paid again was under way when a process was killed: the bound, exactly.

    Batches of the corpus go out AT_ONCE at a time, so that one kill loses at most so many of them. Queries
    are asked one after the other, so that a kill can only lose the last request of its process.

    Returns:
        How many requests were lost.
    """
    of_corpus = 0
    for number, sent in enumerate(requests):
        later = {thing for others in requests[number + 1 :] for things in others for thing in things}
        lost = [things for things in sent if any(_of_corpus(thing) and thing in later for thing in things)]
        of_corpus += len(lost)
        assert len(lost) <= (paid.AT_ONCE if died[number] else 0)
    ends = [sent[-1] for was_killed, sent in zip(died, requests, strict=True) if was_killed and sent]
    last = Counter(thing for things in ends for thing in things)
    assert all(times <= last[thing] for thing, times in again.items() if not _of_corpus(thing))
    of_queries = sum(times / _things(thing) for thing, times in again.items() if not _of_corpus(thing))
    return of_corpus + round(of_queries)


def _things(thing: str) -> int:
    """How many things its request asks for: a reranked passage says how many there are."""
    return int(thing.split(" / ")[1]) if " / " in thing else 1


def _of_corpus(thing: str) -> bool:
    """Whether it is a passage that was embedded; passages have numbers, and are reranked with a query."""
    return "number" in thing and "/" not in thing
