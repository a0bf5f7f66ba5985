"""Words of column names in German, French, Spanish, Italian, Portuguese and Dutch, with their English."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

_LISTED: Mapping[str, str] = {
    "latency": "latenz latenzzeit latence latencia latenza latentie latentietijd",
    "time": "zeit dauer laufzeit temps duree tiempo duracion tempo durata duracao tijd duur looptijd",
    "response": "antwort reponse respuesta risposta resposta respons",
    "response_time": "antwortzeit responstijd antwoordtijd reactietijd",
    "mean": "mittel mittelwert mittlere mittlerer mittleres durchschnitt durchschnittliche durchschnittlicher"
            " durchschnittlich moyen moyenne media medio promedio gemiddeld gemiddelde",
    "median": "mediane medianwert mediana mediano medianes",
    "std": "standardabweichung abweichung streuung ecart ecarttype desviacion deviazione desvio"
           " standaardafwijking afwijking",
    "min": "minimal minimale minimo minima minimum minimaal",
    "max": "maximal maximale maximo maxima massimo massima maximaal",
    "throughput": "durchsatz debit rendimiento vazao portata doorvoer",
    "variance": "varianz varianza variancia variantie",
    "cost": "kosten cout couts costo costos coste costes costi custo custos",
    "price": "preis preise prix precio precios prezzo prezzi preco precos prijs prijzen",
    "per": "pro je par pour por",
    "query": "anfrage anfragen suchanfrage suchanfragen abfrage abfragen frage fragen requete requetes"
             " consulta consultas pregunta preguntas domanda domande interrogazione interrogazioni richiesta"
             " richieste pergunta perguntas zoekvraag zoekvragen vraag vragen zoekopdracht zoekopdrachten",
    "1k": "tausend mille mil duizend",
    "1m": "millionen millions millones milioni milhoes miljoen",
    "ms": "millisekunden millisekunde millisecondes milliseconde milisegundos millisecondi milissegundos"
          " milliseconden",
    "s": "sekunden sekunde secondes seconde segundos segundo secondi secondo seconden",
    "us": "mikrosekunden microsecondes microsegundos microsecondi microssegundos microseconden",
    "usd": "dolar dolares dollari",
    "build": "aufbau bauzeit construction construccion costruzione construcao bouw bouwtijd",
    "indexing": "indexierung indexierungszeit indexation indexacion indicizzazione indexacao indexering",
    "": "de du des der di da do del della van d",
}  # fmt: skip
WORDS: Mapping[str, str] = {word: english for english, words in _LISTED.items() for word in words.split()}
"""Words for times and prices → their English meaning; articles and the like are empty."""
MEASURES: Mapping[str, str] = {
    **dict.fromkeys(("rappel", "richiamo", "exhaustividad", "revocacao", "revocation"), "recall"),
    **dict.fromkeys(("prazision", "precisione", "precisao", "precisie"), "precision"),
    **dict.fromkeys(("exactitude", "exactitud", "accuratezza", "acuracia", "nauwkeurigheid"), "accuracy"),
    **dict.fromkeys(("qualitat", "qualite", "calidad", "qualita", "qualidade", "kwaliteit"), "quality"),
}
"""Names of measures → the English names."""
_NAMES: Mapping[str, str] = {
    "run": "verfahren methode konfiguration variante ansatz systeme configuracion sistema metodo"
           " configurazione configuracao systeem configuratie aanpak nom nombre nome naam",
    "query_id": "anfrage frage suchanfrage abfrage requete consulta pregunta domanda interrogazione richiesta"
                " pergunta zoekvraag vraag zoekopdracht",
    "passage_id": "dokument documento",
    "rank": "rang platz posicion posizione posicao positie",
    "measure": "metrik mass kennzahl metrique mesure metrica medida misura metriek maat",
    "value": "wert valeur valor valore waarde",
    "n": "anfragen fragen anzahl_anfragen anzahl_fragen anzahl_suchanfragen requetes questions"
         " nombre_de_requetes nombre_de_questions nb_requetes nb_questions consultas preguntas"
         " numero_de_consultas numero_de_preguntas domande numero_di_domande numero_di_query perguntas"
         " numero_de_perguntas zoekvragen vragen aantal_zoekvragen aantal_vragen",
}  # fmt: skip
_ENDS: Mapping[str, tuple[str, ...]] = {"query_id": ("", "_id"), "passage_id": ("", "_id")}
NAMES: Mapping[str, tuple[str, ...]] = {
    role: tuple(name + end for end in _ENDS.get(role, ("",)) for name in names.split())
    for role, names in _NAMES.items()
}
"""Role → the names of its columns."""
MODELS = frozenset({"modell", "modele", "modelo", "modello"})
"""Column names for models that name stacks."""


def unaccented(text: str) -> str:
    """Return a text without its accents."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(char for char in parts if not unicodedata.combining(char))
