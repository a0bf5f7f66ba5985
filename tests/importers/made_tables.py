"""Random tables of results as people write them, with the values that made them; of common sense alone.

Nothing here knows how tables are read: shapes, words of seven languages, ways to write numbers, missing
cells, types, encodings and files are drawn by a number, and the truth is kept beside them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from tests.importers.formats.test_excel import book

Key = tuple[str, str | None, str]
"""Stack, query (None: of all), figure."""
Cell = str | float | int | None


@dataclass(frozen=True)
class Language:
    """The words of a language for the columns of results."""

    stack: Sequence[str]
    query: Sequence[str]
    measure: Sequence[str]
    value: Sequence[str]
    n: Sequence[str]
    latency: dict[str, Sequence[str]]  # statistic → names, with {} for the unit
    per_query: Sequence[str]  # prices, with {} for the currency
    per_1k: Sequence[str]
    shares: dict[str, Sequence[str]]  # measure → names, with {} for the cutoff
    other: Sequence[str]  # columns that are no figure of a stack or of another one
    comma: bool = True  # whether decimals follow a comma


LANGUAGES = {
    "English": Language(
        ("stack", "system", "model", "retriever", "method", "configuration"),
        ("query_id", "query", "qid"),
        ("metric", "measure"),
        ("value",),
        ("n_queries", "number of queries", "queries"),
        {
            "p50": ("latency p50 ({})", "median latency ({})", "latency_p50_{}"),
            "mean": ("mean latency ({})", "avg_latency_{}", "average response time ({})"),
            "p95": ("latency p95 ({})", "p95_{}"),
            "one": ("latency ({})", "latency_{}", "response time ({})"),
        },
        ("cost per query ({})", "price per query ({})"),
        ("cost per 1000 queries ({})", "price per 1k queries ({})"),
        {
            "nDCG": ("nDCG@{}", "ndcg_at_{}", "NDCG@{}"),
            "Recall": ("Recall@{}", "recall_{}", "R@{}"),
            "RR": ("MRR@{}", "mrr@{}"),
            "P": ("P@{}", "precision@{}"),
            "AP": ("MAP@{}",),
        },
        ("notes", "latency std ({})", "date"),
        comma=False,
    ),
    "German": Language(
        ("System", "Verfahren", "Modell", "Methode", "Konfiguration"),
        ("Anfrage", "Frage", "Suchanfrage"),
        ("Metrik", "Maß", "Kennzahl"),
        ("Wert",),
        ("Anzahl Anfragen", "Anfragen", "Anzahl Fragen"),
        {
            "p50": ("Latenz p50 ({})", "Median-Latenz ({})", "Latenz Median ({})"),
            "mean": ("mittlere Latenz ({})", "Latenz Mittelwert ({})", "durchschnittliche Dauer ({})"),
            "p95": ("Latenz p95 ({})", "p95 Latenz ({})"),
            "one": ("Latenz ({})", "Antwortzeit ({})", "Dauer ({})"),
        },
        ("Kosten pro Anfrage ({})", "Preis je Anfrage ({})"),
        ("Kosten pro 1000 Anfragen ({})", "Preis je 1.000 Anfragen ({})"),
        {
            "nDCG": ("nDCG@{}",),
            "Recall": ("Recall@{}",),
            "RR": ("MRR@{}",),
            "P": ("Präzision@{}", "Precision@{}"),
        },
        ("Bemerkung", "Standardabweichung Latenz ({})", "Datum"),
    ),
    "French": Language(
        ("système", "modèle", "méthode", "configuration"),
        ("requête", "question"),
        ("métrique", "mesure"),
        ("valeur",),
        ("nombre de requêtes", "requêtes", "nb requêtes"),
        {
            "p50": ("latence p50 ({})", "latence médiane ({})"),
            "mean": ("durée moyenne ({})", "latence moyenne ({})"),
            "p95": ("latence p95 ({})",),
            "one": ("latence ({})", "temps de réponse ({})", "durée ({})"),
        },
        ("coût par requête ({})", "prix par requête ({})"),
        ("coût par 1000 requêtes ({})", "prix pour 1000 requêtes ({})", "coût pour 1 000 requêtes ({})"),
        {
            "nDCG": ("nDCG@{}",),
            "Recall": ("rappel@{}", "Rappel@{}"),
            "RR": ("MRR@{}",),
            "P": ("précision@{}",),
        },
        ("remarques", "écart-type latence ({})", "date"),
    ),
    "Spanish": Language(
        ("sistema", "modelo", "método", "configuración"),
        ("consulta", "pregunta"),
        ("métrica", "medida"),
        ("valor",),
        ("número de consultas", "consultas"),
        {
            "p50": ("latencia p50 ({})", "latencia mediana ({})"),
            "mean": ("latencia media ({})", "duración media ({})"),
            "p95": ("latencia p95 ({})",),
            "one": ("latencia ({})", "tiempo de respuesta ({})", "duración ({})"),
        },
        ("costo por consulta ({})", "coste por consulta ({})", "precio por consulta ({})"),
        ("costo por 1000 consultas ({})", "coste por 1.000 consultas ({})"),
        {
            "nDCG": ("nDCG@{}",),
            "Recall": ("exhaustividad@{}", "recall@{}"),
            "RR": ("MRR@{}",),
            "P": ("precisión@{}",),
        },
        ("observaciones", "desviación estándar latencia ({})", "fecha"),
    ),
    "Italian": Language(
        ("sistema", "modello", "metodo", "configurazione"),
        ("domanda", "interrogazione"),
        ("metrica", "misura"),
        ("valore",),
        ("numero di domande", "domande", "numero di query"),
        {
            "p50": ("latenza p50 ({})", "latenza mediana ({})"),
            "mean": ("latenza media ({})", "durata media ({})"),
            "p95": ("latenza p95 ({})",),
            "one": ("latenza ({})", "tempo di risposta ({})", "durata ({})"),
        },
        ("costo per domanda ({})", "prezzo per query ({})"),
        ("costo per 1000 query ({})", "prezzo per 1.000 domande ({})"),
        {
            "nDCG": ("nDCG@{}",),
            "Recall": ("richiamo@{}", "recall@{}"),
            "RR": ("MRR@{}",),
            "P": ("precisione@{}",),
        },
        ("note", "deviazione standard latenza ({})", "data"),
    ),
    "Portuguese": Language(
        ("sistema", "modelo", "método", "configuração"),
        ("consulta", "pergunta"),
        ("métrica", "medida"),
        ("valor",),
        ("número de consultas", "consultas"),
        {
            "p50": ("latência p50 ({})", "latência mediana ({})"),
            "mean": ("latência média ({})", "duração média ({})"),
            "p95": ("latência p95 ({})",),
            "one": ("latência ({})", "tempo de resposta ({})", "duração ({})"),
        },
        ("custo por consulta ({})", "preço por pergunta ({})"),
        ("custo por 1000 consultas ({})", "preço por 1.000 consultas ({})"),
        {
            "nDCG": ("nDCG@{}",),
            "Recall": ("revocação@{}", "recall@{}"),
            "RR": ("MRR@{}",),
            "P": ("precisão@{}",),
        },
        ("observações", "desvio padrão latência ({})", "data"),
    ),
    "Dutch": Language(
        ("systeem", "model", "methode", "configuratie"),
        ("zoekvraag", "vraag", "zoekopdracht"),
        ("metriek", "maat"),
        ("waarde",),
        ("aantal zoekvragen", "aantal vragen"),
        {
            "p50": ("latentie p50 ({})", "mediane latentie ({})"),
            "mean": ("gemiddelde latentie ({})", "gemiddelde duur ({})"),
            "p95": ("latentie p95 ({})",),
            "one": ("latentie ({})", "responstijd ({})", "duur ({})"),
        },
        ("kosten per zoekvraag ({})", "prijs per vraag ({})"),
        ("kosten per 1000 zoekvragen ({})", "prijs per 1.000 vragen ({})"),
        {
            "nDCG": ("nDCG@{}",),
            "Recall": ("recall@{}",),
            "RR": ("MRR@{}",),
            "P": ("precisie@{}", "precision@{}"),
        },
        ("opmerkingen", "standaardafwijking latentie ({})", "datum"),
    ),
}
MISSING = ("", "NaN", "n/a", "N/A", "–", "-", "NULL", "null", "None")
STACKS = (
    "bm25",
    "dense",
    "hybrid",
    "hybrid + rerank",
    "e5-large",
    "splade",
    "colbert",
    "König",
    "réordonné",
    "SPLADE++",
)
SHAPES = (
    "stacks",
    "queries",
    "long",
    "long by query",
    "transposed",
    "pivot",
    "two headers",
    "titled",
    "pandas",
)
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252")
FILES = ("csv", "csv", "csv", "excel", "jsonl", "json", "parquet")
UNITS = {"ms": 1.0, "s": 1000.0, "µs": 0.001}


@dataclass
class Figure:
    """A column of numbers: how it is called, what it is, and how its numbers are written."""

    name: str
    means: str  # "nDCG@10", "latency_p50", "usd_per_1k", "n"; "" = nothing that a stack has
    factor: float  # what makes the stored unit of a written number
    digits: int
    low: float
    high: float
    suffix: str = ""  # behind each number, as " ms"
    prefix: str = ""


@dataclass
class Made:
    """A table, and the values that made it."""

    number: int
    shape: str
    language: str
    style: str
    container: str
    name: str
    data: bytes
    figures: list[Figure] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)
    queries: list[str | None] = field(default_factory=list)
    truth: dict[Key, float | None] = field(default_factory=dict)
    comma: bool = False  # whether decimals follow a comma
    text: str = ""  # as it stands in the file, for messages


class Maker:
    """Draws one table after another."""

    def __init__(self, number: int, seed: str = "tables") -> None:
        self.number = number
        self.draw = random.Random(f"{seed} {number}")  # noqa: S311
        self.shape = self.draw.choice(SHAPES)
        self.language = self.draw.choice(list(LANGUAGES))
        self.words = LANGUAGES[self.language]
        comma = self.words.comma if self.draw.random() < 0.8 else not self.words.comma
        self.decimal = "," if comma else "."
        thousands = [" ", "\u00a0", "\u202f", "'", "." if comma else ",", ""]
        self.thousands = self.draw.choice(thousands) if self.draw.random() < 0.6 else ""
        self.style = self.draw.choice(
            ["plain", "plain", "percent", "scientific", "currency", "units", "numbers"]
        )
        self.missing = self.draw.choice(MISSING) if self.draw.random() < 0.4 else None

    def _share(self, k: int) -> Figure:
        measure = self.draw.choice(list(self.words.shares))
        name = self.draw.choice(self.words.shares[measure]).format(k)
        figure = Figure(name, f"{measure}@{k}", 1.0, self.draw.choice([2, 3, 4]), 0.05, 1.0)
        if self.style == "percent":
            figure.factor, figure.digits, figure.low, figure.high = 0.01, self.draw.choice([0, 1, 2]), 6, 100
            way = self.draw.choice(["sign", "blank", "head", "value"])
            figure.suffix = {"sign": "%", "blank": " %"}.get(way, "")
            figure.name += self.draw.choice([" (%)", " [%]", " %"]) if way == "head" else ""
        return figure

    def _latency(self, per_query: bool) -> Figure:
        statistic = "one" if per_query else self.draw.choice(["p50", "p50", "mean", "p95", "one"])
        unit = self.draw.choice(list(UNITS)) if self.draw.random() < 0.4 else "ms"
        means = "ms" if per_query else f"latency_{'p50' if statistic == 'one' else statistic}"
        head, suffix = self.draw.choice(self.words.latency[statistic]), ""
        if self.style == "units":
            suffix = self.draw.choice([" ", ""]) + unit
            head = head.replace(" ({})", "").replace("_{}", "")
        low, high, digits = {"ms": (3, 9000, 0), "s": (0.01, 12, 3), "µs": (900, 90_000, 0)}[unit]
        digits = self.draw.choice([digits, 0, 1, 2]) if unit == "ms" else digits
        return Figure(head.format(unit), means, UNITS[unit], digits, low, high, suffix)

    def _price(self) -> Figure:
        single = self.draw.random() < 0.4
        currency = self.draw.choice(["$", "USD", "US$"])
        head = self.draw.choice(self.words.per_query if single else self.words.per_1k)
        figure = Figure(
            head.format(currency),
            "usd_per_1k",
            1000.0 if single else 1.0,
            5 if single else 2,
            0.0001 if single else 0.05,
            0.02 if single else 40,
        )
        if self.draw.random() < 0.15:  # another currency is no dollar
            figure.name, figure.means = head.format(self.draw.choice(["€", "EUR"])), ""
        elif self.style == "currency":
            figure.prefix, figure.suffix = self.draw.choice(
                [("$", ""), ("", " $"), ("US$ ", ""), ("", " USD")]
            )
            figure.name = head.replace(" ({})", "")
        return figure

    def figures(self, per_query: bool) -> list[Figure]:
        """Draw the columns of numbers, each of another meaning."""
        made = [self._share(self.draw.choice([5, 10, 20, 100])) for _ in range(self.draw.randint(1, 3))]
        made += [self._latency(per_query) for _ in range(self.draw.randint(0, 2))]
        made += [self._price()] if self.draw.random() < 0.5 else []
        if not per_query and self.draw.random() < 0.3 and self.shape in ("stacks", "titled"):
            made.append(Figure(self.draw.choice(self.words.n), "n", 1.0, 0, 5, 4000))
        if self.draw.random() < 0.2 and self.shape in ("stacks", "queries"):
            name = self.words.other[1].format("ms")
            made.append(Figure(name, "", 1.0, 1, 1, 90))
        kept: dict[str, Figure] = {}
        for figure in made:
            if figure.name.lower() not in kept and (
                not figure.means or figure.means not in {f.means for f in kept.values()}
            ):
                kept[figure.name.lower()] = figure
        self.draw.shuffle(rest := list(kept.values()))
        return rest

    def written(self, figure: Figure, value: float) -> Cell:
        """Write a number of a column."""
        if self.style == "numbers":
            return int(value) if figure.digits == 0 else value
        if self.style == "scientific" and figure.means != "n":
            text = f"{value:.{figure.digits + 6}e}"
            return text.replace(".", self.decimal)
        whole, _, part = f"{value:.{figure.digits}f}".partition(".")
        if len(whole) > 3 and self.thousands:
            whole = f"{int(whole):,}".replace(",", self.thousands)
        return figure.prefix + whole + (self.decimal + part if part else "") + figure.suffix

    def made(self) -> Made:
        """Return the table in its file."""
        per_query = self.shape in ("queries", "long by query", "pivot", "pandas")
        figures = self.figures(per_query)
        stacks = self.draw.sample(STACKS, self.draw.randint(2, 5))
        queries: list[str | None] = (
            [f"q{at}" for at in range(1, self.draw.randint(3, 7))] if per_query else [None]
        )
        cells: dict[Key, Cell] = {}
        truth: dict[Key, float | None] = {}
        half: dict[str, float] = {}  # the median latency of a stack; no p95 is below it
        for stack in stacks:
            for query in queries:
                for figure in sorted(figures, key=lambda figure: figure.means):
                    behind = half.get(stack, 0) if figure.means == "latency_p95" else 0
                    least = max(behind / figure.factor, figure.low)
                    value = round(self.draw.uniform(least, max(figure.high, 2 * least)), figure.digits)
                    if figure.means == "latency_p50":
                        half[stack] = (value + 1) * figure.factor
                    key = (stack, query, figure.name)
                    lost = self.missing is not None and self.draw.random() < 0.2 and figure.means != "n"
                    cells[key] = self._gap() if lost else self.written(figure, value)
                    truth[stack, query, figure.name] = None if lost else value * figure.factor
        rows = getattr(self, "_" + self.shape.replace(" ", "_"))(figures, stacks, queries, cells)
        container, name, data, text = self._file(rows)
        return Made(
            self.number,
            self.shape,
            self.language,
            self.style,
            container,
            name,
            data,
            figures,
            stacks,
            queries,
            truth,
            self.decimal == ",",
            text,
        )

    def _gap(self) -> Cell:
        return None if self.missing == "" else self.missing

    def _names(self) -> tuple[str, str]:
        return self.draw.choice(self.words.stack), self.draw.choice(self.words.query)

    def _stacks(self, figures, stacks, queries, cells):
        stack, _ = self._names()
        other = [self.words.other[0]] if self.draw.random() < 0.2 else []
        rows = [[stack, *(figure.name for figure in figures), *other]]
        return rows + [
            [one, *(cells[one, None, f.name] for f in figures), *(["ok so far"] * len(other))]
            for one in stacks
        ]

    def _titled(self, figures, stacks, queries, cells):
        rows = self._stacks(figures, stacks, queries, cells)
        return [["Results 2026", *[None] * (len(rows[0]) - 1)], *rows]

    def _two_headers(self, figures, stacks, queries, cells):
        rows = self._stacks(figures, stacks, queries, cells)
        groups = ["Quality" if "@" in figure.means else "Costs" for figure in figures]
        seen: list[str | None] = [
            group if at == 0 or groups[at - 1] != group else None for at, group in enumerate(groups)
        ]
        return [[None, *seen, *[None] * (len(rows[0]) - 1 - len(seen))], *rows]

    def _queries(self, figures, stacks, queries, cells):
        names = self._names()
        rows = [[*names, *(figure.name for figure in figures)]]
        return rows + [
            [one, query, *(cells[one, query, f.name] for f in figures)] for one in stacks for query in queries
        ]

    def _long(self, figures, stacks, queries, cells):
        stack, query = self._names()
        single = queries == [None]
        head = [
            stack,
            *([] if single else [query]),
            self.draw.choice(self.words.measure),
            self.draw.choice(self.words.value),
        ]
        return [head] + [
            [one, *([] if single else [query]), figure.name, cells[one, query, figure.name]]
            for one in stacks
            for query in queries
            for figure in figures
        ]

    _long_by_query = _long

    def _transposed(self, figures, stacks, queries, cells):
        rows = [[self.draw.choice(self.words.measure), *stacks]]
        return rows + [
            [figure.name, *(cells[one, None, figure.name] for one in stacks)] for figure in figures
        ]

    def _pivot(self, figures, stacks, queries, cells):
        _, query = self._names()
        rows = [[query, *(f"{one} {figure.name}" for one in stacks for figure in figures)]]
        return rows + [
            [each, *(cells[one, each, f.name] for one in stacks for f in figures)] for each in queries
        ]

    def _pandas(self, figures, stacks, queries, cells):
        _, query = self._names()
        columns = [(figure.name, one) for figure in figures for one in stacks]
        rows = [
            [None, *(name for name, _ in columns)],
            [None, *(one for _, one in columns)],
            [query, *[None] * len(columns)],
        ]
        return rows + [[each, *(cells[one, each, name] for name, one in columns)] for each in queries]

    def _file(self, rows: list[list[Cell]]) -> tuple[str, str, bytes, str]:
        headed = len({*map(str, rows[0])}) == len(rows[0]) and all(rows[0])
        container = self.draw.choice(FILES if headed else ("csv", "csv", "excel"))
        shown = "\n".join(" ¦ ".join(map(str, row)) for row in rows[:6])
        if container == "excel":
            return container, "t.xlsx", book({"Sheet1": rows}), shown
        if container in ("jsonl", "json"):
            objects = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
            text = (
                json.dumps(objects, ensure_ascii=False)
                if container == "json"
                else "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)
            )
            return self._packed(container, f"t.{container}", text.encode(), shown)
        if container == "parquet":
            buffer = io.BytesIO()
            columns = dict(zip(map(str, rows[0]), zip(*rows[1:], strict=True), strict=True))
            made = {
                name: pl.Series(list(values), strict=False)
                if self.style == "numbers"
                else pl.Series([None if v is None else str(v) for v in values])
                for name, values in columns.items()
            }
            pl.DataFrame(made).write_parquet(buffer)
            return container, "t.parquet", buffer.getvalue(), shown
        buffer, mark = io.StringIO(), self.draw.choice([",", ";", "\t", "|"])
        csv.writer(buffer, delimiter=mark, lineterminator=self.draw.choice(["\n", "\r\n"])).writerows(rows)
        encoding = self.draw.choice(ENCODINGS)
        try:
            data = buffer.getvalue().encode(encoding)
        except UnicodeEncodeError:
            encoding, data = "utf-8", buffer.getvalue().encode()
        return self._packed(f"csv {mark!r} {encoding}", "t.csv", data, buffer.getvalue())

    def _packed(self, container: str, name: str, data: bytes, text: str) -> tuple[str, str, bytes, str]:
        if self.draw.random() < 0.1:
            return f"{container} gz", f"{name}.gz", gzip.compress(data), text
        return container, name, data, text


def table(number: int) -> Made:
    """Return the random table of a number."""
    return Maker(number).made()
