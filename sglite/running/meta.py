"""All that is known of one hole, as a row gives it."""

from __future__ import annotations

from dataclasses import field, fields

from sglite.language import ir
from sglite.running.fields import Field, Source, fields_of
from sglite.running.record import Slot
from sglite.runtime.segment import Constraint, HoleResult
from sglite.runtime.values import value


@value
class Meta(HoleResult):
    """The result of a hole, with what its constraint says of the parts of its value."""

    constraint: Constraint | None = field(default=None, compare=False)

    __repr__ = HoleResult.__repr__

    @property
    def fields(self) -> dict[str, Field]:
        """The values in the text, each with its place, tokens and probability, by JSON pointers.

        `fields[""]` is the whole, `fields["/items/0/name"]` a part of one that was written as JSON.
        A quote also has its `source`.
        """
        return fields_of(self, self.constraint)

    @property
    def span(self) -> Source | None:
        """Where the value of a `sgl.quote(document)` stands in the document; None of others."""
        return self.fields[""].source


def meta_of(slot: Slot) -> Meta:
    """What is known of a filled hole. Raises ProgramError if it is not filled."""
    result = slot.done
    known = {each.name: getattr(result, each.name) for each in fields(HoleResult)}
    constraint = slot.node.constraint if isinstance(slot.node, ir.Gen) else None
    return Meta(**known, constraint=constraint)
