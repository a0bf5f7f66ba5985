"""What names of columns say, in seven languages; and what looks like a latency or a measure and is none."""

from __future__ import annotations

import pytest

from core.importers.naming import named, priced_otherwise, role_of

FIGURES = {
    "Latenz p50 (ms)": ("latency_p50", 1.0),
    "Latenz 95. Perzentil (ms)": ("latency_p95", 1.0),
    "95e percentile latence (ms)": ("latency_p95", 1.0),
    "percentil 95 latencia (s)": ("latency_p95", 1000.0),
    "durée moyenne (ms)": ("latency_mean", 1.0),
    "latenza media (s)": ("latency_mean", 1000.0),
    "gemiddelde latentie (ms)": ("latency_mean", 1.0),
    "latência mediana (µs)": ("latency_p50", 0.001),
    "tiempo de respuesta (ms)": ("ms", 1.0),
    "Antwortzeit in Millisekunden": ("ms", 1.0),
    "time/query (s)": ("ms", 1000.0),
    "p95": ("latency_p95", 1.0),
    "coût par 1 000 requêtes ($)": ("usd_per_1k", 1.0),
    "Preis je Anfrage (US-Dollar)": ("usd_per_1k", 1000.0),
    "prijs per 1.000 vragen (USD)": ("usd_per_1k", 1.0),
    "Präzision@5": ("Precision", 1.0),
    "rappel@10 (%)": ("Recall", 0.01),
    "calidad": ("quality", 1.0),
    "P@50": ("P", 1.0),
    "Δ nDCG@10": ("Δ nDCG", 1.0),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure(name):
    value = named(name, name)
    assert value
    assert (value.measure, value.factor) == FIGURES[name]


@pytest.mark.parametrize(
    "name",
    [
        "requests/s", "Durchsatz (Anfragen/s)", "requêtes par seconde", "consultas por segundo", "tokens/s",
        "écart-type latence (ms)", "Standardabweichung (ms)", "latencia máxima (ms)", "Latenz P90 (ms)",
        "temps d'indexation (s)", "Indexierungszeit (s)", "Kosten pro Monat ($)", "coût (€) par requête",
    ],
)  # fmt: skip
def test_no_figure_of_a_query(name):
    assert named(name, name) is None


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Système", "run"), ("configuración", "run"), ("zoekvraag", "query_id"), ("Métrica", "measure"),
        ("Maß", "measure"), ("Wert", "value"), ("nombre de requêtes", "n"), ("Anzahl Anfragen", "n"),
    ],
)  # fmt: skip
def test_a_role(name, role):
    assert role_of(name) == role


def test_another_currency():
    assert priced_otherwise("coût (€) par requête")
    assert not priced_otherwise("coût ($) par requête")
