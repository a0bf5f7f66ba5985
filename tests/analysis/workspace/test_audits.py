import pytest

from core.analysis.workspace.query_sets import judged_everywhere
from core.analysis.workspace.resolve import golden_set_of
from core.analysis.workspace.scope import audits
from core.errors import InputError
from core.pipeline import demo
from core.records import Batch, Collection, GoldenSet
from core.store import Store
from core.tables import frame


@pytest.mark.parametrize(
    ("sets", "audited", "default"),
    [
        ({"whole": "abcd"}, {}, "whole"),
        ({"whole": "abcd", "second": "ab"}, {"second": "whole"}, "whole"),
        ({"first": "ab", "grown": "abc", "third": "b"}, {"first": "grown", "third": "grown"}, "grown"),
        ({"one": "abc", "other": "bcd"}, {}, None),
        ({"one": "ab", "other": "ab"}, {}, None),
        ({"whole": "abcd", "beside": "ax"}, {}, None),
    ],
    ids=["one", "sample", "grown", "overlap", "equal", "beside"],
)
def test_a_set_within_a_larger_one_is_an_audit_and_never_the_default(tmp_path, sets, audited, default):
    store = Store(tmp_path / "store")
    rows = [
        {
            "golden_set_id": name,
            "query_id": passage,
            "passage_id": passage,
            "grade": 3,
            "raw": 3,
            "judge": "j",
        }
        for name, passages in sets.items()
        for passage in passages
    ]
    golden = tuple(GoldenSet(golden_set_id=name, collection_id="c", name=name) for name in sets)
    batch = Batch(
        collections=(Collection(collection_id="c", name="c"),),
        golden_sets=golden,
        frames={"judgements": frame("judgements", rows)},
    )
    with store.write("test") as writer:
        writer.add(batch)
    snapshot = store.read()

    assert audits(snapshot, "c") == audited
    if default is None:
        with pytest.raises(InputError):
            golden_set_of(snapshot, "c", None)
    else:
        assert golden_set_of(snapshot, "c", None) == default
        assert judged_everywhere(snapshot, "c") == set(sets[default])


def test_the_second_judge_of_the_demo_read_at_least_200_of_the_first_judges_passages():
    first, second = demo.judgements(), demo.judgements(second=True)
    both = second.join(first, on=["query_id", "passage_id"], how="inner")
    assert both.height == second.height >= 200
    assert second.unique(["query_id", "passage_id"]).height == second.height
    assert both.group_by("grade_right").len()["len"].min() >= 20
    assert (both["grade"] != both["grade_right"]).any()
