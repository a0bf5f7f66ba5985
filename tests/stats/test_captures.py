"""Estimates of what nobody saw: by hand, on simulated captures of known totals, and on Cranfield."""

import numpy as np
import pytest

from core.pipeline.index.bm25 import make_bm25
from core.providers.embed import make_embedder
from core.stats import captures
from core.stats.captures import chao, chapman, dependences, extrapolated, histories, log_linear, of_lists
from tests.pipeline import cranfield

QUERIES = 300


def simulated(chances, *, easy=0.0, seed=1, per_query=12):
    """Captures of passages of which a share is easy: what is easy, the first two lists hold for sure."""
    drawn = np.random.default_rng(seed)
    query = np.repeat(np.arange(QUERIES), per_query)
    held = drawn.random((len(query), len(chances))) < np.array(chances)
    held[drawn.random(len(query)) < easy, :2] = True
    some = held.any(axis=1)
    return histories(held[some], query[some], QUERIES), len(query)


def test_histories_and_lists_by_hand():
    held = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=bool)
    cells = histories(held, np.array([0, 0, 1, 1]), 2)
    assert cells.tolist() == [[0, 0, 0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0, 0, 1]]
    assert of_lists(cells, (0, 1)).tolist() == [[0, 1, 0, 1], [0, 0, 0, 1]]
    assert of_lists(cells, (2, 0)).tolist() == [[0, 0, 1, 1], [0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("first", "second", "both", "expect"),
    [
        (200, 150, 30, 201 * 151 / 31 - 1),
        (10, 8, 4, 99 / 5 - 1),
        (5, 5, 5, 5),  # nothing is missing
        (3, 2, 0, 11),
        (4, 0, 0, 4),
    ],
)
def test_chapman_by_hand(first, second, both, expect):
    cells = np.array([[0, first - both, second - both, both]], dtype=float)
    assert chapman(cells).value == pytest.approx(expect)


def test_chao_by_hand():
    # seen 12, 2 of each list alone, 4 of two: 12 + 3 · 2·2 / (4 + 1)
    assert chao(np.array([[0, 2, 2, 2, 2, 1, 1, 2]], dtype=float)).value == pytest.approx(14.4)


def test_chao_has_the_factor_of_the_number_of_lists():
    # many passages, of lists that reach equally far: (t − 1) / t · f1² / (2 f2)
    for lists in (2, 3, 4):
        times = np.array([cell.bit_count() for cell in range(2**lists)])
        cells = np.where(times == 1, 9_000.0, np.where(times == 2, 4_000.0, 0.0))
        once, twice = cells[times == 1].sum(), cells[times == 2].sum()
        more = (lists - 1) / lists * once**2 / (2 * twice)
        assert chao(cells[None]).value == pytest.approx(once + twice + more, rel=1e-3)


def test_chao_of_two_lists_is_chapmans():
    cells, _ = simulated((0.8, 0.3), seed=4)
    assert chao(cells) == chapman(cells)


def test_independent_captures_give_the_total():
    cells, total = simulated((0.6, 0.5))
    found = chapman(cells)
    assert found.value == pytest.approx(total, rel=0.03)
    assert found.low <= total <= found.high
    three, total = simulated((0.5, 0.4, 0.3), seed=2)
    model = log_linear(three)
    assert model.value == pytest.approx(total, rel=0.05)
    assert model.low <= total <= model.high
    assert not any(each.sign for each in dependences(three))


def test_few_passages_are_not_modelled():
    cells, _ = simulated((0.5, 0.4, 0.3), seed=2)
    few = np.zeros((3, 8))
    few[:, 1:] = 1
    assert log_linear(few) is None
    assert log_linear(cells) is not None


def test_lists_that_complement_each_other_show_the_sign_and_no_bound():
    # each passage is of words or of meaning: the two lists hold them by turns, a third one either
    drawn = np.random.default_rng(7)
    query = np.repeat(np.arange(QUERIES), 12)
    words = drawn.random(len(query)) < 0.5
    chances = np.stack([np.where(words, 0.8, 0.3), np.where(words, 0.3, 0.8), np.full(words.shape, 0.5)], 1)
    held = drawn.random(chances.shape) < chances
    some = held.any(axis=1)
    cells = histories(held[some], query[some], QUERIES)
    first = dependences(cells)[0]
    assert (first.pair, first.sign) == ((0, 1), -1)
    assert chao(of_lists(cells, (0, 1))).low > len(query), "no bound from below"
    model = log_linear(cells)
    assert model.low <= len(query) <= model.high


def test_dependent_captures_are_seen_and_modelled():
    cells, total = simulated((0.4, 0.3, 0.5), easy=0.3)
    model = log_linear(cells)
    assert chapman(of_lists(cells, (0, 1))).value < 0.8 * total
    assert model.value == pytest.approx(total, rel=0.05)
    assert model.low <= total <= model.high
    assert {each.pair: each.sign for each in dependences(cells)} == {(0, 1): 1, (0, 2): 0, (1, 2): 0}
    (two,) = dependences(of_lists(cells, (0, 1)))
    assert np.isnan(two.odds), "two lists alone cannot tell"


def test_growth_is_carried_on_to_where_it_ends():
    # a passage is found by depth k with chance k / (k + 20)
    chance = np.random.default_rng(3).random((200, 40))
    rank = 20 * chance / (1 - chance)
    found = (rank[..., None] <= np.arange(1, 51)).sum(axis=1)
    assert extrapolated(found.astype(float)).value == pytest.approx(8000, rel=0.05)


def test_nothing_found_is_nothing_estimated():
    cells = np.zeros((4, 8))
    for total in (chao(cells), chapman(of_lists(cells, (0, 1))), extrapolated(np.zeros((4, 5)))):
        assert (total.value, total.low, total.high) == (0, 0, 0)
    assert all(np.isnan(each.odds) for each in captures.dependences(cells))


CRANFIELD = {
    # depth: judged of BM25 and wordllama; Chapman, extrapolated of both; Chao, log-linear with letters too
    10: (245, 252, 372, 263, 602),
    50: (371, 374, 413, 381, 550),
}
"""Passages of grade 4 and 5; all queries together have 515. As docs/golden-sets.md says."""


@pytest.mark.slow
@pytest.mark.skipif(not cranfield.FOLDER.is_dir(), reason="the Cranfield collection is not there")
@pytest.mark.parametrize("depth", CRANFIELD)
def test_on_cranfield_bounds_lie_below_and_the_models_hold_it(depth):
    texts, asked = cranfield_texts()
    good = {
        query: {passage for passage, grade in of.items() if grade >= 4}
        for query, of in cranfield.judged().items()
    }
    lists = [each(texts, asked, depth) for each in (by_bm25, by_wordllama, by_letters)]
    rows = [
        (number, [passage in held[number] for held in lists])
        for number, query in enumerate(asked)
        for passage in good.get(query, ())
    ]
    query, held = np.array([number for number, _ in rows]), np.array([some for _, some in rows])
    cells, two = (
        histories(held[:, :n][(some := held[:, :n].any(axis=1))], query[some], len(asked)) for n in (3, 2)
    )
    first = [
        [len(good.get(name, set()) & {*lists[0][at][:k], *lists[1][at][:k]}) for k in range(1, depth + 1)]
        for at, name in enumerate(asked)
    ]
    model = log_linear(cells)
    growth = extrapolated(np.array(first, dtype=float))
    made = [two.sum(), *(each.value for each in (chapman(two), growth, chao(cells), model))]
    assert np.round(made).tolist() == list(CRANFIELD[depth])
    assert sum(map(len, good.values())) == 515 > max(made[:-1])
    assert model.low <= 515 <= model.high
    assert all(each.sign == 1 for each in dependences(cells))


def cranfield_texts():
    passages, queries = (cranfield.table(name) for name in ("passages", "queries"))
    whole = [f"{title or ''} {text}".strip() for title, text in passages.select("title", "text").iter_rows()]
    texts = dict(zip(passages["passage_id"], whole, strict=True))
    return texts, dict(queries.select("query_id", "text").iter_rows())


def by_bm25(texts, asked, depth):
    ids = list(texts)
    hits = make_bm25(list(texts.values())).search_batch(list(asked.values()), depth)
    return [[ids[place] for place in of.passages] for of in hits]


def by_wordllama(texts, asked, depth):
    encoder = make_embedder("wordllama", 256)
    encoded = [encoder.encode(list(of.values()), "query") for of in (asked, texts)]
    return nearest(np.nan_to_num(encoded[0]) @ np.nan_to_num(encoded[1]).T, list(texts), depth)


def by_letters(texts, asked, depth):
    """TF-IDF of character 3- and 4-grams: another kind of retriever."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    made = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4))
    passages = made.fit_transform(texts.values())
    return nearest((made.transform(asked.values()) @ passages.T).toarray(), list(texts), depth)


def nearest(scores, ids, depth):
    return [[ids[place] for place in np.argsort(-row, kind="stable")[:depth]] for row in scores]
