"""D and DD% of wordllama, 15 × 100 in both languages, recomputed plainly and set beside the paper's.

python -m bench.names: nothing of core's arithmetic is used below `texts`; vectors come from wordllama itself.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import polars as pl
import wordllama

from core.diagnostics.names.margins import summary
from core.paths import PRICES
from core.prices import load_books
from core.providers.embed import make_embedder
from core.views.diagnostics.names import ORDER, published
from core.work.names.job import NamesSpec, figures, read_job

LANGUAGES, DIMS = ("en", "fr"), (64, 256)


def cosine(one, other):
    norms = math.sqrt(sum(a * a for a in one)) * math.sqrt(sum(b * b for b in other))
    return sum(a * b for a, b in zip(one, other, strict=True)) / norms if norms else 0.0


def margin(vectors, texts):
    query = vectors[texts.query]
    right, a, b, same, neither = (cosine(query, vectors[text]) for text in texts.candidates)
    return right - max(a, b), right - same, right - neither


def naive(job, model, dim, language):
    """Means over runs of D's and DD%, by condition and measure."""
    runs: dict[tuple[str, str], list[float]] = {}
    for run in range(1, job.spec.runs + 1):
        conditions = job.texts(language, run)
        every = sorted({t for some in conditions.values() for x in some for t in (x.query, *x.candidates)})
        whole = model.embed(every, norm=False, batch_size=16)
        vectors = {text: [float(x) for x in vector[:dim]] for text, vector in zip(every, whole, strict=True)}
        found = {name: [margin(vectors, each) for each in some] for name, some in conditions.items()}
        for name, rows in found.items():
            for at, measure in enumerate(("d_name", "d_topic", "d_both")):
                runs.setdefault((name, measure), []).append(statistics.fmean(row[at] for row in rows))
            changes = [
                (row[0] - base[0]) / base[0] * 100
                for row, base in zip(rows, found["base"], strict=True)
                if base[0] >= 0.02
            ]
            if name != "base":
                runs.setdefault((name, "dd_name_pct"), []).append(statistics.fmean(changes))
    return {key: (statistics.fmean(values), statistics.stdev(values)) for key, values in runs.items()}


def compare(runs=15, queries=100):
    """Rows of both computations and how far they are apart at most."""
    spec = NamesSpec.model_validate(
        {"embedder": [{"name": "wordllama", "dim": list(DIMS)}], "language": list(LANGUAGES), "runs": runs,
         "queries": queries}
    )  # fmt: skip
    job = read_job(spec, load_books(PRICES))
    ours = summary(figures(job, make_embedder))
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(dim=256, trunc_dim=256, cache_dir=folder, disable_download=True)
    rows = []
    for language in LANGUAGES:
        for dim in DIMS:
            plain = naive(job, model, dim, language)
            mine = ours.filter(dim=dim, language=language)
            for (condition, measure), (value, sd) in plain.items():
                row = mine.filter(condition=condition, measure=measure).row(0, named=True)
                rows.append((language, dim, condition, measure, value, sd, row["value"], row["sd"]))
    names = ["language", "dim", "condition", "measure", "naive", "naive_sd", "ours", "ours_sd"]
    return pl.DataFrame(rows, schema=names, orient="row")


def main() -> None:
    found = compare()
    apart = found.group_by("measure").agg(
        (pl.col("naive") - pl.col("ours")).abs().max(), (pl.col("naive_sd") - pl.col("ours_sd")).abs().max()
    )
    print("Greatest difference between the two computations:", apart.sort("measure").rows())
    paper = published().filter(measure="dd_name_pct")
    for language in LANGUAGES:
        print(language, "DD%: naive 64 d, 256 d; paper OpenAI, Voyage")
        for condition in ORDER[1:]:
            here = found.filter(language=language, condition=condition, measure="dd_name_pct").sort("dim")
            theirs = paper.filter(language=language, condition=condition).sort("embedder")["value"].to_list()
            told = [f"{v:.1f} ± {s:.1f}" for v, s in here.select("naive", "naive_sd").rows()]
            print(f"  {condition:30}", *told, *theirs)
        base = found.filter(language=language, condition="base").sort("dim", "measure")
        print("  base", [(d, m, round(v, 3)) for d, m, v in base.select("dim", "measure", "naive").rows()])


if __name__ == "__main__":
    main()
