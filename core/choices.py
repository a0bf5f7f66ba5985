"""Choices, each declared once as a field of a dataclass: widget, option, URL and sentence follow from it."""

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
    """A choice, whether made in a widget, an option or a URL."""

    key: str  # in the URL; "" if it has no place there
    word: str  # in a sentence; unique among the choices
    about: str = ""  # its help, in sentences
    low: float | None = None
    high: float | None = None
    flag: str = ""  # the option of a command, if it differs from the field's name
    title: str = ""  # the heading above its field, if it isn't the word
    metavar: str = ""  # the name of its value in a command, if the type does not give it
    step: float | None = None  # step of one click in its field; None = 1, or a hundredth
    whole: bool = False  # whether only whole numbers make sense
    money: bool = False  # whether it is in dollars per 1,000; a URL gives these with their unit: 0.2per1M
    needs: str = ""  # the field without which it has no meaning
    dependent: bool = False  # whether it has a meaning in its own workspace only
    rare: bool = False  # whether it is behind the button "Settings"

    @property
    def label(self) -> str:
        """The name above its field."""
        return self.title or self.word[:1].upper() + self.word[1:]


@dataclass(frozen=True, slots=True)
class Declared:
    """A dataclass field that is a choice."""

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
