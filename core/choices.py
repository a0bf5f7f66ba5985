"""Choices, each said once, as a field of a dataclass: widget, option, address and sentence follow from it."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping


class Declaring(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice, whoever asks for it."""

    key: str  # in the address; empty where it has no place there
    word: str  # in a sentence; of no other choice
    about: str = ""  # its help, in sentences
    low: float | None = None
    high: float | None = None
    flag: str = ""  # the option of a command, where it is not called as the field
    title: str = ""  # above its field, where that is not its word
    metavar: str = ""  # how a command calls its value, where the type does not say it
    step: float | None = None  # of a click on its field; None = 1, or a hundredth
    whole: bool = False  # whether only whole numbers make sense
    money: bool = False  # whether it is of dollars per 1,000, which an address says with their unit: 0.2per1M
    needs: str = ""  # the field without which it means nothing
    dependent: bool = False  # whether it means something in its workspace alone
    rare: bool = False  # whether it stands behind the button "Settings"

    @property
    def label(self) -> str:
        """Its name above a field."""
        return self.title or self.word[:1].upper() + self.word[1:]


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of a dataclass that is a choice."""

    name: str
    type: Any  # without its declaration: `float | None`
    choice: Choice
    usual: Any  # its default

    @property
    def number(self) -> bool:
        """Whether its values are numbers."""
        return bool({int, float} & {self.type, *get_args(self.type)})


@cache
def declared(kind: type[Declaring]) -> Mapping[str, Declared]:
    """Return every choice of a dataclass, by the name of its field."""
    hints = get_type_hints(kind, include_extras=True)
    choices = {}
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            continue
        base, *notes = get_args(hint)
        choice = next((note for note in notes if isinstance(note, Choice)), None)
        if choice is not None:
            choices[field.name] = Declared(field.name, base, choice, field.default)
    return choices
