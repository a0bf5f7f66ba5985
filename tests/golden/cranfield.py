"""Cranfield's texts and questions, and a judge that answers from its hidden grades with noise."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.golden.build import Outcome
from core.golden.job import GoldenJob
from core.store import Store
from tests.golden import built
from tests.pipeline import cranfield

QUESTIONS, DEPTH, NOISE = 40, 30, 0.6
SPEC = f"""
name = "cranfield-judged"
collection.path = "FOLDER"
queries.limit = {QUESTIONS}
prices = "fake"
[golden]
[[golden.pool]]
stack = {{ sparse = "bm25" }}
depth = {DEPTH}
[[golden.pool]]
stack = {{ embedder = "wordllama", dim = 256 }}
depth = {DEPTH}
[golden.judge]
models = ["judge"]
"""


def bare_copy(folder: Path) -> Path:
    """Cranfield without any judgement."""
    made = folder / "cranfield"
    made.mkdir(parents=True, exist_ok=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copyfile(cranfield.FOLDER / name, made / name)
    return made


@lru_cache(maxsize=1)
def _hidden() -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """Question text to id, passage text to id, grades."""
    asked = dict(cranfield.table("queries").select("text", "query_id").iter_rows())
    rows = cranfield.table("passages").select("title", "text", "passage_id").iter_rows()
    texts = {"\n".join(filter(None, (title, text))).strip(): name for title, text, name in rows}
    frame = cranfield.table("judgements").select("query_id", "passage_id", "grade")
    grades: dict[str, dict[str, int]] = {}
    for query, passage, grade in frame.iter_rows():
        grades.setdefault(query, {})[passage] = int(grade)
    return asked, texts, grades


def true_grade(question: str, passage: str) -> int:
    asked, texts, grades = _hidden()
    return grades.get(asked[question], {}).get(texts[passage], 1)


def noisy_grade(question: str, passage: str) -> int:
    """The hidden grade with noise: the same every time, for it follows from the texts."""
    digest = hashlib.blake2b(f"{question}|{passage}".encode(), digest_size=12).digest()
    parts = [int.from_bytes(digest[at : at + 2], "big") / 65535 for at in range(0, 12, 2)]
    return min(5, max(1, round(true_grade(question, passage) + NOISE * (sum(parts) - 3) / 0.5**0.5)))


def judge(body: Mapping[str, Any]) -> str:
    question, (passage,) = built.texts_of(body)
    return json.dumps({"grade_1_5": noisy_grade(question, passage)})


def job(folder: Path, url: str) -> GoldenJob:
    text = SPEC.replace("FOLDER", str(bare_copy(folder.parent)))
    return built.job(Store.open(folder / "store"), url, text)


def work(folder: Path, url: str, key: str) -> Outcome:
    """Build, or what is left of it, in a process of its own."""
    return built.build(Store.open(folder / "store"), job(folder, url), url, key)
