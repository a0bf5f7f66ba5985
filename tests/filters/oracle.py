"""What a filter means, passage by passage, in plain Python: nothing of it is shared with the product."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime


def matches(asked, passage, kinds):
    """Return whether a passage (field → value) matches a filter; a field has one type."""
    return all(_usable(name, test, passage, kinds) for name, test in _leaves(asked)) and _true(
        asked, passage, kinds
    )


def kinds_of(passages):
    """Return the type of each field: that of most values, or date where all texts are dates."""
    found = {}
    for name in {name for passage in passages for name in passage}:
        values = [passage[name] for passage in passages if passage.get(name) is not None]
        counts = Counter(kind for kind in map(_kind, values) if kind)
        if not counts:
            continue
        order = ["text", "number", "bool", "texts"]
        most = min(order, key=lambda kind: (-counts[kind], order.index(kind)))
        texts = [value for value in values if isinstance(value, str)]
        found[name] = "date" if most == "text" and all(_date(text) for text in texts) else most
    return found


def _kind(value):
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, list):
        fit = all(isinstance(each, (str, int)) and not isinstance(each, bool) for each in value)
        return "texts" if fit else None
    return None


def _date(text):
    if len(text) < 10 or text[4] != "-":
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _leaves(asked):
    for name, condition in asked.items():
        if name == "not":
            yield from _leaves(condition)
        else:
            yield from ((name, leaf) for leaf in _field_leaves(condition))


def _field_leaves(condition):
    if not isinstance(condition, dict):
        yield ("in", condition if isinstance(condition, list) else [condition])
        return
    for operator, value in condition.items():
        if operator == "not":
            yield from _field_leaves(value)
        else:
            yield (operator, value if isinstance(value, list) else [value])


def _usable(name, leaf, passage, kinds):
    operator, values = leaf
    kind = kinds[name]
    held = passage.get(name)
    if held is None or (_kind(held) != kind and not (kind == "date" and isinstance(held, str))):
        return False
    if operator in ("any", "all"):
        return kind == "texts"
    if kind == "texts" or (operator != "in" and kind not in ("number", "date")):
        return False
    if kind == "date":
        return all(isinstance(value, str) and _date(value) for value in values)
    return all(_kind(value) == kind for value in values)


def _true(asked, passage, kinds):
    return all(
        not _true(condition, passage, kinds)
        if name == "not"
        else _holds(condition, passage[name], kinds[name])
        for name, condition in asked.items()
    )


def _holds(condition, held, kind):
    if not isinstance(condition, dict):
        return any(
            _as(held, kind) == _as(value, kind)
            for value in (condition if isinstance(condition, list) else [condition])
        )
    for operator, value in condition.items():
        if operator == "not":
            holds = not _holds(value, held, kind)
        elif operator in ("any", "all"):
            wanted = {str(each) for each in (value if isinstance(value, list) else [value])}
            has = {str(each) for each in held}
            holds = bool(wanted & has) if operator == "any" else wanted <= has
        else:
            one, two = _as(held, kind), _as(value, kind)
            holds = {"gte": one >= two, "gt": one > two, "lte": one <= two, "lt": one < two}[operator]
        if not holds:
            return False
    return True


def _as(value, kind):
    return _date(value) if kind == "date" else value
