"""Writes the chosen stack as a small folder that runs without this program, and compares its rankings."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from core.errors import InputError
from core.files import replacing
from core.paths import DATA
from core.pipeline.evaluate.job import Corpus
from core.pipeline.index.terms import FOLD, LANGUAGES
from core.pipeline.own.config import OwnStack
from core.pipeline.own.process import Ended, OwnWorker
from core.pipeline.shippable import ADAPTERS, ENGINE, language_of, missing
from core.records import JsonMap
from core.tables import schema

EXPORTED = DATA / "exported"
_LEAST_PYTHON = re.compile(r">=\s*(\d+\.\d+)")
COMPARED = schema("query_id same:bool first_difference:int64 stored exported")
_EQUAL = 1e-6  # Relative difference of scores that are equal but for rounding


def ship(spec: JsonMap, kind: str, corpus: Corpus, folder: Path, about: JsonMap) -> None:
    """Write a stack into a new folder.

    Args:
        kind: One of `KINDS`.
        about: Facts for its readme: name, run_id, stack_id, prices.

    Raises:
        InputError: If a part of it cannot be written so, or the folder exists.
    """
    if lacking := missing(spec, kind):
        raise InputError(
            f"As {kind} it cannot be written: {', '.join(lacking)}.",
            where=str(about.get("name", "stack")),
            do="Sparse, dense (wordllama, flat) and hybrid stacks (rrf) can, on a collection's own passages.",
        )
    if folder.exists():
        raise InputError("There is something already.", where=str(folder), do="Name a new folder.")
    with replacing(folder) as draft:
        draft.mkdir(parents=True)
        files = _engine_files(spec) if kind == ENGINE else _python_files(spec, kind)
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf-8")
        _passages(corpus, draft / "passages.jsonl")
        (draft / "README.md").write_text(_readme(kind, about), encoding="utf-8")
        (draft / "about.json").write_text(_json({**about, "spec": dict(spec)}), encoding="utf-8")


def _python_files(spec: JsonMap, kind: str) -> dict[str, str]:
    module, package = ADAPTERS[kind]
    names = dict.fromkeys(["retriever", module])
    needs = ["numpy"]
    if spec["mode"] != "dense":
        needs += ["bm25s", "PyStemmer"]
    if spec["mode"] != "sparse":
        needs.append("wordllama")
    return {
        "stack.json": _json(adapter_options(spec)),
        "requirements.txt": "\n".join(
            _pinned(requirement) for requirement in (*needs, *filter(None, (package,)))
        )
        + "\n",
        **{f"{name}.py": (EXPORTED / f"{name}.py").read_text(encoding="utf-8") for name in names},
    }


def adapter_options(spec: JsonMap) -> dict[str, Any]:
    """Return the settings of a stack that `data/exported/retriever.py` reads."""
    sparse, dense = spec["mode"] != "dense", spec["mode"] != "sparse"
    bm25 = {"k1": 1.5, "b": 0.75, **spec.get("bm25", {})}
    language = LANGUAGES[language_of(spec)]
    sent = spec.get("chunks_sent")
    words = {
        "stemmer": language.stemmer,
        "stop_words": sorted(language.stop_words),
        "spelling": [list(pair) for pair in language.spelling],
        "fold": {str(code): letter for code, letter in FOLD.items()} if language.fold else {},
    }
    return {
        "k": min(int(spec["candidates"]), int(sent or spec["candidates"])),
        "bm25": {"k1": bm25["k1"], "b": bm25["b"], **words} if sparse else None,
        "dense": {"dim": int(spec["dim"])} if dense else None,
        "fusion": dict(spec["fusion"]) if sparse and dense else None,
    }


def _engine_files(spec: JsonMap) -> dict[str, str]:
    bm25 = {"k1": 1.5, "b": 0.75, **spec.get("bm25", {})}
    similarity = {"type": "BM25", "k1": bm25["k1"], "b": bm25["b"]}
    text = {"type": "text", "analyzer": language_of(spec), "similarity": "stack"}
    index = {
        "settings": {"index": {"similarity": {"stack": similarity}}},
        "mappings": {"properties": {"text": text}},
    }
    query = {"size": int(spec["candidates"]), "query": {"match": {"text": {"query": "{{ query }}"}}}}
    return {"index.json": _json(index), "query.json": _json(query)}


def _passages(corpus: Corpus, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for name, text in zip(corpus.passage_ids, corpus.texts, strict=True):
            file.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")


def _pinned(package: str) -> str:
    """Return the requirement of a package: the version here on Pythons that take it, any on others."""
    try:
        about = metadata(package).json
    except PackageNotFoundError:
        return package
    pinned = f"{package}=={about['version']}"
    least = _LEAST_PYTHON.search(str(about.get("requires_python", "")))
    if least is None:
        return pinned
    return f'{pinned}; python_version >= "{least[1]}"\n{package}; python_version < "{least[1]}"'


def _json(value: JsonMap) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _readme(kind: str, about: JsonMap) -> str:
    if kind == ENGINE:
        use = (
            "Create the index from index.json, index passages.jsonl (field text), send query.json with the"
            " question in place of {{ query }}. The engine's words and stems differ a little from those that"
            " were measured: measure it before you ship it (core measure URL --preset elasticsearch)."
        )
    else:
        module = ADAPTERS[kind][0]
        use = f"pip install -r requirements.txt, then in Python: from {module} import build; build()."
    lines = (
        f"# {about['name']}",
        f"A retrieval stack chosen with CLQ Explorer (stack {about['stack_id']}, run {about['run_id']}).",
        use,
        "stack.json or index.json: its settings. about.json: where it comes from, prices of what it uses.",
        "Why this one: `core record` writes the decision with its evidence; name the run above in it.",
    )
    return "\n\n".join(lines) + "\n"


def compare(
    folder: Path,
    kind: str,
    python: str,
    asked: pl.DataFrame,
    stored: Mapping[str, Sequence[str]],
    *,
    scores: Mapping[str, Sequence[float | None]] = MappingProxyType({}),
) -> pl.DataFrame:
    """Run the exported folder, and compare its rankings with the stored ones, ties aside.

    Args:
        python: The interpreter that has its packages.
        asked: query_id and text.
        stored: The passages of each query, best first.
        scores: Their scores; passages of equal scores may change places.

    Returns:
        Columns of `COMPARED`.

    Raises:
        ProviderError: If it cannot be started there.
        InputError: If it is not something that runs by itself, or there is no such interpreter.
    """
    if kind == ENGINE:
        raise InputError("An engine's files are checked by measuring it.", do="core measure URL --preset …")
    if shutil.which(python) is None:
        raise InputError(f"There is no such interpreter: {python}.", where="--python")
    worker = OwnWorker(
        OwnStack(name="exported", call=f"{ADAPTERS[kind][0]}:build()", path=folder, python=Path(python))
    )
    rows = []
    try:
        for query_id, text in asked.select("query_id", "text").iter_rows():
            want = list(stored.get(query_id, ()))
            try:
                answer = worker.ask(text, max(1, len(want)), {})
                got = {hit[0][0]: hit[1] for hit in answer.get("hits", ())}
            except Ended:
                got = {}
            apart = _apart(want, got, scores.get(query_id, ()))
            pair = (
                ("", "")
                if apart is None
                else tuple("".join(ranking[apart : apart + 1]) for ranking in (want, list(got)))
            )
            rows.append((query_id, apart is None, None if apart is None else apart + 1, *pair))
    finally:
        worker.close()
    return pl.DataFrame(rows, schema=COMPARED, orient="row")


def _tied(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=_EQUAL)


def _apart(
    want: Sequence[str], got: Mapping[str, float | None], scores: Sequence[float | None]
) -> int | None:
    """Return the first position where a ranking differs from the stored one, or None if only ties differ.

    Args:
        got: The scores of its passages by their ids, best first.
        scores: Those of the stored ranking; () = not known.
    """
    ranked, at = list(got), 0
    while at < max(len(want), len(ranked)):
        end = at + 1
        while end < len(scores) and _tied(scores[end], scores[at]):
            end += 1
        one, other = want[at:end], ranked[at:end]
        at_the_cut = end >= len(want) and len(one) == len(other) and not set(other) & set(want[:at])
        equal = at_the_cut and at < len(scores) and all(_tied(got[name], scores[at]) for name in other)
        if set(one) != set(other) and not equal:
            return next(
                place for place in range(at, end) if want[place : place + 1] != ranked[place : place + 1]
            )
        at = end
    return None
