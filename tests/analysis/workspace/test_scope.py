import pytest

from core.analysis.workspace.scope import Latency, Quality
from core.metrics import Measure


@pytest.mark.parametrize(
    ("bare", "k", "name"),
    [("RA-nWG", 10, "RA-nWG@10"), ("N-Recall4+", 1, "N-Recall4+@1"),
     ("RA-nWG(alpha=0.5)", 5, "RA-nWG@5(alpha=0.5)"), ("GMAP", 10, "GMAP@10"),
     ("my [odd] (measure)!", 3, "my [odd] (measure)!@3"), ("", 2, "@2")],
)  # fmt: skip
def test_a_quality_has_a_name_with_its_cutoff(bare: str, k: int, name: str):
    assert Quality(bare, k).name == name


@pytest.mark.parametrize("bare", ["GMAP", "", "[x](javascript:alert(1))", "RA-nWG(alpha=", "RA-nWG(beta=1)"])
def test_what_is_not_computed_here_has_no_measure_and_no_ceiling(bare: str):
    assert Quality(bare, 10).measure is None
    assert Quality(bare, 10).ceiling is None


def test_a_ceiling_keeps_cutoff_and_parameters():
    quality = Quality("RA-nWG(alpha=0.5)", 7)
    assert quality.ceiling == Measure.parse("PROC[RA-nWG]@7(alpha=0.5)")
    assert Quality("Harm", 7).ceiling is None


@pytest.mark.parametrize(
    ("latency", "name"),
    [(Latency(), "Retrieval latency p50 (ms)"), (Latency("p95", "rerank"), "Reranker latency p95 (ms)")],
)
def test_a_latency_says_what_the_axis_shows(latency: Latency, name: str):
    assert latency.name == name


def test_a_latency_says_that_answering_is_in_it():
    assert Latency(answering=True).name == "Latency p50, answering included (ms)"
    assert Latency("p95", "end-to-end", answering=True).name == "End-to-end latency p95 (ms)"
