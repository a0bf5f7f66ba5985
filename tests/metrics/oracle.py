"""The measures again, one query and one K at a time, in loops, straight from the definitions.

Shares no code and no representation with `core.metrics`: a ranking and a pool are lists of passage ids,
judgements are a dictionary. `None` = not applicable.
"""

DEFAULTS = {"alpha": 1.0, "cap4": 1.0, "cap3": 0.25, "b4": 0.5, "b3": 0.1, "fallback4": 1.0, "fallback3": 0.2}


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


def ra_nwg(top, judged, k, values):
    weight = grade_weights(grade_counts(judged), values)
    ideal = sum(sorted((weight[grade] for grade in judged.values()), reverse=True)[:k])
    if ideal == 0:
        return None
    return sum(weight[judged[passage]] for passage in top if passage in judged) / ideal


def n_recall(top, judged, k, least):
    good = {passage for passage, grade in judged.items() if grade >= least}
    if not good:
        return None
    return len(good & set(top)) / min(k, len(good))


def precision4(top, judged, k):
    return len([passage for passage in top if judged.get(passage, 0) >= 4]) / k


def harm(top, judged, k):
    return len([passage for passage in top if passage in judged and judged[passage] <= 2]) / k


def hole(top, judged, k):
    return len([passage for passage in top if passage not in judged]) / k


def hit(top, judged, _k):
    good = {passage for passage, grade in judged.items() if grade >= 4}
    if not good:
        return None
    return 1.0 if good <= set(top) else 0.0


PLAIN = {
    "RA-nWG": ra_nwg,
    "N-Recall4+": lambda top, judged, k, _values: n_recall(top, judged, k, 4),
    "N-Recall5": lambda top, judged, k, _values: n_recall(top, judged, k, 5),
    "Precision4+": lambda top, judged, k, _values: precision4(top, judged, k),
    "Harm": lambda top, judged, k, _values: harm(top, judged, k),
    "HarmUpper": lambda top, judged, k, _values: harm(top, judged, k) + hole(top, judged, k),
    "Hole": lambda top, judged, k, _values: hole(top, judged, k),
    "Hit": lambda top, judged, k, _values: hit(top, judged, k),
}


def usefulness(name, judged, values):
    """What a passage adds to the numerator of the measure; the best ordering is by it."""
    weight = grade_weights(grade_counts(judged), values)
    adds = {
        "RA-nWG": lambda grade: weight.get(grade, 0.0),
        "N-Recall5": lambda grade: float(grade == 5),
    }.get(name, lambda grade: float(grade >= 4))
    return lambda passage: adds(judged.get(passage, 0))


def value(name, ranking, judged, k, *, values=DEFAULTS, pool=()):
    """Value of one measure for one query at one K."""
    if name.startswith("%"):
        actual = value(name[6:-1], ranking, judged, k, values=values)
        ceiling = value(name[1:], ranking, judged, k, values=values, pool=pool)
        return actual / ceiling if ceiling else None
    if name.startswith("PROC["):
        inner = name[5:-1]
        best = sorted(pool, key=usefulness(inner, judged, values), reverse=True)
        return PLAIN[inner](best[:k], judged, k, values)
    return PLAIN[name](ranking[:k], judged, k, values)
