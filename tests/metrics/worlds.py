"""Small random worlds for the property tests: judgements, rankings and pools, and their arrays."""

from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from core.metrics import Extra, score_all
from core.metrics.access import NEVER, UNFILTERED
from core.metrics.info import depths_of, sets_of
from core.views.measures.worked import bits
from tests.metrics import oracle


@dataclass(frozen=True)
class Query:
    judged: dict
    ranking: list
    pool: list
    source: dict = field(default_factory=dict)
    answers: dict = field(default_factory=dict)
    nuggets: dict = field(default_factory=dict)  # number → whether it is vital
    supports: dict = field(default_factory=dict)  # passage → numbers
    allowed: dict | None = None  # forbidden passages, rank from which on all is unknown, results expected


@dataclass(frozen=True)
class World:
    queries: list
    depth: int
    gains: tuple = (1.0, 2.0, 3.0, 4.0, 5.0)

    def _grid(self, lists, width, value, empty, dtype):
        grid = np.full((len(self.queries), width), empty, dtype=dtype)
        for row, (query, passages) in enumerate(zip(self.queries, lists, strict=True)):
            grid[row, : len(passages[:width])] = [value(query, passage) for passage in passages[:width]]
        return grid

    def _grades(self, lists, width):
        return self._grid(lists, width, lambda query, passage: query.judged.get(passage, 0), -1, np.int8)

    def _sources(self, lists, width):
        """A code per source; a passage without one is the only one of its own."""

        def code(query, passage):
            facets = [query.source.get(each) or each for each in self._everything(query)]
            return facets.index(query.source.get(passage) or passage)

        return self._grid(lists, width, code, -1, np.int32)

    @staticmethod
    def _everything(query):
        return list(dict.fromkeys([*query.judged, *query.ranking, *query.pool]))

    @property
    def _best_of_source(self):
        """The highest grade of a judged passage of each ranked passage's source."""

        def best(query, passage):
            source = query.source.get(passage)
            same = [
                each
                for each in query.judged
                if each == passage or (source and query.source.get(each) == source)
            ]
            return max((query.judged[each] for each in same), default=0)

        return self._grid(self._rankings, self.depth, best, -1, np.int8)

    @property
    def _nuggets(self):
        def told(query, passage):
            return bits(query.supports.get(passage, ()))

        return self._grid(self._rankings, self.depth, told, 0, np.uint64)

    @staticmethod
    def _filtered(query):
        return [0, -1] if query.allowed is None else [query.allowed["unsure"], query.allowed["expected"]]

    @property
    def _states(self):
        def state(query, passage):
            return UNFILTERED if query.allowed is None else int(passage not in query.allowed["forbidden"])

        return self._grid(self._rankings, self.depth, state, -1, np.int8)

    @property
    def of_nuggets(self):
        """The same inputs where nuggets are the facets of passages."""
        told = [[bits(numbers) for numbers in query.supports.values() if numbers] for query in self.queries]
        known = np.zeros((len(told), max([1, *map(len, told)])), dtype=np.uint64)
        for row, sets in enumerate(told):
            known[row, : len(sets)] = sets
        pool = self._grid(
            self._pools,
            self.pool_grades.shape[1],
            lambda query, passage: bits(query.supports.get(passage, ())),
            0,
            np.uint64,
        )
        return replace(self.extra, nuggets_known=known, pool_nuggets=pool)

    @property
    def _rankings(self):
        return [query.ranking for query in self.queries]

    @property
    def _pools(self):
        return [query.pool for query in self.queries]

    @property
    def grades(self):
        return self._grades(self._rankings, self.depth)

    @property
    def pool_grades(self):
        return self._grades(self._pools, max([1, *map(len, self._pools)]))

    @property
    def pool_counts(self):
        rows = [[list(query.judged.values()).count(grade) for grade in range(1, 6)] for query in self.queries]
        return np.array(rows, dtype=np.int32)

    @property
    def extra(self):
        width = max([1, *map(len, self._pools)])
        judged = [list(query.judged) for query in self.queries]
        most = max([1, *map(len, judged)])
        answers = np.full((len(self.queries), self.depth), np.nan)
        for row, query in enumerate(self.queries):
            for k, grade in query.answers.items():
                if k <= self.depth:
                    answers[row, k - 1] = grade
        return Extra(
            gains=self.gains,
            sources=self._sources(self._rankings, self.depth),
            pool_sources=self._sources(self._pools, width),
            source_grades=self._best_of_source,
            facets=sets_of(self._grades(judged, most), self._sources(judged, most)),
            depths=depths_of(self._grades(judged, most), self._sources(judged, most)),
            answers=answers,
            nuggets=self._nuggets,
            nuggets_listed=np.array(
                [[bits(q.nuggets), bits(n for n, vital in q.nuggets.items() if vital)] for q in self.queries],
                dtype=np.uint64,
            ),
            states=self._states,
            filtered=np.array([self._filtered(query) for query in self.queries], dtype=np.int32),
            perturbed={"noise 4": self._grades(self._pools, 2 * self.depth)},
        )

    def score(self, measures, depth=None):
        return score_all(
            measures,
            self.grades,
            self.pool_counts,
            pool_grades=self.pool_grades,
            depth=depth,
            extra=self.extra,
        )

    def oracle(self, name, values=None):
        gains = dict(enumerate(self.gains, 1))
        made = [
            [
                oracle.value(
                    name,
                    # What lies deeper than the arrays reach is not seen.
                    q.ranking[: self.depth],
                    q.judged,
                    k,
                    values=values,
                    pool=q.pool,
                    source=q.source,
                    answers=q.answers,
                    nuggets=q.nuggets,
                    supports=q.supports,
                    allowed=q.allowed,
                    gains=gains,
                )
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
    sources = draw(st.lists(st.sampled_from((None, "s1", "s2", "s3")), max_size=len(everything)))
    answers = draw(st.dictionaries(st.integers(1, 12), st.sampled_from((0.0, 0.25, 1.0)), max_size=6))
    nuggets = dict(enumerate(draw(st.lists(st.booleans(), max_size=6))))
    some = st.lists(st.sampled_from(sorted(nuggets)), unique=True, max_size=4) if nuggets else st.just([])
    forbidden = st.sets(st.sampled_from(everything)) if everything else st.just(set())
    filters = st.fixed_dictionaries(
        {
            "forbidden": forbidden,
            "unsure": st.sampled_from((NEVER, 1, 3)),
            "expected": st.integers(-1, 12),
        }
    )
    return Query(
        judged,
        ranking,
        list(candidates[: draw(st.integers(least, len(everything)))]),
        dict(zip(everything, sources, strict=False)),
        answers,
        nuggets,
        {passage: draw(some) for passage in everything},
        draw(st.none() | filters),
    )


@st.composite
def worlds(draw, *, pool_holds_ranking=False):
    made = draw(st.lists(queries(pool_holds_ranking=pool_holds_ranking), min_size=1, max_size=3))
    gains = draw(st.sampled_from(((1, 2, 3, 4, 5), (0, 1, 2, 3, 4), (0, 2, 3, 4, 1), (0, 0, 1, 2, 3))))
    return World(made, draw(st.integers(1, 12)), tuple(map(float, gains)))


def share():
    return st.floats(0, 1, allow_nan=False).map(lambda number: round(number, 4))


weighting_values = st.fixed_dictionaries(
    {
        "alpha": st.floats(0, 4, allow_nan=False).map(lambda number: round(number, 4)),
        **{
            name: share()
            for name in ("cap4", "cap3", "b4", "b3", "fallback4", "fallback3", "beta", "use", "pull")
        },
        "rel": st.integers(1, 5),
        "p": st.floats(0, 0.999).map(lambda number: round(number, 4)),
        "gain": st.sampled_from(("linear", "exp")),
    }
)
"""Values of every parameter; `with_values` keeps those that a measure has and allows."""
