"""The options of every command based on a decision, and what they select from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.analysis.workspace import question
from core.analysis.workspace.resolve import place_of, resolve
from core.cli.base import Context, complain
from core.cli.options import options
from core.importers.read.text import shown

if TYPE_CHECKING:
    from core.analysis.workspace.view import Place, View

_LINE = 600


class QuestionOptions(question.Question):
    """The question that a command decides."""

    def on_page(self, context: Context) -> View:
        """Return the workspace of the question; what it leaves out is reported on standard error."""
        view = resolve(self, context.store().read(self.revision), context.book(self.prices))
        fewer = view.scope.shared or view.scope.apart or view.latency.machine
        if view.compared.grouped:
            complain(f"note: {shown(view.compared.grouped, _LINE)}")
        for words in view.compared.sentences:
            complain(f"warning: {shown(words, _LINE)}{' (--together compares all)' if fewer else ''}")
        return view

    def in_store(self, context: Context) -> Place:
        """Return the data of the question, whatever its workspaces."""
        return place_of(self, context.store().read(self.revision))


deciding = options(QuestionOptions, "question")
"""Give a command the options of `QuestionOptions`, which it gets as its argument `question`."""
