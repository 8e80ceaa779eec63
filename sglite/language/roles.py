"""The turns of a chat in one branch: what the model's template writes around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sglite import chat
from sglite.errors import ModelError
from sglite.language import ir
from sglite.running.executor import Run
from sglite.running.lowering import Pending
from sglite.running.record import Record, TemplateText, program_error
from sglite.tools.declared import Tool

if TYPE_CHECKING:
    from sglite.chat import ChatTemplate

GetTemplate = Callable[[], "ChatTemplate"]
"""The chat template of the model. Raises ModelError for a model without one."""


class Turns:
    """What is recorded, cut into turns. Knows nothing of what stands inside of them."""

    __slots__ = ("_in_parents_turn", "_pending", "_record", "_run", "_template", "_tools")

    def __init__(self, run: Run, template: GetTemplate) -> None:
        self._run = run
        self._template = template
        self._record: Record = run.record
        self._pending = Pending()
        self._in_parents_turn = False
        self._tools: tuple[Tool, ...] = ()

    def _open_turn(
        self,
        role: str,
        place: ir.Place,
        tools: tuple[Tool, ...] = (),
        verbatim: str | None = None,
    ) -> None:
        """`verbatim`: what stands there instead of the template's text."""
        record = self._record
        opening = ir.RoleOpen(role, place=place)
        self._end_parents_turn(opening, place)
        if verbatim is not None:
            self._begin_turn(role, verbatim, place, verbatim=True)
            return
        roles = record.roles()
        if tools and roles:
            raise program_error(
                f"{opening.describe()} names tools after the first turn, where a model is told of "
                "them; name them there",
                opening,
            )
        self._tools = tools or self._tools
        try:
            fragments = self._template().fragments([*roles, role], self._tools)
        except ModelError as error:
            raise program_error(str(error), opening) from error
        self._begin_turn(role, fragments.opening, place, verbatim=bool(self._tools))

    def _end_parents_turn(self, opening: ir.RoleOpen, place: ir.Place) -> None:
        """A turn begins: that of a parent ends here, and one of this branch must be over."""
        self._run.check()
        if self._in_parents_turn:
            self._close_turn(place)
        if self._turn_is_open():
            open_role = self._record.turns[-1].role
            raise program_error(
                f"{opening.describe()} inside of {open_role}(); close that turn first", opening
            )

    def _begin_turn(self, role: str, text: str, place: ir.Place, *, verbatim: bool) -> None:
        """A turn that begins with this text of the template."""
        record = self._record
        record.note(ir.RoleOpen(role, text, verbatim, place=place))
        begin = record.position
        self._template_text(text)
        record.open_turn(role, begin)

    def _close_turn(self, place: ir.Place, verbatim: str | None = None) -> None:
        record = self._record
        self._in_parents_turn = False
        closing = verbatim
        if closing is None:
            closing = self._template().fragments(record.roles(), self._tools).closing
        exact = verbatim is not None or bool(self._tools)
        record.note(ir.RoleClose(record.turns[-1].role, closing, exact, place=place))
        record.close_turn()
        self._template_text(closing)

    def _turn_is_open(self) -> bool:
        turns = self._record.turns
        return bool(turns) and turns[-1].end is None

    def _template_text(self, text: str) -> None:
        for part, is_template in chat.pieces(text):
            kept = TemplateText(part) if is_template else part
            self._record.parts.append(kept)
            self._pending.text(part, "template" if is_template else "user")
