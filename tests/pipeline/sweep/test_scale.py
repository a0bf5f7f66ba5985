"""What indexes of many passages are foreseen to take."""

from __future__ import annotations

import pytest

from core.errors import InputError
from core.pipeline.index import INDEX_NAMES, INDEXES, expected_bytes
from core.pipeline.index.kinds import Training
from core.pipeline.sweep.scale import at_scale, build_seconds
from core.prices import PriceBook, load_books

BOOK = load_books()["list"]
SPECS = [
    {"mode": "dense", "index": "hnsw-f32", "index_params": {"M": 16}, "dim": 64},
    {"mode": "hybrid", "index": "flat", "dim": 64},
    {"mode": "sparse"},
]


def test_every_kind_is_foreseen_the_sweeps_own_first():
    sizes = at_scale(SPECS, 10_000_000, BOOK)
    assert [(each.index, each.asked) for each in sizes[:2]] == [("hnsw-f32", True), ("flat", True)]
    assert {each.index for each in sizes} == set(INDEX_NAMES)
    assert sum(each.index == "flat" for each in sizes) == 1
    flat = sizes[1]
    assert flat.memory_bytes == pytest.approx(10_000_000 * 64 * 4, rel=0.001)
    assert flat.disk_bytes == pytest.approx(2 * 10_000_000 * 64 * 4, rel=0.001)
    gib = 10_000_000 * 64 * 4 / 2**30
    assert flat.usd_per_month == pytest.approx(gib * 3.24485 + 2 * gib * 0.08, rel=0.001)


@pytest.mark.parametrize("name", INDEX_NAMES)
def test_time_grows_at_least_with_the_passages_but_for_what_is_learnt_from_a_sample(name: str):
    learnt = build_seconds(name, dim=64, passages=0)
    assert (learnt > 0) == (name in INDEXES and INDEXES[name].training is Training.SAMPLE)
    one, two = (build_seconds(name, dim=64, passages=n) - learnt for n in (1_000_000, 2_000_000))
    assert 2 <= two / one * (1 + 1e-9) < 2.3


@pytest.mark.parametrize(
    ("name", "options", "passages", "seconds"),
    [
        ("hnsw-f32", {"M": 16, "efConstruction": 64}, 100_000, 14.9),
        ("hnsw-f32", {"M": 16, "efConstruction": 64}, 2_000_000, 527.5),
        ("hnsw-f32", {"M": 16, "efConstruction": 64}, 1_000_000, 239.9),
        ("hnsw-int8", {"M": 16, "efConstruction": 64}, 100_000, 11.5),
        ("pgvector", {"m": 16, "ef_construction": 64}, 1_000_000, 724.4),
        ("lancedb", {"method": "ivf_pq", "partitions": 1000, "parts": 16}, 100_000, 29.9),
        ("lancedb", {"method": "ivf_pq", "partitions": 1000, "parts": 16}, 1_000_000, 46.7),
        ("lancedb", {"method": "ivf_pq", "partitions": 1000, "parts": 16}, 2_000_000, 59.2),
        ("lancedb", {"m": 16, "ef_construction": 64}, 100_000, 21.9),
        ("lancedb", {"m": 16, "ef_construction": 64}, 1_000_000, 382.6),
        ("pq", {}, 1_000_000, 5.3),
        ("opq", {}, 1_000_000, 16.9),
        ("ivf-flat", {}, 100_000, 0.15),
        ("ivf-flat", {}, 1_000_000, 0.57),
        ("ivf-flat", {"lists": 1000}, 100_000, 1.86),
        ("ivf-flat", {"lists": 1000}, 1_000_000, 4.57),
        ("ivf-pq", {"m": 16}, 1_000_000, 4.87),
        ("ivf-pq", {"lists": 1000, "m": 16}, 1_000_000, 8.71),
    ],
)
def test_an_index_takes_the_time_that_was_measured_here(
    name: str, options: dict[str, object], passages: int, seconds: float
):
    foreseen = build_seconds(name, dim=64, passages=passages, options=options)
    assert foreseen == pytest.approx(seconds, rel=0.12 if name == "lancedb" else 0.05)


@pytest.mark.parametrize(
    ("name", "options", "passages", "size"),
    [
        ("hnsw-f32", {"M": 16}, 2_000_000, 800_553_914),
        ("hnsw-int8", {"M": 16}, 100_000, 20_833_822),
        ("pgvector", {"url_env": "URL", "m": 16}, 1_000_000, 896_335_872),
        ("lancedb", {"method": "ivf_pq", "partitions": 1000, "parts": 16}, 1_000_000, 277_711_238),
        ("lancedb", {"method": "ivf_pq", "partitions": 1000, "parts": 16}, 2_000_000, 559_090_538),
        ("lancedb", {"m": 16}, 1_000_000, 498_322_672),
        ("pq", {}, 1_000_000, 16_065_622),
        ("opq", {}, 1_000_000, 16_082_077),
        ("ivf-flat", {"lists": 1000}, 1_000_000, 264_264_139),
        ("ivf-pq", {"lists": 1000, "m": 16}, 1_000_000, 24_329_716),
    ],
)
def test_an_index_takes_the_bytes_that_were_measured_here(
    name: str, options: dict[str, object], passages: int, size: int
):
    assert expected_bytes(name, dim=64, passages=passages, options=options) == pytest.approx(size, rel=0.05)


@pytest.mark.parametrize(
    ("name", "options", "factor"),
    [
        ("hnsw-f32", {"efConstruction": 100}, 0.5),
        ("pgvector", {"ef_construction": 128}, 2.0),
        ("pgvector", {"table": "chunks"}, 0.0),
    ],
)
def test_options_change_the_time(name: str, options: dict[str, object], factor: float):
    usual = build_seconds(name, dim=64, passages=50_000)
    assert build_seconds(name, dim=64, passages=50_000, options=options) == pytest.approx(factor * usual)


def test_dollars_are_unknown_without_prices_and_no_passages_are_refused():
    assert {each.usd_per_month for each in at_scale(SPECS, 1000, PriceBook("none", ()))} == {None}
    with pytest.raises(InputError):
        at_scale(SPECS, 0, BOOK)
