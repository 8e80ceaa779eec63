"""Tools: what a model is told of a function, and what becomes of its arguments."""

from __future__ import annotations

import pickle
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

import sglite as sgl
from sglite.tools.declared import call_of, read_docstring


def even(x: int) -> int:
    if x % 2:
        raise ValueError("must be even")
    return x


class Place(BaseModel):
    city: str
    zip: str | None = None


@sgl.tool
def book(
    guest: str,
    arrival: date,
    nights: Annotated[int, Field(ge=1, le=9)] = 1,
    *,
    place: Place | None = None,
    board: Annotated[Literal["half", "full"], "meals"] = "half",
) -> str:
    """Books a room.

    At once, and for good.

    Args:
        guest: who comes,
            with the first name
        arrival (date): the first day
        place: where

    Returns:
        a number: of the booking
    """
    return f"{guest} {arrival:%d.%m.} {nights} {place} {board}"


@sgl.tool(name="wait-a-bit", description="Waits.")
async def wait(seconds: float) -> None:
    """Another text."""


def test_a_tool_is_described_by_its_function() -> None:
    told = book.described()["function"]
    assert told["name"] == "book"
    assert told["description"] == "Books a room.\n\nAt once, and for good."
    parameters = told["parameters"]
    assert parameters["required"] == ["guest", "arrival"]
    assert list(parameters["properties"]) == ["guest", "arrival", "nights", "place", "board"]
    properties = parameters["properties"]
    assert properties["guest"] == {
        "description": "who comes, with the first name",
        "type": "string",
    }
    assert properties["arrival"]["description"] == "the first day"
    assert properties["nights"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert properties["place"]["description"] == "where"
    assert properties["board"]["description"] == "meals"
    assert "title" not in str(told)
    assert book.parameters["additionalProperties"] is False


def test_a_property_called_title_stays() -> None:
    @sgl.tool
    def find(title: str, properties: dict[str, int]) -> None: ...

    assert list(find.described()["function"]["parameters"]["properties"]) == ["title", "properties"]


def test_a_tool_stays_a_function() -> None:
    assert book("Ada", date(2026, 1, 2), 3) == "Ada 02.01. 3 None half"
    assert book.__doc__ is not None
    assert book.__name__ == "book"
    assert not book.is_async
    assert repr(book).startswith("<tool book(guest: ")


def test_names_and_descriptions_can_be_given() -> None:
    assert (wait.name, wait.description, wait.is_async) == ("wait-a-bit", "Waits.", True)


def test_methods_and_lambdas() -> None:
    class Shelf:
        def __init__(self) -> None:
            self.books = ["one"]

        def count(self, least: int) -> int:
            """Counts."""
            return len(self.books) + least

        def __call__(self, word: str) -> str:
            return word

    shelf = Shelf()
    assert list(sgl.Tool(shelf.count).parameters["properties"]) == ["least"]
    assert sgl.Tool(shelf.count)(least=1) == 2
    assert list(sgl.tool(name="shelf")(shelf).parameters["properties"]) == ["word"]
    with pytest.raises(ValueError, match=r"tool's name.*'<lambda>'.*name="):
        sgl.tool(lambda: 1)


def test_docstrings() -> None:
    assert read_docstring("") == ("", {})
    assert read_docstring("A.\n\n:param int x: one\n:param y: two\n:returns: three") == (
        "A.",
        {"x": "one", "y": "two"},
    )
    assert read_docstring("A.\n\nArgs:\n    x: a: b\n    y:\n        later\n\nMore.") == (
        "A.\n\nMore.",
        {"x": "a: b", "y": "later"},
    )


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x, "parameter 'x' has no type; write x: str"),
        (lambda *xs: xs, r"cannot fill '\*xs'"),
        (lambda **xs: xs, r"cannot fill '\*\*xs'"),
        (7, "goes above a def, got 7"),
    ],
)
def test_functions_that_cannot_be_tools(function: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        sgl.tool(name="f")(function)


def test_types_without_a_json_form() -> None:
    def f(x: type) -> None: ...
    def g(x: "Missing") -> None: ...  # type: ignore[name-defined] # noqa: F821, UP037

    with pytest.raises(TypeError, match="cannot be the type"):
        sgl.tool(f)
    with pytest.raises(TypeError, match=r"tool g: name 'Missing'.*top of a module"):
        sgl.tool(g)


def test_arguments_become_values() -> None:
    plain = {"guest": "Ada", "arrival": "2026-01-02", "place": {"city": "Rome"}}
    call = call_of(book, plain, "abc")
    assert call == sgl.ToolCall(
        "book",
        {"guest": "Ada", "arrival": date(2026, 1, 2), "place": Place(city="Rome")},
        "abc",
    )
    assert call.refused is None


def test_what_a_validator_refuses_is_said() -> None:
    @sgl.tool
    def halve(x: Annotated[int, AfterValidator(even)]) -> int:
        return x // 2

    call = call_of(halve, {"x": 3}, "")
    assert call.arguments == {"x": 3}
    assert call.refused == "x: Value error, must be even"
    assert call_of(halve, {"x": 4}, "").refused is None


def test_tools_and_calls_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(book)) is book
    call = call_of(book, {"guest": "Ada", "arrival": "2026-01-02"}, "abc")
    again = pickle.loads(pickle.dumps(call))
    assert again == call
    assert again.tool is book
