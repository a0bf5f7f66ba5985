"""The section *filters*: its bins add up to the whole, and what it says is what the rows hold."""

from __future__ import annotations

import polars as pl
import pytest

from core.analysis import filtered
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.filters import decade
from core.golden.book import Item
from core.prices import PriceBook
from core.views.ask import Given
from core.views.blocks import Answer, Table, Text
from core.views.compare.sections import stacks as compare
from core.views.golden.judging import cards
from core.views.latency.filters import filters
from core.views.queries.one_query import one_query
from core.views.queries.words import card
from tests.analysis.workspace.test_filters import ASKER, CLEAN, QUERIES, TENANT, stored


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    leaky = {**CLEAN, "q3": ["p00", *CLEAN["q3"]], "q5": [*CLEAN["q5"][:2], "p02", "p03"]}
    meta = TENANT | {f"x{n}": "a" for n in range(400)}
    snapshot = stored(
        tmp_path_factory.mktemp("filters") / "store", {"leaky": leaky, "clean": CLEAN}, metadata=meta
    )
    return resolve(Question(collection="corpus", measure="RA-nWG@5"), snapshot, PriceBook("none", ()))


def test_bins_add_up_to_the_whole(view):
    rows = filtered.questions(view, ["leaky", "clean"])
    assert rows.height == 2 * len(QUERIES)
    shares = {"a": 410 / 440, "b": 10 / 440, "c": 10 / 440, "d": 10 / 440}
    for query, share, of_bin in rows.select("query_id", "selectivity", "bin").iter_rows():
        assert share == pytest.approx(shares[ASKER[query]])
        assert of_bin == decade(share)
    bins = filtered.by_selectivity(view, rows)
    for name in ("leaky", "clean"):
        own = bins.filter(pl.col("name") == name)
        parts, every = (
            own.filter(pl.col("bin") != filtered.ALL),
            own.filter(bin=filtered.ALL).row(0, named=True),
        )
        assert parts["bin"].to_list() == ["1–10 %", "10–100 %"]
        for count, mean in (("n", "quality"), ("leak_n", "leak"), ("short_n", "short")):
            assert parts[count].sum() == every[count]
            assert (parts[count] * parts[mean]).sum() == pytest.approx(every[count] * every[mean])
        assert parts["questions"].sum() == every["questions"] == len(QUERIES)
        assert every["quality"] == pytest.approx(view.table.filter(pl.col("name") == name)["quality"][0])
    tenants = filtered.by_tenant(view, rows, view.snapshot.access("corpus"), "tenant")
    assert tenants.filter(name="leaky")["tenant"].to_list() == ["a", "b", "c", "d"]
    assert tenants.filter(name="leaky")["passages"].to_list() == [410, 10, 10, 10]
    assert tenants.filter(name="leaky")["questions"].sum() == len(QUERIES)


def test_the_section_says_what_leaks(view):
    blocks = list(filters.draw(view, Given({"lats": ["leaky", "clean"]})))
    said = next(block for block in blocks if isinstance(block, Answer))
    assert said.sentence == "clean shows nothing forbidden: Leak@5 0.000 [0.000, 0.242], n = 12."
    assert said.details.endswith("Leak@5 of others: leaky 0.167.")
    assert "judged passages outside" in said.caveats["judgements set aside"]
    forbidden = next(block for block in blocks if isinstance(block, Table) and block.name == "forbidden")
    assert forbidden.rows.select("name", "query_id", "rank", "passage_id").rows() == [
        ("leaky", "q3", 1, "p00"), ("leaky", "q5", 3, "p02"), ("leaky", "q5", 4, "p03"),
    ]  # fmt: skip
    assert "3 forbidden passages within the first 5" in [
        each.words for each in blocks if isinstance(each, Text)
    ]


def test_one_query_shows_the_filter_and_marks_what_it_forbids(view):
    found = one_query(view.snapshot, view.scope, view.quality, "q5", {"leaky": "leaky"})
    (side,) = found.sides
    assert found.filter == '{"tenant":"b"}'
    marked = side.ranking.filter(pl.col("outside").is_not_null()).select("passage_id", "outside").rows()
    assert marked == [("p02", "forbidden by the asker's filter"), ("p03", "forbidden by the asker's filter")]
    assert card(side.ranking.with_columns(source=pl.lit("")).row(2, named=True), against=False).startswith(
        "forbidden"
    )
    assert set(side.judged.passages["passage_id"]) <= {
        name for name, tenant in TENANT.items() if tenant == "b"
    }


def test_compare_shows_the_filter_and_counts_what_it_forbids(view):
    blocks = list(compare.draw(view, Given({"stack": ["leaky"], "vs": ["clean"]})))
    table = next(block for block in blocks if isinstance(block, Table) and block.name == "flips")
    rows = {row["query_id"]: row for row in table.rows.iter_rows(named=True)}
    assert {query: row["filter"] for query, row in rows.items()} == {
        query: f'{{"tenant":"{tenant}"}}' for query, tenant in ASKER.items()
    }
    shown = {query: (row["leaked"], row["leaked_other"]) for query, row in rows.items()}
    assert {query: of for query, of in shown.items() if any(of)} == {"q3": (1, 0), "q5": (2, 0)}


def test_cards_say_what_the_asker_may_see(view):
    item = Item(place=0, query_id="q5", passage_id="p01")
    assert [each.asker for each in cards(view.snapshot, "corpus", [item])] == ['{"tenant":"b"}']
