import polars as pl
import pytest

from core.importers.runs import slug
from tests.importers.helpers import lost, read, refusal, rows, up

PAGE = """# Regressions

**Models**: bag of words

| Setting | Value |
|---------|-------|
| k1      | 0.9   |

With the above commands:

| **AP@1000**                                      | **BM25 (default)**| **+RM3**  |
|:-------------------------------------------------|-----------|-----------|
| [MS MARCO: Dev](https://github.com/x/MSMARCO)    | 0.1926    | 0.1958    |
| [DL19](https://trec.nist.gov/data/deep2019.html) | 0.3013    | -         |
| **nDCG@10**                                      | **BM25 (default)**| **+RM3**  |
| [DL19](https://trec.nist.gov/data/deep2019.html) | 0.5058    | 0.5156    |

See also [this page](x.md) | not a row
"""


def test_a_page_is_a_run_for_each_system_and_collection():
    made = read(up("regressions.md", PAGE))
    assert made.detected[0].format == "regressions"
    named = {run.run_id: (run.collection_id, run.label) for run in made.runs}
    found = {
        (*named[row["run_id"]], row["measure"], row["k"]): row["value"]
        for row in rows(made, "aggregates").iter_rows(named=True)
    }
    assert found == {
        (slug("MS MARCO: Dev"), "BM25 (default)", "AP", 1000): 0.1926,
        (slug("MS MARCO: Dev"), "+RM3", "AP", 1000): 0.1958,
        ("DL19", "BM25 (default)", "AP", 1000): 0.3013,
        ("DL19", "BM25 (default)", "nDCG", 10): 0.5058,
        ("DL19", "+RM3", "nDCG", 10): 0.5156,
    }
    assert [(each.count, each.reason) for each in lost(made)] == [(1, "empty cells: missing, not 0")]
    modes = {run.label: run.stack.spec.get("mode") for run in made.runs}
    assert modes == {"BM25 (default)": "sparse", "+RM3": None}
    assert rows(made, "aggregates").select(pl.col("n").null_count()).item() == 5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("| 0.5156 ", "| high ", "regressions.md:16, column `+RM3`: 'high' is not a number"),
        ("**nDCG@10**", "**AP@1000**", "regressions.md:16: AP@1000 of 'BM25 (default)' stands twice"),
        ("@", " at ", "no table of measures"),
    ],
)
def test_refused(old, new, message):
    assert message in refusal(up("regressions.md", PAGE.replace(old, new)), format="regressions")


def test_rows_of_words_within_a_table_of_measures_and_those_below_are_counted():
    words = PAGE.replace("| **nDCG@10** ", "| odd | odd | odd |\n| DL20 | 0.1 | 0.2 |\n| **nDCG@10** ")
    made = read(up("regressions.md", words))
    assert rows(made, "aggregates").height == 5
    assert ("rows of a table that stand below no measure", 2, "regressions.md:15") in [
        (each.reason, each.count, each.first) for each in lost(made)
    ]


CLASSIC = {
    "without bars around": (
        "MAP | BM25 | +RM3 | QL | +RM3 |\n:--|--|--|--|--|\n[Core](t.txt)| 0.25 | 0.29 | 0.24 | 0.27 |\n\n"
        "NDCG@20 | BM25 | +RM3 | QL | +RM3 |\n:--|--|--|--|--|\n[Core](t.txt)| 0.31 | 0.33 | 0.30 | 0.32 |\n",
        {("AP", None): [0.25, 0.29, 0.24, 0.27], ("nDCG", 20): [0.31, 0.33, 0.30, 0.32]},
    ),
    "a bar before": (
        "|**AP@1000** | BM25 | +RM3 | QL | +RM3 |\n|:--|--|--|--|--|\n|[Core](t)| .25 | .29 | .24 | .27 |\n",
        {("AP", 1000): [0.25, 0.29, 0.24, 0.27]},
    ),
    "a head within": (
        "| **MAP** | **BM25** | **+RM3** | **QL** | **+RM3** |\n|:--|--|--|--|--|\n"
        "| [Core](t) | 0.20 | 0.27 | 0.20 | 0.25 |\n| **P30** | **BM25** | **+RM3** | **QL** | **+RM3** |\n"
        "| [Core](t) | 0.42 | 0.49 | 0.44 | 0.47 |\n",
        {("AP", None): [0.20, 0.27, 0.20, 0.25], ("P", 30): [0.42, 0.49, 0.44, 0.47]},
    ),
}


@pytest.mark.parametrize(("page", "expected"), CLASSIC.values(), ids=CLASSIC.keys())
def test_columns_that_stand_twice_are_named_with_the_one_before(page, expected):
    made = read(up("t37.md", f"## Effectiveness\n\n{page}"))
    assert made.detected[0].format == "regressions"
    labels = {run.run_id: run.label for run in made.runs}
    assert list(labels.values()) == ["BM25", "BM25 +RM3", "QL", "QL +RM3"]
    found: dict[tuple[str, int | None], dict[str, float]] = {}
    for row in rows(made, "aggregates").iter_rows(named=True):
        found.setdefault((row["measure"], row["k"]), {})[labels[row["run_id"]]] = row["value"]
    assert {key: list(values.values()) for key, values in found.items()} == expected


RESULTS = """# My results

Text | with a bar

## Quality

| Stack | nDCG@10 | Recall@100 |
|-------|--------:|-----------:|
| [A](x) | **0.51** | 0.80 |
| `B` | 0.48 | 0.79 |

## Latency

Stack | p50 (ms)
---|---
A | 12
B | 9

```
| Stack | nDCG@10 |
|---|---|
| C | 0.9 |
```

| who | likes |
|---|---|
| me | tea |
"""


def test_tables_of_any_page_are_tables_and_those_of_the_same_stacks_are_one():
    made = read(up("page.md", RESULTS))
    labels = {run.run_id: (run.collection_id, run.label) for run in made.runs}
    found = [
        (*labels[row["run_id"]], row["measure"], row["k"], row["value"])
        for row in rows(made, "aggregates").iter_rows(named=True)
    ]
    assert found == [
        ("page", "A", "nDCG", 10, 0.51), ("page", "B", "nDCG", 10, 0.48),
        ("page", "A", "Recall", 100, 0.8), ("page", "B", "Recall", 100, 0.79),
        ("page", "A", "latency_p50", None, 12.0), ("page", "B", "latency_p50", None, 9.0),
    ]  # fmt: skip
    assert [(each.count, each.first) for each in made.left_out] == [(1, "page.md/table 2 (line 25) Latency")]


def test_a_table_alone_needs_no_name_and_other_pages_are_of_no_format_known():
    table = "| system | MRR@10 |\n|---|---|\n| a \\| b | 0.25 |\n"
    made = read(up("pasted.txt", table))
    assert [run.label for run in made.runs] == ["a | b"]
    assert rows(made, "aggregates")["value"].to_list() == [0.25]
    assert "no format known" in refusal(up("README.md", "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"))


OFFERS = {
    "regressions": ("regressions", PAGE.encode()),
}
