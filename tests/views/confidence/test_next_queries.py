import polars as pl
import pytest

from core.views.confidence.next_queries import tag_rows, tag_words


def table(**groups):
    """tag → differences; every query also has a tag that parts nothing."""
    rows = [
        {"query_id": f"{tag}-{i}", "tags": [tag.replace("_", "="), "all=yes"], "delta": delta, "judged": 1}
        for tag, deltas in groups.items()
        for i, delta in enumerate(deltas)
    ]
    return pl.DataFrame(rows, schema_overrides={"delta": pl.Float64})


def test_shares_follow_size_times_spread():
    made = table(kind_calm=[0.0, 0.1] * 10, kind_wild=[-0.4, 0.4] * 5)
    rows = tag_rows(made)
    assert rows["tag"].to_list() == ["kind=wild", "kind=calm"]
    wild, calm = rows.iter_rows(named=True)
    assert (wild["n"], calm["n"]) == (10, 20)
    assert wild["share"] == pytest.approx(1 / 3)
    ratio = 10 * wild["spread"] / (20 * calm["spread"])
    assert wild["best"] / calm["best"] == pytest.approx(ratio)
    assert wild["best"] + calm["best"] == pytest.approx(1.0)
    said = tag_words(rows, made, "a", "b")
    assert "kind=wild" in said
    assert "instead of 33.3 %" in said


def test_tags_that_are_rare_alone_or_without_key():
    assert tag_rows(table(kind_one=[0.1, 0.2] * 3)).is_empty()  # parts nothing
    assert tag_rows(table(kind_one=[0.1, 0.2] * 3, kind_two=[0.1] * 4)).is_empty()  # too rare
    assert set(tag_rows(table(one=[0.1, 0.2] * 3, two=[0.1, 0.3] * 3))["tag"]) == {"one", "two"}


def test_nothing_stands_out():
    same = table(kind_one=[0.1, 0.2] * 5, kind_two=[0.1, 0.2] * 5)
    assert "no tag stands out" in tag_words(tag_rows(same), same, "a", "b")
    still = table(kind_one=[0.1] * 5, kind_two=[0.1] * 5)
    assert "no tag stands out" in tag_words(tag_rows(still), still, "a", "b")
    unknown = same.with_columns(pl.lit(None, pl.Float64).alias("delta"), pl.lit(0).alias("judged"))
    assert tag_words(tag_rows(unknown), unknown, "a", "b").startswith("20 stored queries without judgements")
