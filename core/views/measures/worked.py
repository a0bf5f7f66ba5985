"""Worked examples: one query on which every measure can be computed by hand, step by step.

The numbers in the steps come from the same functions that score runs; a test recomputes the last step
and compares it with the engine's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.metrics import Extra, Measure, Weighting, na_reason, score_at, weights
from core.metrics.access import NEVER
from core.metrics.classical import POOL
from core.metrics.info import depths_of, sets_of
from core.metrics.robust import chosen
from core.params import show

PASSAGES: tuple[tuple[str, int, str], ...] = (
    ("a", 5, "X"),
    ("b", 4, "X"),
    ("c", 4, "Y"),
    ("d", 3, "Z"),
    ("e", 3, "Y"),
    ("f", 2, "W"),
    ("g", 1, "V"),
    ("u", 0, "U"),
)
"""The example's passages: name, grade (0 = nobody judged it) and source; all but u are the golden set."""
RANKING = "buafcd"  # The run's ranking, first rank first; its candidate pool has the same passages
NOISY = "ufdbga"  # The ranking for the perturbed query, whatever the perturbation
ANSWERS = (0.0, 0.0, 0.25, 0.5, 0.75, 1.0)  # Correctness of the answer from the first 1, 2, … passages
NUGGETS: dict[str, tuple[int, ...]] = {"a": (1, 2), "b": (1,), "c": (2, 3), "d": (4,), "f": (), "u": ()}
"""Which of the example's nuggets each ranked passage supports; of five, 1 to 3 are vital."""
FORBIDDEN = "uf"  # The passages that the filter of the example's query forbids
_LEFT = len(PASSAGES) - len(FORBIDDEN)
LISTED, VITALS = frozenset(range(1, 6)), frozenset(range(1, 4))
DEEPEST = len(RANKING)
GRADES = {name: grade for name, grade, _ in PASSAGES}
SOURCES = {name: source for name, _, source in PASSAGES}
JUDGED = [name for name, grade, _ in PASSAGES if grade]
_REPEATS = {
    "Source-Recall": "adds nothing",
    **dict.fromkeys(("alpha-nDCG", "NRBP"), "loses alpha of its worth, each time"),
}
"""Measures of sources: how a passage that repeats one counts."""


def counts_of(names: Sequence[str]) -> np.ndarray:
    """Return the number of passages with each grade 1..5."""
    return np.bincount([GRADES[name] for name in names], minlength=6)[1:]


class WorkedRanking:
    """An ordering of the example's passages, and the contents of its Top(K)."""

    def __init__(self, measure: Measure, ranking: str) -> None:
        self.measure, self.ranking = measure, ranking
        self.name = measure.inner or measure.name
        self.k = measure.k or 1
        self.values = measure.values
        self.top = ranking[: self.k]
        self.grades = [GRADES[name] for name in self.top]

    def param(self, name: str) -> str:
        """Return a formatted parameter."""
        return show(self.values[name])

    @property
    def rel(self) -> int:
        """The relevance threshold."""
        fixed = {"N-Recall4+": 4, "Precision4+": 4, "N-Recall5": 5}
        return fixed.get(self.name, int(self.values.get("rel", 4)))

    @property
    def hits(self) -> list[int]:
        """The ranks of the relevant passages in Top(K)."""
        return [rank for rank, grade in enumerate(self.grades, 1) if grade >= self.rel]

    @property
    def found(self) -> int:
        """Relevant passages in Top(K)."""
        return len(self.hits)

    @property
    def present(self) -> int:
        """Relevant passages in the golden set."""
        return sum(grade >= self.rel for grade in GRADES.values())

    def weight(self, name: str) -> float:
        """Return the weight of a passage."""
        by_grade = weights(counts_of(JUDGED), Weighting.from_values(self.values))
        return float(by_grade[GRADES[name] - 1]) if GRADES[name] else 0.0

    def gain(self, grade: int) -> int:
        """Return the gain of a grade for nDCG."""
        return 2**grade - 1 if self.values.get("gain") == "exp" else grade

    def top_in_words(self) -> str:
        """List the contents of Top(K)."""
        shown = (f"{name} ({GRADES[name] or 'unjudged'})" for name in self.top)
        return f"Top({self.k}), with grades: {', '.join(shown)}."

    def best_in_words(self) -> str:
        """Return the best ordering of the pool."""
        return f"Best order of the candidate pool. {self.top_in_words()}"

    def golden_in_words(self) -> str:
        """List the judged passages."""
        counts = counts_of(JUDGED)
        shown = (f"n{grade} = {counts[grade - 1]}" for grade in range(5, 0, -1))
        return f"Golden set: {', '.join(shown)}."


def best_first(ranked: WorkedRanking) -> WorkedRanking:
    """Return the best order of the candidate pool for the measure: the largest contribution first."""
    pool = ranked.ranking
    if ranked.name.endswith("RA-nWG"):
        order = sorted(pool, key=lambda name: -ranked.weight(name))
        beta = float(ranked.values.get("beta", 1.0))
        worth = {name: gain for name, (gain, _) in zip(order, _discounted(ranked, order, beta), strict=True)}
        return WorkedRanking(ranked.measure, "".join(sorted(order, key=lambda name: -worth[name])))
    if ranked.name in ("alpha-nDCG", "NRBP"):
        return WorkedRanking(ranked.measure, _spread(ranked, pool))
    return WorkedRanking(ranked.measure, "".join(sorted(pool, key=lambda name: -GRADES[name])))


def _sum(terms: Sequence[str]) -> str:
    return " + ".join(terms) or "0"


def _discounted(ranked: WorkedRanking, names: Sequence[str], beta: float) -> list[tuple[float, str]]:
    """Return the contribution of each passage in this order, as a number and as a term."""
    seen: set[str] = set()
    terms = []
    for name in names:
        again, weight = SOURCES[name] in seen, ranked.weight(name)
        seen.add(SOURCES[name])
        cut = again and beta != 1
        terms.append((weight * beta, f"{show(beta)}·{show(weight)}") if cut else (weight, show(weight)))
    return terms


def _weighted(ranked: WorkedRanking) -> str:
    """Return weights found over the best ones; with a parameter beta, repeated sources count less."""
    beta = float(ranked.values.get("beta", 1.0))
    got = _discounted(ranked, ranked.top, beta)
    order = sorted(JUDGED, key=lambda name: -ranked.weight(name))
    best = sorted(_discounted(ranked, order, beta), key=lambda pair: -pair[0])[: ranked.k]
    return f"({_sum([term for _, term in got])}) / ({_sum([term for _, term in best])})"


def _dcg(gains: Sequence[int]) -> str:
    return _sum([f"{gain}/log2({rank + 1})" for rank, gain in enumerate(gains, 1)])


def _ndcg(ranked: WorkedRanking) -> str:
    ideal = sorted((ranked.gain(GRADES[name]) for name in JUDGED), reverse=True)[: ranked.k]
    return f"({_dcg([ranked.gain(grade) for grade in ranked.grades])}) / ({_dcg(ideal)})"


def _ndcg_found(ranked: WorkedRanking) -> str:
    marks = [int(grade >= ranked.rel) for grade in ranked.grades]
    return f"({_dcg(marks)}) / ({_dcg([1] * ranked.found)})" if ranked.found else "0"


def _average_precision(ranked: WorkedRanking) -> str:
    shares = [f"{place}/{rank}" for place, rank in enumerate(ranked.hits, 1)]
    return f"({_sum(shares)}) / {ranked.present}"


def _inferred_precision(ranked: WorkedRanking) -> str:
    terms = []
    for found, rank in enumerate(ranked.hits):
        above = ranked.grades[: rank - 1]
        judged = found + sum(0 < grade < ranked.rel for grade in above)
        sampled = judged + above.count(0) * (ranked.values["unjudged"] == POOL)
        terms.append(f"(1 + {sampled}·({found} + 0.00001)/({judged} + 0.00002))/{rank}")
    return f"({_sum(terms)}) / {ranked.present}"


def _expected_rank(ranked: WorkedRanking) -> str:
    most, left, terms = ranked.values["most"] or max(GRADES.values()) - 1, "", []
    for rank, grade in enumerate(ranked.grades, 1):
        if grade > 1:
            stops = f"min(1, (2^{grade - 1} − 1)/2^{most})"
            terms.append(f"{stops}/{rank}{left}")
            left += f"·(1 − {stops})"
    return _sum(terms)


def _rank_biased(ranked: WorkedRanking) -> str:
    p = ranked.param("p")
    return f"(1 − {p})·({_sum([f'{p}^{rank - 1}' for rank in ranked.hits])})"


def _f(ranked: WorkedRanking, relevant: int) -> str:
    alpha = ranked.param("alpha")
    return f"{ranked.found} / ({alpha}·{ranked.k} + (1 − {alpha})·{relevant})"


def _f_estimated(ranked: WorkedRanking) -> str:
    return _f(ranked, sum(GRADES[name] >= ranked.rel for name in ranked.ranking[: 2 * ranked.k]))


def _t_unnormalised(ranked: WorkedRanking) -> str:
    alpha = ranked.param("alpha")
    return f"(1 − {alpha})·{ranked.found} − {alpha}·{ranked.k - ranked.found}"


def _share(*grades: int) -> Callable[[WorkedRanking], str]:
    return lambda ranked: f"{sum(grade in grades for grade in ranked.grades)} / {ranked.k}"


def _fitting(ranked: WorkedRanking) -> str:
    return f"{ranked.found} / min({ranked.k}, {ranked.present})"


def _precision(ranked: WorkedRanking) -> str:
    return f"{ranked.found} / {ranked.k}"


def _fading(ranked: WorkedRanking, names: Sequence[str]) -> list[tuple[int, str]]:
    """Return rank and contribution of each relevant passage, reduced by earlier ones of its source."""
    left, seen, terms = show(1 - float(ranked.values["alpha"])), dict[str, int](), []
    for rank, name in enumerate(names, 1):
        if GRADES[name] >= ranked.rel:
            before = seen[SOURCES[name]] = seen.get(SOURCES[name], -1) + 1
            terms.append((rank, f"{left}^{before}"))
    return terms


def _spread(ranked: WorkedRanking, names: Sequence[str]) -> str:
    """Return the passages with each source's first relevant one before any source's second."""
    rounds: dict[str, int] = {}
    for name in names:
        before = [each for each in rounds if SOURCES[each] == SOURCES[name] and GRADES[each] >= ranked.rel]
        rounds[name] = len(before) if GRADES[name] >= ranked.rel else len(names)
    return "".join(sorted(names, key=lambda name: rounds[name]))


def _alpha_ndcg(ranked: WorkedRanking) -> str:
    best = _spread(ranked, JUDGED)[: ranked.k]
    sides = (
        [f"{worth}/log2({rank + 1})" for rank, worth in _fading(ranked, of)] for of in (ranked.top, best)
    )
    return " / ".join(f"({_sum(side)})" for side in sides)


def _nrbp(ranked: WorkedRanking) -> str:
    alpha, patience = ranked.param("alpha"), ranked.param("patience")
    sources = len({SOURCES[name] for name in JUDGED if GRADES[name] >= ranked.rel})
    terms = [f"{patience}^{rank - 1}·{worth}" for rank, worth in _fading(ranked, ranked.top)]
    return f"(1 − (1 − {alpha})·{patience}) / {sources}·({_sum(terms)})"


def _source_recall(ranked: WorkedRanking) -> str:
    wanted = {SOURCES[name] for name in JUDGED if GRADES[name] >= ranked.rel}
    return f"{len(wanted & {SOURCES[name] for name in ranked.top})} / {len(wanted)}"


def _coverage(listed: frozenset[int]) -> Callable[[WorkedRanking], str]:
    return lambda ranked: f"{len(listed & _told(ranked))} / {len(listed)}"


def _told(ranked: WorkedRanking) -> set[int]:
    return {nugget for name in ranked.top for nugget in NUGGETS[name]}


def _redundancy(ranked: WorkedRanking) -> str:
    return f"1 − {len(_told(ranked))} / {sum(len(NUGGETS[name]) for name in ranked.top)}"


def _udcg(ranked: WorkedRanking) -> str:
    use, pull, distraction = (ranked.param(name) for name in ("use", "pull", "distraction"))
    gain = f"({use}·{ranked.found} − {distraction}·{pull}·{ranked.k - ranked.found}) / {ranked.k}"
    return f"1 / (1 + e^(0 − {gain}))"


_EXPRESSIONS: dict[str, Callable[[WorkedRanking], str]] = {
    "RA-nWG": _weighted,
    "Novelty-RA-nWG": _weighted,
    "N-Recall4+": _fitting,
    "N-Recall5": _fitting,
    "N-Recall": _fitting,
    "Precision4+": _precision,
    "Harm": _share(1, 2),
    "HarmUpper": _share(0, 1, 2),
    "Hole": _share(0),
    "Judged": lambda ranked: f"1 − {_share(0)(ranked)}",
    "Hit": lambda ranked: "1" if ranked.found == ranked.present else "0",
    "Answer": lambda ranked: show(ANSWERS[ranked.k - 1]),
    "Acc|Hit": lambda ranked: show(ANSWERS[ranked.k - 1]),
    "P": _precision,
    "R": lambda ranked: f"{ranked.found} / {ranked.present}",
    "F1": lambda ranked: f"2·{ranked.found} / ({ranked.k} + {ranked.present})",
    "Success": lambda ranked: "1" if ranked.found else "0",
    "RR": lambda ranked: f"1 / {ranked.hits[0]}" if ranked.hits else "0",
    "AP": _average_precision,
    "infAP": _inferred_precision,
    "ERR": _expected_rank,
    "nDCG": _ndcg,
    "RBP": _rank_biased,
    "F": lambda ranked: _f(ranked, ranked.present),
    "F_e": _f_estimated,
    "T": lambda ranked: f"{_t_unnormalised(ranked)} / {ranked.k}",
    "T_u": _t_unnormalised,
    "nDCG-found": _ndcg_found,
    "Source-Recall": _source_recall,
    "NuggetCoverage": _coverage(LISTED),
    "VitalCoverage": _coverage(VITALS),
    "Nuggets": lambda ranked: f"{len(_told(ranked))}",
    "NuggetRedundancy": _redundancy,
    "Leak": lambda ranked: "1" if _forbidden(ranked) else "0",
    "Leaked": lambda ranked: f"{_forbidden(ranked)}",
    "Short": lambda ranked: "1" if ranked.k - _forbidden(ranked) < min(ranked.k, _LEFT) else "0",
    "alpha-nDCG": _alpha_ndcg,
    "NRBP": _nrbp,
    "UDCG": _udcg,
}


def _forbidden(ranked: WorkedRanking) -> int:
    """Return how many of Top(K) the filter forbids."""
    return sum(name in FORBIDDEN for name in ranked.top)


def expression(ranked: WorkedRanking) -> str:
    """Return the measure that is ranked for (X for PROC[X]), with numbers only."""
    return _EXPRESSIONS[ranked.name](ranked)


@dataclass(frozen=True)
class Worked:
    """One measure on the example."""

    measure: Measure  # with its cutoff
    steps: tuple[str, ...]  # the meaning of the numbers, in words
    expression: str  # the last step, with numbers only; "" if the measure doesn't apply
    value: float | None  # its result; None if the measure doesn't apply
    reason: str | None  # why it doesn't apply


def cutoff_of(measure: Measure) -> int:
    """Return the cutoff that shows a measure best: 5 for Hit and measures with an inner one, else 4."""
    return 5 if "Hit" in measure.name or measure.inner else 4


def example() -> pl.DataFrame:
    """Return the example as a table: rank (null = not ranked), passage, grade (null = unjudged), source.

    Rows are sorted by rank.
    """
    ranks = {name: rank for rank, name in enumerate(RANKING, 1)}
    rows = [(ranks.get(name), name, grade or None, source) for name, grade, source in PASSAGES]
    schema = {"rank": pl.Int64, "passage": pl.String, "grade": pl.Int64, "source": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("rank", "passage", nulls_last=True)


def worked(measure: Measure) -> Worked:
    """Work a measure out on the example.

    Args:
        measure: Any measure of the registry, with or without a cutoff (then `cutoff_of`), at most `DEEPEST`.
    """
    measure = measure.at(min(measure.k or cutoff_of(measure), DEEPEST))
    value = _value(measure)
    ranked = WorkedRanking(measure, RANKING)
    steps = (ranked.top_in_words(), ranked.golden_in_words(), *_notes(ranked))
    if value is None:
        return Worked(measure, steps, "", None, na_reason(measure, counts_of(JUDGED)) or measure.info.na)
    if measure.name.startswith("%"):
        best = best_first(ranked)
        steps = (*steps, best.best_in_words())
        step = f"({expression(ranked)}) / ({expression(best)})"
    elif measure.name.startswith("Robust["):
        others = [WorkedRanking(measure, NOISY)] if chosen(measure.values) else []
        steps = (*steps, *(f"Perturbed, the query ranks {' '.join(NOISY)} instead." for _ in others))
        sides = [expression(other) for other in (ranked, *others)]
        worst = "min" if measure.info.higher_is_better else "max"
        step = f"{worst}({', '.join(sides)})" if others else sides[0]
    elif measure.inner:
        best = best_first(ranked)
        steps, step = (best.best_in_words(), *steps[1:]), expression(best)
    else:
        step = expression(ranked)
    return Worked(measure, steps, step, value, None)


def bits(numbers: Iterable[int]) -> int:
    """Return a set of small numbers as bits."""
    return sum(1 << number for number in numbers)


def _value(measure: Measure) -> float | None:
    """Return the engine's value of a measure for the example, or None if it has none."""
    grades = np.array([[GRADES[name] for name in RANKING]], dtype=np.int8)
    codes = {source: code for code, source in enumerate(sorted(set(SOURCES.values())))}

    def sources(names: Sequence[str]) -> np.ndarray:
        return np.array([[codes[SOURCES[name]] for name in names]], dtype=np.int32)

    judged = np.array([[GRADES[name] for name in JUDGED]], dtype=np.int8)
    best = {source: max(GRADES[name] for name, own in SOURCES.items() if own == source) for source in codes}
    extra = Extra(
        sources=sources(RANKING),
        pool_sources=sources(RANKING),
        source_grades=np.array([[best[SOURCES[name]] for name in RANKING]], dtype=np.int8),
        facets=sets_of(judged, sources(JUDGED)),
        depths=depths_of(judged, sources(JUDGED)),
        answers=np.array([ANSWERS]),
        nuggets=np.array([[bits(NUGGETS[name]) for name in RANKING]], dtype=np.uint64),
        nuggets_listed=np.array([[bits(LISTED), bits(VITALS)]], dtype=np.uint64),
        states=np.array([[int(name not in FORBIDDEN) for name in RANKING]], dtype=np.int8),
        filtered=np.array([[NEVER, _LEFT]], dtype=np.int32),
        perturbed=dict.fromkeys(
            chosen(measure.values), np.array([[GRADES[name] for name in NOISY]], dtype=np.int8)
        ),
    )
    value = score_at(measure, grades, counts_of(JUDGED)[None], pool_grades=grades, extra=extra)[0]
    return None if np.isnan(value) else float(value)


def _notes(ranked: WorkedRanking) -> list[str]:
    """Return the numbers that the last step takes as given."""
    name = ranked.name
    if name.endswith("RA-nWG"):
        return [_weights_in_words(ranked)] + (
            [_sources_in_words("counts beta of its weight")] if name.startswith("Novelty") else []
        )
    if name in _REPEATS:
        return [_sources_in_words(_REPEATS[name])]
    if needs := ranked.measure.info.needs & {"nuggets", "filters"}:
        filtered = f"The filter forbids {' and '.join(FORBIDDEN)}, and leaves {_LEFT} passages."
        return [filtered if "filters" in needs else _nuggets_in_words(ranked)]
    if name in ("Harm", "HarmUpper", "Hole", "Judged", "nDCG", "ERR"):
        return []
    if name == "Acc|Hit":
        return [f"The answer from the first {ranked.k} passages is {show(ANSWERS[ranked.k - 1])} correct."]
    words = "has" if ranked.found == 1 else "have"
    return [
        f"Of these, {ranked.found} {words} grade {ranked.rel} or more; in the golden set {ranked.present}."
    ]


def _nuggets_in_words(ranked: WorkedRanking) -> str:
    told = (f"{name} {', '.join(map(str, NUGGETS[name])) or 'none'}" for name in ranked.top)
    return f"Nuggets 1 to {len(LISTED)}, of which 1 to {len(VITALS)} are vital. Supported: {'; '.join(told)}."


def _weights_in_words(ranked: WorkedRanking) -> str:
    n3, n4, n5 = counts_of(JUDGED)[2:]
    alpha, cap4, cap3, b4, b3 = (ranked.param(name) for name in ("alpha", "cap4", "cap3", "b4", "b3"))
    return (
        f"Weights: w5 = 1, w4 = min({b4}·({n5}/{n4})^{alpha}, {cap4}) = {show(ranked.weight('b'))}, "
        f"w3 = min({b3}·({n5}/{n3})^{alpha}, {cap3}) = {show(ranked.weight('d'))}, w2 = w1 = 0, unjudged 0."
    )


def _sources_in_words(left: str) -> str:
    shown = ", ".join(f"{name} of {source}" for name, source in SOURCES.items())
    return f"Sources: {shown}. What repeats a source {left}."
