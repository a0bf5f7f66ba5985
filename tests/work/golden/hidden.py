"""Golden sets built by the command, judged by a local server that knows the true grades and errs, and killed.

Readers are asked, and questions written, and killed in the same way.

The server speaks OpenAI's wire format. Its grades carry a noise that follows from question and passage, so
that every build of the same pool ends with the same grades; it may refuse calls, cut answers, or answer in
another form than asked for, at random.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.pipeline.evaluate import corpus_of
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.folder import Folder, Status, folders
from core.store import Store
from core.work.golden.stages import GRADE, ORDER
from tests import warm
from tests.pipeline import cranfield
from tests.vendors import Step, serve
from tests.vendors.answers import count
from tests.vendors.state import State
from tests.work.golden.built import texts_of

AT_ONCE = 4
"""Calls that are under way together."""
NAME, COLLECTION, BOOK = "judged", "cran", "local-judge"
PRICES = {"input_tokens": 1.0, "output_tokens": 4.0}
"""Dollars for a million."""
PAUSES = {"loading": (0.1, 0.9), "more": (0.0, 0.01), "all": (0.3, 0.9)}
"""Moments to kill at: shares of a build's time after it began, after more answers, after all was answered."""
FAULTS: Mapping[str, float] = {"429": 0.02, "500": 0.02, "malformed": 0.02, "drop": 0.01, "form": 0.02}
"""Share of the requests that go wrong: refused, failed, cut, dropped, answered in another form."""


COMMANDS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "golden": (("golden", "build"), ("golden", "resume")),
    "readers": (("readers", "run"), ("readers", "resume")),
    "questions": (("golden", "questions", "--spec"), ("golden", "questions-resume")),
}
"""What begins work of a kind, and what lets it go on."""


class Model(Protocol):
    """What answers."""

    def answer(self, body: Mapping[str, Any]) -> str:
        """What it says."""


@dataclass(frozen=True)
class Truth:
    """What the judge knows."""

    questions: Mapping[str, str]  # id to text
    passages: Mapping[str, str]  # id to text
    grades: Mapping[tuple[str, str], int]  # question and passage to grade; others are not relevant
    noise: float = 0.5  # standard deviation of its error, in grades
    spread: float = 0.0  # how far passages of one grade lie apart
    ids: Mapping[str, Mapping[str, list[str]]] = field(init=False)

    def __post_init__(self) -> None:
        known: dict[str, dict[str, list[str]]] = {"question": {}, "passage": {}}
        for label, texts in (("question", self.questions), ("passage", self.passages)):
            for name, text in texts.items():
                known[label].setdefault(text, []).append(name)
        object.__setattr__(self, "ids", known)

    def answer(self, body: Mapping[str, Any]) -> str:
        """What the judge says."""
        question, passages = texts_of(body)
        if ORDER in body["response_format"]["json_schema"]["schema"]["properties"]:
            turn = hashlib.blake2b("".join(passages).encode()).hexdigest()
            seen = [self._seen(question, text, turn) for text in passages]
            return json.dumps({ORDER: [at + 1 for at in sorted(range(len(seen)), key=lambda at: -seen[at])]})
        return json.dumps({GRADE: min(5, max(1, round(self._seen(question, passages[0]))))})

    def _seen(self, question: str, passage: str, turn: str = "") -> float:
        asked, found = self.ids["question"][question], self.ids["passage"][passage]
        true = max(self.worth(query, each) for query in asked for each in found)
        return true + self.noise * float(_drawn(question, passage, turn).standard_normal())

    def worth(self, query_id: str, passage_id: str) -> float:
        """What a passage is worth to a question."""
        fine = self.spread * (float(_drawn(query_id, passage_id).random()) - 0.5)
        return self.grades.get((query_id, passage_id), 1) + fine


def _drawn(*of: str) -> np.random.Generator:
    """Chance that follows from texts."""
    digest = hashlib.blake2b("\x1f".join(of).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest))


class Moody(State):
    """A server's state that has some requests go wrong; every request is noted with how it was answered."""

    def __init__(self, faults: Mapping[str, float], *, delay_s: float, seed: int = 0) -> None:
        super().__init__(delay_s=delay_s)
        self.faults, self._draw, self._here = faults, np.random.default_rng(seed), threading.local()
        self.tokens: Counter[tuple[str, str]] = Counter()  # billed, by key and unit

    def next_step(self, endpoint: str) -> Step:
        super().next_step(endpoint)
        with self.lock:
            at = np.searchsorted(np.cumsum(list(self.faults.values())), self._draw.random(), side="right")
        kind = [*self.faults, "ok"][int(at)]
        self._here.kind = kind
        if kind.isdigit():
            return Step.error(int(kind), retry_after="0")
        return Step("ok" if kind == "form" else kind)

    def begin(self, endpoint: str, body: Mapping[str, Any], key: str, headers: Mapping[str, str]) -> Any:
        digest = hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()
        self._here.key = key
        told = {"kind": self._here.kind, "hash": digest, "messages": None}
        return super().begin(endpoint, {**body, **told}, key, {})

    def said(self, body: Mapping[str, Any], model: Model) -> str:
        """The answer to this request, which is billed."""
        text = "I would say 3." if self._here.kind == "form" else model.answer(body)
        asked = count("o200k_base", [str(each["content"]) for each in body["messages"]])
        with self.lock:
            self.tokens[self._here.key, "input_tokens"] += asked
            self.tokens[self._here.key, "output_tokens"] += count("o200k_base", [text])
        return text

    def usd(self, key: str = "") -> float:
        """Dollars that were billed, cut answers included."""
        with self.lock:
            return sum(
                amount * PRICES[unit] / 1e6
                for (of, unit), amount in self.tokens.items()
                if of.startswith(key)
            )

    def answers(self, key: str = "") -> list[str]:
        """Hashes of the bodies of requests that were answered in full; with keys that begin so."""
        with self.lock:
            return [
                each["hash"] for each in self.requests
                if each["key"].startswith(key) and each["status"] == 200 and each["kind"] != "malformed"
            ]  # fmt: skip

    def kinds(self, key: str = "") -> Counter[str]:
        """How requests were answered."""
        with self.lock:
            return Counter(each["kind"] for each in self.requests if each["key"].startswith(key))


@contextmanager
def serving(model: Model, state: Moody) -> Iterator[str]:
    """Serve the judge; yields the server's address."""
    with serve(chat=lambda body: state.said(body, model), state=state) as server:
        yield server.url


@dataclass(frozen=True)
class Place:
    """A store of its own with the user's files beside it."""

    folder: Path
    url: str
    work: str = "golden"  # its kind, and the folder of what that did

    def __post_init__(self) -> None:
        books = self.folder / "price-books"
        books.mkdir(parents=True, exist_ok=True)
        head = f'book = "{BOOK}"\nprovider = "here"\n'
        told = 'currency = "USD"\nsource = "here"\nlooked_up = 2026-11-22\nconfirmed = true\n'
        prices = [
            f'[[price]]\nitem = "judge"\nunit = "{unit}"\nprice = {price}\nper = 1_000_000\n{told}'
            for unit, price in PRICES.items()
        ]
        (books / "judge.toml").write_text(head + "\n".join(prices))

    @property
    def store(self) -> Store:
        return Store.open(self.folder / "store")

    @property
    def build(self) -> Folder:
        (found,) = folders(self.folder / self.work)
        return found

    @property
    def status(self) -> Status:
        status = self.build.status()
        assert status is not None
        return status

    def spec(self, text: str) -> Path:
        """Write a specification whose judge is the server; one place has one build."""
        path = self.folder / f"{self.work}.toml"
        model = (
            f'[models.judge]\nprovider = "openai"\nbase_url = "{self.url}/openai/v1"\nkey_env = "JUDGE_KEY"\n'
            f'tokenizer = "o200k_base"\nlimits = {{ concurrency = {AT_ONCE}, attempts = 8 }}\n'
            'chat = { json_mode = "schema" }\n'
        )
        path.write_text(f'prices = "{BOOK}"\n{text}\n{model}')
        return path

    def begin(self, spec: Path) -> tuple[object, ...]:
        """The command that begins it, or has it go on where it was begun."""
        begins, resumes = COMMANDS[self.work]
        return (*resumes, NAME) if folders(self.folder / self.work) else (*begins, spec, "--yes")

    def start(self, *arguments: object, key: str = "key") -> warm.Child:
        """Start the program."""
        command = ["--store", self.folder / "store", *arguments]
        environ = {**os.environ, "JUDGE_KEY": key, "CLQ_ALLOW_KEYS": f"JUDGE_KEY={self.url}"}
        return warm.command([str(part) for part in command], environ)

    def do(self, *arguments: object, key: str = "key", code: int = 0) -> str:
        """Run the program to its end and return what it printed."""
        process = self.start(*arguments, key=key)
        printed, said = process.communicate()
        assert process.returncode == code, said[-2_000:]
        return printed

    def table(self, *arguments: object) -> Any:
        """What a command prints as JSON."""
        return json.loads(self.do(*arguments, "--format", "json"))


def cranfield_truth(questions: int, noise: float = 0.5) -> Truth:
    """The first questions of the collection with its grades."""
    kept = dict(cranfield.table("queries").head(questions).select("query_id", "text").iter_rows())
    corpus = corpus_of(cranfield.table("passages"))
    grades = {
        (query, passage): grade
        for query, judged in cranfield.judged().items()
        for passage, grade in judged.items()
        if query in kept
    }
    return Truth(kept, dict(zip(corpus.passage_ids, corpus.texts, strict=True)), grades, noise)


def cranfield_files(folder: Path, truth: Truth) -> Path:
    """Texts and questions as files, without a grade."""
    texts = folder / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    (texts / "corpus.jsonl").write_bytes((cranfield.FOLDER / "corpus.jsonl").read_bytes())
    lines = [json.dumps({"_id": name, "text": text}) for name, text in truth.questions.items()]
    (texts / "queries.jsonl").write_text("\n".join(lines) + "\n")
    return texts


def cranfield_spec(texts: Path, depth: int) -> str:
    """A specification from nothing but texts and questions."""
    return f"""
name = "{NAME}"
budget_usd = 50.0
collection = {{ path = "{texts}", id = "{COLLECTION}" }}
[golden]
[[golden.pool]]
stack = {{ sparse = "bm25" }}
depth = {depth}
[[golden.pool]]
stack = {{ embedder = "wordllama", dim = 256 }}
depth = {depth}
[golden.judge]
models = ["judge"]
"""


@dataclass(frozen=True)
class Killing:
    """What became of a build that was killed."""

    kills: Sequence[str]  # keys of the processes that were killed
    failed: Sequence[str]  # keys of those that gave up, as the judge failed too often
    ends: Sequence[str]  # keys of those that came to their end


def kill_and_resume(
    place: Place, spec: Path, state: Moody | None, *, kills: int, needed: int, whole_s: float, seed: int
) -> Killing:
    """Begin a build and kill it at random moments, resuming it each time, until it finishes.

    Without a server the moments are shares of the time that all of it takes.

    The moments: while it loads and searches; after some more answers; when everything is answered.
    `whole_s` is how long a build takes without kills.
    """
    draw = np.random.default_rng(seed)
    died, failed, ends = list[str](), list[str](), list[str]()
    early = max(1, kills // 7)
    some = [math.ceil(0.9 * needed * share) for share in draw.dirichlet(np.full(kills - 2 * early, 4.0))]
    moments = [("loading", 0.0)] * early + [("more", float(each)) for each in some]
    moments = [moments[at] for at in draw.permutation(len(moments))] + [("all", 0.0)] * early
    moments = moments if state is not None else [("loading", 0.0)] * kills
    while True:
        key = f"attempt-{len(died) + len(failed) + len(ends):02}-"
        started, process = time.monotonic(), place.start(*place.begin(spec), key=key)
        if len(died) < kills:
            kind = _wait(process, state, key, moments[len(died)], needed)
            time.sleep(whole_s * float(draw.uniform(*PAUSES[kind])))
            process.kill()
        said = process.communicate()[1]
        assert process.returncode in (-9, 0) or "No answer to use" in said, said[-2_000:]
        {-9: died, 0: ends}.get(process.returncode, failed).append(key)
        if not process.returncode and len(died) < kills:  # it was faster than the kill: the next comes sooner
            whole_s = min(whole_s, time.monotonic() - started) / 2
        if not process.returncode and len(died) >= kills:
            return Killing(died, failed, ends)


def _wait(process: warm.Child, state: Moody | None, key: str, moment: tuple[str, float], needed: int) -> str:
    """Until so many answers were sent to this process, or all that are needed to all; tells which it was."""
    kind, answers = moment
    while state is not None and kind != "loading" and process.poll() is None:
        if len({*state.answers("attempt")}) >= needed:
            return "all"
        if kind == "more" and len(state.answers(key)) >= answers:
            return kind
        time.sleep(0.02)
    return kind


@dataclass(frozen=True)
class Paid:
    """What a killed build paid for, counted at the server and in the ledger."""

    needed: int  # different calls
    again: int  # answers beyond the first of the same call
    most_per_kill: int  # the most of them that one killed process left
    lost: int  # calls that were sent, answered or not, by killed processes and sent again later
    told: int  # calls that the ledger says were sent again
    billed_usd: float  # what the server billed
    settled_usd: float  # what the ledger has
    lost_usd: float  # what it says calls of unknown outcome can have cost besides


def paid(place: Place, state: Moody, killing: Killing) -> Paid:
    """Compare the server's count with the ledger."""
    every = Counter(state.answers("attempt"))
    keys = sorted([*killing.kills, *killing.failed, *killing.ends])
    sent = {key: set(state.answers(key)) for key in keys}
    left = {
        key: len(sent[key] & set().union(*(sent[after] for after in keys[at + 1 :])))
        for at, key in enumerate(keys)
    }
    assert not any(left[key] for key in (*killing.failed, *killing.ends)), "only killed processes lose calls"
    receipts = Receipts(place.build.receipts)
    try:
        return Paid(
            len(every), every.total() - len(every), max(left.values()), sum(left.values()), receipts.again,
            state.usd("attempt"), receipts.settled, receipts.lost,
        )  # fmt: skip
    finally:
        receipts.close()
