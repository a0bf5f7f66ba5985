"""Acceptance of building golden sets: killed and resumed builds, what they cost, what stacks say on them.

    python -m bench.golden [--questions 40] [--depth 25] [--kills 20] [--noise 0.5] [--folder FOLDER]

From Cranfield's texts and questions alone, by a local judge that answers from the hidden grades with noise:
one build without a fault, whose plan is compared with what it spent, and one whose calls are refused, cut and
dropped and whose processes are killed at random moments. Then a dozen local stacks on both golden sets, and a
run of rag-gs that goes on from its S5. Figures are printed line by line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from scipy.stats import kendalltau

from core.pipeline.evaluate import corpus_of
from core.store import Store
from tests.pipeline import cranfield
from tests.work.golden import hidden

RAG_GS = cranfield.FOLDER.parents[1] / "peer_outputs" / "rag_gs"
STACKS = """
name = "stacks"
collection.stored = "cran"
golden_set.stored = "judged"
latency.repeats = 0
axes.method = "list"
"""
MEASURE = "RA-nWG@10"


def stacks() -> str:
    """A dozen local stacks."""
    sparse = [(0.3, 0.0), (0.9, 0.4), (1.2, 0.75), (2.5, 1.0)]
    dense = 'embedder = "wordllama"\ndim = '
    points = [f'mode = "sparse"\nbm25 = {{ k1 = {k1}, b = {b} }}' for k1, b in sparse]
    points += [f'mode = "dense"\n{dense}{dim}' for dim in (64, 128, 256)]
    fused = [(64, "rrf"), (128, "rrf"), (256, "rrf"), (64, "convex"), (256, "convex")]
    points += [f'mode = "hybrid"\n{dense}{dim}\nfusion = "{fusion}"' for dim, fusion in fused]
    return STACKS + "\n".join(f"[[stack]]\n{each}\ncandidates = 50\n" for each in points)


def tell(what: str, value: object) -> None:
    """Print a figure."""
    print(f"{what}: {value:.6g}" if isinstance(value, float) else f"{what}: {value}", flush=True)


def built(folder: Path, given: argparse.Namespace) -> None:
    """(a) and (d)."""
    truth = hidden.cranfield_truth(given.questions, given.noise)
    texts = hidden.cranfield_files(folder, truth)
    calm = hidden.Moody({}, delay_s=given.delay)
    with hidden.serving(truth, calm) as url:
        whole = hidden.Place(folder / "whole", url)
        spec = whole.spec(hidden.cranfield_spec(texts, given.depth))
        plan = whole.table("golden", "plan", spec)
        begun = time.monotonic()
        whole.do("golden", "build", spec, "--yes")
        whole_s = time.monotonic() - begun
        tell("a: uninterrupted build, seconds", whole_s)
    tell("a: questions, texts judged, judge's noise", (given.questions, plan["to_judge"], given.noise))
    told_plan(plan, whole, calm)
    moody = hidden.Moody(hidden.FAULTS, delay_s=given.delay, seed=1)
    with hidden.serving(truth, moody) as url:
        killed = hidden.Place(folder / "killed", url)
        begun = time.monotonic()
        killing = hidden.kill_and_resume(
            killed, killed.spec(hidden.cranfield_spec(texts, given.depth)), moody,
            kills=given.kills, needed=plan["calls"], whole_s=whole_s, seed=given.seed,
        )  # fmt: skip
        tell("a: killed build, seconds", time.monotonic() - begun)
    paid = hidden.paid(killed, moody, killing)
    processes = (len(killing.kills), len(killing.failed), len(killing.ends))
    tell("a: kills, processes that gave up, that came to the end", processes)
    tell("a: requests by how they were answered", dict(moody.kinds("attempt")))
    tell("a: different calls answered, of which are asked first", (paid.needed, plan["calls"]))
    tell("a: answers beyond the first of a call (under way at a kill)", paid.again)
    tell("a: the most of them by one kill, calls at once", (paid.most_per_kill, hidden.AT_ONCE))
    tell("a: calls sent again by the ledger, by the status", (paid.told, killed.status.calls_again))
    tell(
        "a: dollars billed, in the ledger, and at most lost",
        (paid.billed_usd, paid.settled_usd, paid.lost_usd),
    )
    tell("a: same golden set", same(whole.store, killed.store))
    tell("a: golden sets in the store", killed.store.read().golden_sets()["golden_set_id"].to_list())
    taus(killed, given)


def told_plan(plan: Mapping[str, Any], place: hidden.Place, state: hidden.Moody) -> None:
    """(d): what was planned beside what was billed."""
    for unit in hidden.PRICES:
        planned = sum(row["amount"] for row in plan["stages"] if row["unit"] == unit)
        spent = sum(amount for (_, of), amount in state.tokens.items() if of == unit)
        tell(f"d: {unit} planned, billed, ratio", (planned, spent, round(planned / spent, 6)))
    usd = place.status.usd
    tell("d: dollars planned, in the ledger, ratio", (plan["usd"], usd, round(plan["usd"] / usd, 6)))
    tell("d: dollars billed by the server", state.usd())
    tell("d: calls planned, sent", (plan["calls"], len(state.answers())))


def same(one: Store, other: Store) -> bool:
    """Whether two stores have the same judgements."""
    mine, theirs = (each.read().judgements(hidden.NAME) for each in (one, other))
    return mine.equals(theirs)


def taus(place: hidden.Place, given: argparse.Namespace) -> None:
    """(a): stacks by the built golden set and by the true one."""
    sweep = place.folder / "stacks.toml"
    sweep.write_text(stacks())
    place.do("run", sweep, "--yes")
    qrels = true_qrels(place.folder / "true.qrels", given.questions)
    place.do("import", qrels, "--collection", hidden.COLLECTION, "--golden-set", "true")
    stacked(place)


def stacked(place: hidden.Place) -> None:
    """Kendall's tau between the stacks' values on both golden sets."""
    scored = {
        name: pl.DataFrame(
            place.table(
                "score", "--measures", MEASURE, "--collection", hidden.COLLECTION, "--golden-set", name
            )
        )
        for name in (hidden.NAME, "true")
    }
    both = scored["true"].join(scored[hidden.NAME], on="run", suffix="_judged")
    print(both.select("stack", "n", "value", "n_judged", "value_judged").sort("value", descending=True))
    found = tau(both["value"].to_list(), both["value_judged"].to_list())
    tell(f"a: Kendall's tau of {MEASURE}, stacks", (round(found, 4), both.height))


def true_qrels(path: Path, questions: int) -> Path:
    """The hidden grades of the first questions as a file."""
    lines = [
        f"{query} 0 {passage} {grade}"
        for (query, passage), grade in hidden.cranfield_truth(questions).grades.items()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b."""
    return float(kendalltau(one, other).statistic)


def rag_gs_truth(store: Store) -> hidden.Truth:
    """The grades of an imported run of rag-gs, and an order of its own among equal grades."""
    read = store.read()
    corpus = corpus_of(read.passages("rag_gs"))
    grades = read.judgements("rag_gs-s4").select("query_id", "passage_id", "grade").rows()
    return hidden.Truth(
        dict(read.queries("rag_gs").select("query_id", "text").rows()),
        dict(zip(corpus.passage_ids, corpus.texts, strict=True)),
        {(query, passage): grade for query, passage, grade in grades},
        noise=0.35,
        spread=1.0,
    )


def rag_gs_spec(store: Store) -> str:
    """A specification that takes the run's grades and pool, and refines."""
    merged = store.read().runs().filter(label="merged by rank (RRF)")["run_id"].item()
    return f"""
name = "refined"
budget_usd = 50.0
collection.stored = "rag_gs"
[golden]
[[golden.pool]]
runs = "{merged}"
[golden.judge]
grades = "rag_gs-s4"
[golden.refine]
method = "locks"
model = "judge"
"""


def rag_gs_kept() -> dict[str, set[str]]:
    """The passages of every question that the run's own S5 kept."""
    found: dict[str, set[str]] = {}
    for path in sorted(RAG_GS.glob("data/runs/demo/q*/s5_pruned/*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found.setdefault(row["qid"], set()).add(row["doc_id"])
    return found


def continued(folder: Path, given: argparse.Namespace) -> None:
    """(c): a run of rag-gs goes on from its S5."""
    hidden.Place(folder, "").do("import", RAG_GS)
    store = Store.open(folder / "store")
    truth, state = rag_gs_truth(store), hidden.Moody(hidden.FAULTS, delay_s=given.delay, seed=2)
    with hidden.serving(truth, state) as url:
        place = hidden.Place(folder, url)
        spec = place.spec(rag_gs_spec(store))
        plan = place.table("golden", "plan", spec)
        place.do("golden", "build", spec, "--yes")
    read = store.read()
    orders = read.orders("refined").sort("query_id", "rank")
    kept = {
        query: set(rows["passage_id"])
        for (query,), rows in orders.partition_by("query_id", as_dict=True).items()
    }
    tell("c: same passages as its own S5", kept == rag_gs_kept())
    tell("c: passages in order by question", {query: len(some) for query, some in kept.items()})
    refined = json.loads(read.golden_sets("rag_gs").filter(golden_set_id="refined")["manifest"].item())[
        "refined"
    ]
    tell(
        "c: turns, contradictions, answers that were no order",
        tuple(refined[name] for name in ("turns", "contradictions", "skipped")),
    )
    tell("c: turns by question", {query: each["turns"] for query, each in refined["questions"].items()})
    for (query,), rows in orders.partition_by("query_id", as_dict=True).items():
        worth = [truth.worth(query, passage) for passage in rows["passage_id"]]
        grades = [truth.grades[query, passage] for passage in rows["passage_id"]]
        ranks = [-rank for rank in rows["rank"]]
        ours, alone = (tau(each, worth) for each in (ranks, grades))
        tell(
            f"c: {query}: tau to the true order, of grades alone, passages",
            (round(ours, 3), round(alone, 3), rows.height),
        )
    tell("c: dollars planned (usual turns), in the ledger", (plan["usd"], place.status.usd))
    tell("c: parents", read.golden_sets("rag_gs").filter(golden_set_id="refined")["parents"].to_list())


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.golden")
    for name, usual in (("questions", 40), ("depth", 25), ("kills", 20), ("seed", 2026)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds that an answer takes")
    parser.add_argument("--parts", default="ac", help="a: builds, with (d); c: the run of rag-gs")
    parser.add_argument("--folder", type=Path, help="kept; by default one that goes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        if "a" in given.parts:
            built(folder, given)
        if "c" in given.parts:
            continued(folder / "rag_gs", given)


if __name__ == "__main__":
    main()
