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


def test_another_page_is_of_no_format_known():
    assert "no format known" in refusal(up("README.md", "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"))


OFFERS = {
    "regressions": ("regressions", PAGE.encode()),
}
