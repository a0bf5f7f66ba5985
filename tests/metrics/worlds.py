"""Small random worlds for the property tests: judgements, rankings and pools, and their arrays."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tests.metrics import oracle


@dataclass(frozen=True)
class Query:
    judged: dict
    ranking: list
    pool: list


@dataclass(frozen=True)
class World:
    queries: list
    depth: int

    def _grid(self, lists, width):
        grid = np.full((len(self.queries), width), -1, dtype=np.int8)
        for row, (query, passages) in enumerate(zip(self.queries, lists, strict=True)):
            shown = [query.judged.get(passage, 0) for passage in passages[:width]]
            grid[row, : len(shown)] = shown
        return grid

    @property
    def grades(self):
        return self._grid([query.ranking for query in self.queries], self.depth)

    @property
    def pool_grades(self):
        pools = [query.pool for query in self.queries]
        return self._grid(pools, max([1, *map(len, pools)]))

    @property
    def pool_counts(self):
        rows = [[list(query.judged.values()).count(grade) for grade in range(1, 6)] for query in self.queries]
        return np.array(rows, dtype=np.int32)

    def oracle(self, name, values=oracle.DEFAULTS):
        made = [
            [
                oracle.value(name, q.ranking, q.judged, k, values=values, pool=q.pool)
                for k in range(1, self.depth + 1)
            ]
            for q in self.queries
        ]
        return np.array(made, dtype=np.float64)


@st.composite
def queries(draw, *, pool_holds_ranking=False):
    judged = {f"d{n}": grade for n, grade in enumerate(draw(st.lists(st.integers(1, 5), max_size=14)))}
    everything = [*judged, *(f"u{n}" for n in range(draw(st.integers(0, 6))))]
    shuffled = draw(st.permutations(everything))
    ranking = shuffled[: draw(st.integers(0, len(everything)))]
    rest = shuffled[len(ranking) :]
    candidates = draw(st.permutations(everything)) if not pool_holds_ranking else ranking + rest
    least = len(ranking) if pool_holds_ranking else 0
    return Query(judged, ranking, list(candidates[: draw(st.integers(least, len(everything)))]))


@st.composite
def worlds(draw, *, pool_holds_ranking=False):
    made = draw(st.lists(queries(pool_holds_ranking=pool_holds_ranking), min_size=1, max_size=4))
    return World(made, draw(st.integers(1, 18)))


def share():
    return st.floats(0, 1, allow_nan=False).map(lambda number: round(number, 4))


weighting_values = st.fixed_dictionaries(
    {
        "alpha": st.floats(0, 4, allow_nan=False).map(lambda number: round(number, 4)),
        "cap4": share(),
        "cap3": share(),
        "b4": share(),
        "b3": share(),
        "fallback4": share(),
        "fallback3": share(),
    }
)
