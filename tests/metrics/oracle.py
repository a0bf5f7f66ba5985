"""The measures again, one query and one K at a time, in loops, straight from the definitions.

Shares no code and no representation with `core.metrics`: a ranking and a pool are lists of passage ids,
judgements are a dictionary. `None` = not applicable.
"""

import math
from functools import partial

WEIGHTING = {
    "alpha": 1.0, "cap4": 1.0, "cap3": 0.25, "b4": 0.5, "b3": 0.1, "fallback4": 1.0, "fallback3": 0.2,
}  # fmt: skip
OTHERS = {
    "beta": 0.5, "patience": 0.5, "rel": 4, "p": 0.8, "gain": "linear", "use": 1.0, "pull": 1.0,
    "distraction": 1 / 3,
}  # fmt: skip
DEFAULTS = WEIGHTING | OTHERS
HALF = ("F", "F_e", "T", "T_u", "alpha-nDCG", "NRBP")
"""Measures whose alpha is 0.5 by default."""
LINEAR = {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0, 5: 5.0}


def grade_counts(judged):
    return {grade: sum(1 for given in judged.values() if given == grade) for grade in (1, 2, 3, 4, 5)}


def grade_weights(count, values):
    total = sum(count.values())
    if count[5] == 0:
        return {1: 0.0, 2: 0.0, 3: values["fallback3"], 4: values["fallback4"], 5: 1.0}
    utility = {3: values["b3"], 4: values["b4"], 5: 1.0}
    rarity = {
        grade: 0.0 if count[grade] == 0 else utility[grade] / (count[grade] / total) ** values["alpha"]
        for grade in (3, 4, 5)
    }
    return {
        1: 0.0,
        2: 0.0,
        3: min(rarity[3] / rarity[5], values["cap3"]),
        4: min(rarity[4] / rarity[5], values["cap4"]),
        5: 1.0,
    }


def ra_nwg(top, judged, k, values, _world):
    weight = grade_weights(grade_counts(judged), values)
    ideal = sum(sorted((weight[grade] for grade in judged.values()), reverse=True)[:k])
    if ideal == 0:
        return None
    return sum(weight[judged[passage]] for passage in top if passage in judged) / ideal


def novel_gain(passages, weight, judged, beta, source):
    """Gain of passages in this order: full for the first of a source, beta of it after."""
    seen, gain = set(), 0.0
    for passage in passages:
        facet = source.get(passage) or ("alone", passage)
        gain += weight.get(judged.get(passage, 0), 0.0) * (beta if facet in seen else 1.0)
        seen.add(facet)
    return gain


def novel_best(passages, judged, k, values, source):
    """The best choice of K: best first of each source, repeats by beta times their weight."""
    weight, beta = grade_weights(grade_counts(judged), values), values["beta"]
    worth, seen = [], set()
    for passage in sorted(passages, key=lambda passage: -weight.get(judged.get(passage, 0), 0.0)):
        facet = source.get(passage) or ("alone", passage)
        worth.append(weight.get(judged.get(passage, 0), 0.0) * (beta if facet in seen else 1.0))
        seen.add(facet)
    return sum(sorted(worth, reverse=True)[:k])


def novelty(top, judged, k, values, world):
    weight, source = grade_weights(grade_counts(judged), values), world["source"]
    ideal = novel_best(judged, judged, k, values, source)
    return novel_gain(top, weight, judged, values["beta"], source) / ideal if ideal else None


def n_recall(top, judged, k, least):
    good = {passage for passage, grade in judged.items() if grade >= least}
    if not good:
        return None
    return len(good & set(top)) / min(k, len(good))


def precision(top, judged, k, least):
    return len([passage for passage in top if judged.get(passage, 0) >= least]) / k


def harm(top, judged, k):
    return len([passage for passage in top if passage in judged and judged[passage] <= 2]) / k


def hole(top, judged, k):
    return len([passage for passage in top if passage not in judged]) / k


def hit(top, judged, _k, values, _world):
    good = {passage for passage, grade in judged.items() if grade >= values["rel"]}
    if not good:
        return None
    return 1.0 if good <= set(top) else 0.0


def accuracy(top, judged, k, values, world):
    return world["answers"].get(k) if hit(top, judged, k, values, world) == 1 else None


def answered(_top, _judged, k, _values, world):
    return world["answers"].get(k)


def relevant(judged, values):
    return {passage for passage, grade in judged.items() if grade >= values["rel"]}


def recall(top, judged, _k, values, _world):
    good = relevant(judged, values)
    return len(good & set(top)) / len(good) if good else None


def weighted_f(top, judged, k, alpha, values):
    """From precision and recall, as the harmonic mean is defined."""
    good = relevant(judged, values)
    if not good:
        return None
    p, r = len(good & set(top)) / k, len(good & set(top)) / len(good)
    return 0.0 if p == 0 else 1 / (alpha / p + (1 - alpha) / r)


def f_estimated(top, judged, k, values, world):
    good = relevant(judged, values)
    found, ahead = len(good & set(top)), len(good & set(world["ranking"][: 2 * k]))
    divisor = values["alpha"] * k + (1 - values["alpha"]) * ahead
    return found / divisor if divisor else None


def success(top, judged, _k, values, _world):
    return float(bool(relevant(judged, values) & set(top)))


def reciprocal_rank(top, judged, _k, values, _world):
    good = relevant(judged, values)
    for rank, passage in enumerate(top, 1):
        if passage in good:
            return 1 / rank
    return 0.0


def average_precision(top, judged, _k, values, _world):
    good = relevant(judged, values)
    if not good:
        return None
    precisions = [
        len(good & set(top[:rank])) / rank for rank, passage in enumerate(top, 1) if passage in good
    ]
    return sum(precisions) / len(good)


def inferred_precision(top, judged, _k, values, _world):
    good, total = relevant(judged, values), 0.0
    if not good:
        return None
    for place, passage in enumerate(top):  # trec_eval's m_infap.c, with its names
        if passage not in good:
            continue
        above = top[:place]
        rel, nonrel = (len([p for p in above if p in judged and (p in good) is yes]) for yes in (True, False))
        unjudged = len([p for p in above if p not in judged]) if values.get("unjudged") == "pool" else 0
        expected = (rel + 1e-5) / (rel + nonrel + 2e-5)
        total += (
            1.0 / (place + 1) + (place / (place + 1)) * ((rel + nonrel + unjudged) / place) * expected
            if place
            else 1.0
        )
    return total / len(good)


def expected_reciprocal_rank(top, judged, _k, values, world):
    """Algorithm 2 of Chapelle et al. 2009."""
    gains, lowest = world["gains"], world["gains"].get(1, 0.0)
    highest = values.get("most") or max(gains.values()) - lowest
    stay, err = 1.0, 0.0
    for rank, passage in enumerate(top, 1):
        grade = max(0.0, gains.get(judged.get(passage), lowest) - lowest)
        stops = min(1.0, (2**grade - 1) / 2**highest)
        err += stay * stops / rank
        stay *= 1 - stops
    return err


def rank_biased(top, judged, _k, values, _world):
    p, good = values["p"], relevant(judged, values)
    return (1 - p) * sum(p ** (rank - 1) for rank, passage in enumerate(top, 1) if passage in good)


def dcg(gains):
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def gain_of(grade, values, world):
    gain = world["gains"].get(grade, 0.0)
    return 2**gain - 1 if values["gain"] == "exp" else gain


def ndcg(top, judged, k, values, world):
    gains = {passage: gain_of(grade, values, world) for passage, grade in judged.items()}
    ideal = dcg(sorted(gains.values(), reverse=True)[:k])
    return dcg([gains.get(passage, 0.0) for passage in top]) / ideal if ideal else None


def ndcg_found(top, judged, _k, values, _world):
    good = relevant(judged, values)
    marks = [1.0 if passage in good else 0.0 for passage in top]
    return dcg(marks) / dcg(sorted(marks, reverse=True)) if any(marks) else 0.0


def t(top, judged, k, values, _world):
    found = len(relevant(judged, values) & set(top))
    return (1 - values["alpha"]) * found - values["alpha"] * (k - found) / k


def t_u(top, judged, k, values, _world):
    found = len(relevant(judged, values) & set(top))
    return (1 - values["alpha"]) * found - values["alpha"] * (k - found)


def novel_parts(passages, judged, values, source):
    """What every passage adds in this order: (1 − alpha)^(relevant ones of its source before it)."""
    good, before, parts = relevant(judged, values), {}, []
    for passage in passages:
        facet = source.get(passage) or ("alone", passage)
        parts.append((1 - values["alpha"]) ** before.get(facet, 0) if passage in good else 0.0)
        before[facet] = before.get(facet, 0) + (passage in good)
    return parts


def greedy(passages, judged, k, values, source):
    """Up to K passages, always the one that adds most next."""
    chosen, rest = [], list(passages)
    while rest and len(chosen) < k:
        best = max(rest, key=lambda each: novel_parts([*chosen, each], judged, values, source)[-1])
        rest.remove(best)
        chosen.append(best)
    return chosen


def alpha_ndcg(top, judged, k, values, world):
    source = world["source"]
    ideal = dcg(novel_parts(greedy(judged, judged, k, values, source), judged, values, source))
    return dcg(novel_parts(top, judged, values, source)) / ideal if ideal else None


def nrbp(top, judged, _k, values, world):
    good, source = relevant(judged, values), world["source"]
    if not good:
        return None
    subtopics = len({source.get(passage) or ("alone", passage) for passage in good})
    parts = novel_parts(top, judged, values, source)
    total = sum(part * values["patience"] ** place for place, part in enumerate(parts))
    return (1 - (1 - values["alpha"]) * values["patience"]) / subtopics * total


def told_parts(passages, values, supports):
    """What every passage adds in this order: (1 − alpha)^(passages before that support it), per nugget."""
    before, parts = {}, []
    for passage in passages:
        told = supports.get(passage, ())
        parts.append(sum((1 - values["alpha"]) ** before.get(each, 0) for each in told))
        for each in told:
            before[each] = before.get(each, 0) + 1
    return parts


def told_greedy(passages, k, values, supports):
    """Up to K passages, always the first of those that add most next."""
    chosen, rest = [], list(passages)
    while rest and len(chosen) < k:
        best = max(rest, key=lambda each: told_parts([*chosen, each], values, supports)[-1])
        rest.remove(best)
        chosen.append(best)
    return chosen


def of_nuggets(name, passages, k, values, supports):
    """Value of alpha-nDCG or NRBP of an ordering whose subtopics are nuggets."""
    known = [passage for passage, told in supports.items() if told]
    if not known:
        return None
    parts = told_parts(passages[:k], values, supports)
    if name == "alpha-nDCG":
        return dcg(parts) / dcg(told_parts(told_greedy(known, k, values, supports), values, supports))
    scale = (1 - (1 - values["alpha"]) * values["patience"]) / len({n for p in known for n in supports[p]})
    return scale * sum(part * values["patience"] ** place for place, part in enumerate(parts))


def source_recall(top, judged, _k, values, world):
    """Sources that hold something relevant, and those of them that anything ranked is of."""

    def source(passage):
        return world["source"].get(passage) or ("alone", passage)

    wanted = {source(passage) for passage in relevant(judged, values)}
    return len({source(passage) for passage in top} & wanted) / len(wanted) if wanted else None


def nugget_coverage(top, _judged, _k, _values, world, *, vital=False):
    """Nuggets counted by hand, one after the other."""
    listed = [each for each, is_vital in world["nuggets"].items() if is_vital or not vital]
    told = [each for each in listed if any(each in world["supports"].get(passage, ()) for passage in top)]
    return len(told) / len(listed) if listed else None


def nuggets_found(top, judged, k, values, world):
    share = nugget_coverage(top, judged, k, values, world)
    return None if share is None else round(share * len(world["nuggets"]))


def nugget_redundancy(top, _judged, _k, _values, world):
    """Share of mentions that are not the first of their nugget."""
    seen, again, mentions = set(), 0, 0
    for passage in top:
        for each in sorted(world["supports"].get(passage, ())):
            mentions, again = mentions + 1, again + (each in seen)
            seen.add(each)
    return again / mentions if mentions else None


def udcg(top, judged, _k, values, _world):
    """As its authors' code sums it: passage by passage, divided by how many there are, through a sigmoid."""
    if not top:
        return 0.0
    good, total = relevant(judged, values), 0.0
    for passage in top:
        total += values["use"] if passage in good else -values["distraction"] * values["pull"]
    return 1 / (1 + math.exp(-total / len(top)))


def leaked(top, _judged, k, _values, world):
    """Forbidden passages, counted one by one; from the first unknown rank of the run on nothing is known."""
    if world["filter"] is None or k >= world["filter"]["unsure"]:
        return None
    return sum(passage in world["filter"]["forbidden"] for passage in top)


def leak(top, judged, k, values, world):
    found = leaked(top, judged, k, values, world)
    return None if found is None else float(found > 0)


def short(top, judged, k, values, world):
    found = leaked(top, judged, k, values, world)
    if found is None or world["filter"]["expected"] < 0:
        return None
    return float(len(top) - found < min(k, world["filter"]["expected"]))


PLAIN = {
    "RA-nWG": ra_nwg,
    "Novelty-RA-nWG": novelty,
    "N-Recall4+": lambda top, judged, k, _values, _world: n_recall(top, judged, k, 4),
    "N-Recall5": lambda top, judged, k, _values, _world: n_recall(top, judged, k, 5),
    "N-Recall": lambda top, judged, k, values, _world: n_recall(top, judged, k, values["rel"]),
    "Precision4+": lambda top, judged, k, _values, _world: precision(top, judged, k, 4),
    "Harm": lambda top, judged, k, _values, _world: harm(top, judged, k),
    "HarmUpper": lambda top, judged, k, _values, _world: harm(top, judged, k) + hole(top, judged, k),
    "Hole": lambda top, judged, k, _values, _world: hole(top, judged, k),
    "Judged": lambda top, judged, k, _values, _world: 1 - hole(top, judged, k),
    "Hit": hit,
    "Answer": answered,
    "Acc|Hit": accuracy,
    "P": lambda top, judged, k, values, _world: precision(top, judged, k, values["rel"]),
    "R": recall,
    "F1": lambda top, judged, k, values, _world: weighted_f(top, judged, k, 0.5, values),
    "Success": success,
    "RR": reciprocal_rank,
    "AP": average_precision,
    "infAP": inferred_precision,
    "ERR": expected_reciprocal_rank,
    "nDCG": ndcg,
    "RBP": rank_biased,
    "F": lambda top, judged, k, values, _world: weighted_f(top, judged, k, values["alpha"], values),
    "F_e": f_estimated,
    "T": t,
    "T_u": t_u,
    "nDCG-found": ndcg_found,
    "Source-Recall": source_recall,
    "NuggetCoverage": nugget_coverage,
    "VitalCoverage": partial(nugget_coverage, vital=True),
    "Nuggets": nuggets_found,
    "NuggetRedundancy": nugget_redundancy,
    "Leak": leak,
    "Leaked": leaked,
    "Short": short,
    "alpha-nDCG": alpha_ndcg,
    "NRBP": nrbp,
    "UDCG": udcg,
}
ORDER_FREE = (
    "RA-nWG", "N-Recall4+", "N-Recall5", "N-Recall", "Precision4+", "Harm", "HarmUpper", "Hole", "Judged",
    "Hit", "P", "R", "F1", "Success", "F", "T", "T_u", "UDCG", "Source-Recall",
    "NuggetCoverage", "VitalCoverage", "Nuggets", "NuggetRedundancy", "Leak", "Leaked", "Short",
)  # fmt: skip
"""Measures that do not depend on the order within Top(K)."""


def usefulness(name, judged, values, world):
    """What a passage adds to the numerator of the measure; the best ordering is by it."""
    weight = grade_weights(grade_counts(judged), values)
    least = {"N-Recall4+": 4, "Precision4+": 4, "N-Recall5": 5}.get(name, values["rel"])
    adds = {
        "RA-nWG": lambda grade: weight.get(grade, 0.0),
        "nDCG": lambda grade: gain_of(grade, values, world),
        "ERR": lambda grade: world["gains"].get(grade, world["gains"].get(1, 0.0)),
    }.get(name, lambda grade: float(grade >= least))
    return lambda passage: adds(judged.get(passage, 0))


def value(
    name, ranking, judged, k, *, values=None, pool=(), source=None, answers=None, gains=LINEAR, nuggets=None,
    supports=None, allowed=None,
):  # fmt: skip
    """Value of one measure for one query at one K.

    `values` holds its parameters, those left out being at their default.
    """
    inner = name.partition("[")[2].rstrip("]") or name
    values = DEFAULTS | ({"alpha": 0.5} if inner in HALF else {}) | dict(values or {})
    world = {
        "ranking": ranking,
        "pool": pool,
        "source": source or {},
        "answers": answers or {},
        "gains": gains,
        "nuggets": nuggets or {},
        "supports": supports or {},
        "filter": allowed,
    }
    if name.startswith("%"):
        actual = PLAIN[inner](ranking[:k], judged, k, values, world)
        reached = ceiling(inner, judged, k, values, world)
        return actual / reached if reached else None
    if name.startswith("PROC["):
        return ceiling(inner, judged, k, values, world)
    if name.startswith("Robust["):  # what perturbed queries rank is what the pool holds
        both = [
            PLAIN[inner](each[:k], judged, k, values, world | {"ranking": each}) for each in (ranking, pool)
        ]
        worst = max if inner in ("Harm", "HarmUpper", "Hole") else min
        return None if None in both else worst(both)
    return PLAIN[name](ranking[:k], judged, k, values, world)


def ceiling(name, judged, k, values, world):
    """The measure of the best ordering of the pool."""
    pool = world["pool"]
    if name == "Novelty-RA-nWG":
        ideal = novel_best(judged, judged, k, values, world["source"])
        best = novel_best(pool, judged, k, values, world["source"])
        return best / ideal if ideal else None
    if name in ("alpha-nDCG", "NRBP"):
        return PLAIN[name](greedy(pool, judged, k, values, world["source"]), judged, k, values, world)
    best = sorted(pool, key=usefulness(name, judged, values, world), reverse=True)
    return PLAIN[name](best[:k], judged, k, values, world)
