"""How far two stacks differ from question to question: what a plan of questions rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation of the difference of two stacks in a question's RR@10, the median over pairs."""

    sd: float  # 0..1
    stacks: int = 0  # that differ, which it was measured on; 0 = elsewhere
    questions: int = 0


MEASURED = Spread(0.36)  # On two public collections (docs/questions.md)
