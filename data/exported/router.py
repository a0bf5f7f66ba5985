"""Which stack answers a query, decided by what CLQ Explorer learnt: router.json; no package is needed.

python router.py "a question"
echo '{"query": "a question", "scores": [0.8, 0.7]}' | python router.py
from router import Router; Router().choose("a question", scores=[0.8, 0.7]) → "K = 50"

Scores are those of the first stack, which every query goes through if a sign is read from them. What is not
given counts as usual: as the mean of the queries that the router was learnt from.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LISTS = {"scores": "", "dense_scores": "dense_", "rerank_scores": "rerank_"}
"""Lists of scores, any order, higher is better: of the candidate pool, the dense search, the reranker."""


def shape(scores: Sequence[float]) -> dict[str, float]:
    """Tell how sure a list of scores is; nothing of an empty one."""
    values = sorted((float(score) for score in scores if math.isfinite(score)), reverse=True)
    if not values:
        return {}
    if len(values) == 1:
        return {"top1": values[0]}
    gap = values[0] - values[-1]
    told = {"top1": values[0], "top_margin": values[0] - values[1], "score_gap": gap, "score_entropy": 1.0}
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if gap and spread:
        raised = [math.exp((value - values[0]) / spread) for value in values]
        total = math.fsum(raised)
        inside = [value / total for value in raised if value / total > 0]
        told["score_entropy"] = -math.fsum(share * math.log(share) for share in inside) / math.log(
            len(values)
        )
    return told


def written(query: str) -> dict[str, float]:
    """Tell how a query is written: its words, its letters, the share of later words that begin large."""
    words = query.split()
    large = sum(word[0].isupper() for word in words[1:])
    return {
        "words": float(len(words)),
        "characters": float(len(query)),
        "capitals": large / max(len(words) - 1, 1),
    }


class Router:
    """A router as it was learnt."""

    def __init__(self, told: Mapping[str, Any] | None = None) -> None:
        self.told = json.loads((HERE / "router.json").read_text("utf-8")) if told is None else told
        self.labels = [option["label"] for option in self.told["options"]]

    def signs(
        self,
        query: str = "",
        *,
        tags: Sequence[str] = (),
        vector: Sequence[float] = (),
        signals: Mapping[str, float] | None = None,
        perturbed: Mapping[str, Mapping[str, Any]] | None = None,
        **lists: Sequence[float],
    ) -> dict[str, float]:
        """Work out every sign that can be told from what is given.

        Args:
            tags: Such as "type=narrow".
            vector: Of the query, from the encoder that router.json names.
            signals: What is known already, by name; it comes before what is worked out.
            perturbed: By perturbation, such as "noise 4", the lists of scores (or "signals") of the same
                query asked so.
            lists: scores, dense_scores, rerank_scores.
        """
        told = written(query) if query else {}
        told.update({f"tag:{tag}": 1.0 for tag in tags})
        told.update({f"vector:{place}": float(value) for place, value in enumerate(vector)})
        told.update(_signals(lists, signals))
        for name, again in (perturbed or {}).items():
            given = {of: scores for of, scores in again.items() if of in LISTS}
            for sign, value in _signals(given, again.get("signals")).items():
                if sign in told:
                    told[f"drop:{name}:{sign}"] = told[sign] - value
        return told

    def choose(self, query: str = "", **given: Any) -> str:
        """Return the label of the stack that answers; see `signs` for what can be given."""
        return self.labels[self.decide(self.signs(query, **given))]

    def decide(self, signs: Mapping[str, float]) -> int:
        """Return the place of the stack among the options: 0 = the first, which is left only for a gain."""
        gains = self.gains(self.standard(signs))
        best = max(range(len(gains)), key=gains.__getitem__)
        return best + 1 if gains[best] > self.told["threshold"] else 0

    def standard(self, signs: Mapping[str, float]) -> list[float]:
        """Put signs into standard deviations from their means; a tag that is not given is absent."""
        row = []
        for name, mean, scale in zip(
            self.told["signs"], self.told["means"], self.told["scales"], strict=True
        ):
            value = signs.get(name, 0.0 if name.startswith("tag:") else math.nan)
            row.append((value - mean) / scale if math.isfinite(value) else 0.0)
        return row

    def gains(self, row: Sequence[float]) -> list[float]:
        """Say what speaks for each further stack: log odds, or what near queries gained."""
        if self.told["method"] == "regression":
            return [
                line[0] + math.fsum(weight * value for weight, value in zip(line[1:], row, strict=True))
                for line in self.told["coefficients"]
            ]
        apart = [
            (round(math.fsum((one - other) ** 2 for one, other in zip(row, point, strict=True)), 9), place)
            for place, point in enumerate(self.told["points"])
        ]
        near = [place for _, place in sorted(apart)[: self.told["neighbours"]]]
        return [math.fsum(gains[place] for place in near) / len(near) for gains in self.told["gains"]]


def _signals(lists: Mapping[str, Sequence[float]], signals: Mapping[str, float] | None) -> dict[str, float]:
    told = {
        f"{LISTS[name]}{sign}": value
        for name, scores in lists.items()
        for sign, value in shape(scores).items()
    }
    return {**told, **(signals or {})}


def main() -> None:
    """Choose for a question, or for every line of JSON on standard input."""
    router = Router()
    if len(sys.argv) > 1:
        sys.stdout.write(router.choose(" ".join(sys.argv[1:])) + "\n")
        return
    for line in sys.stdin:
        sys.stdout.write(router.choose(**json.loads(line)) + "\n")


if __name__ == "__main__":
    main()
