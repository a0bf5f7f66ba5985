"""What every chat model is: a name, and one method that turns two texts into one."""

from __future__ import annotations

from abc import ABC, abstractmethod

from core.providers.base import Amount, Model, Reply
from core.records import Basis, JsonMap


class Chat(Model, ABC):
    """Answers a text under instructions.

    Attributes:
        context_tokens: The most tokens of one call, prompt and answer; None = not known.
        concurrency: How many calls may be under way at once.
    """

    local: bool = False
    context_tokens: int | None = None
    concurrency: int = 1

    @abstractmethod
    def complete(
        self,
        system: str,
        user: str,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        json_schema: JsonMap | None = None,
        extra: str = "",
    ) -> Reply[str]:
        """Answer one message.

        Args:
            system: Instructions; ours, never a user's or a corpus's text.
            user: The message; texts of others in it stand between marks (`core.providers.chat.ask`).
            max_tokens: The most tokens of the answer, ≥ 1.
            temperature: 0 = as repeatable as the model is; left out for models that do not take it.
            json_schema: What a JSON answer looks like; enforced only where the model is configured for it.
            extra: Tells calls apart that are to be made again although nothing differs ("repeat 2").

        Returns:
            The answer, which may be empty; `details` hold "characters" (of the answer) and
            "chars_per_second" (of the call; None where it took no time) and, where the service says it,
            "finish_reason", and of a vendor "at" (when it answered, ISO 8601).

        Raises:
            ProviderError: If the vendor gives no answer to use.
        """

    @abstractmethod
    def count_tokens(self, text: str) -> int:
        """Tokens of a text: exact where the model's vocabulary is at hand, else an estimate."""

    def expected(self, input_tokens: float, output_tokens: float) -> tuple[Amount, ...]:
        """Usage of a call of that size, as an estimate."""
        return (
            Amount(self.item, "input_tokens", float(input_tokens), Basis.MODELLED),
            Amount(self.item, "output_tokens", float(output_tokens), Basis.MODELLED),
        )


def chars_per_second(characters: int, ms: float) -> float | None:
    """Speed of generation, as figure 1 of the REBEL paper measures it; None where no time passed."""
    return 1000 * characters / ms if ms > 0 else None
