"""What an installed wheel must be able to do, without the checkout: run as a script."""

from __future__ import annotations

import sys
from enum import Enum

import sglite as sgl
from sglite.grammars import Vocabulary, compile_json_schema
from sglite.kernels import _cpu


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@sgl.function
def ask(s: sgl.State, thing: str) -> None:
    s += f"The {thing} is " + sgl.gen("colour", Colour)


def main() -> None:
    vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], eos_ids=[256])
    matcher = compile_json_schema({"enum": ["a", 1]}, vocabulary).matcher()
    assert matcher.accept_tokens(list(b'"a"'))
    assert matcher.is_complete
    assert "portable" in _cpu.available_isas()
    with sgl.Model("scripted", backend="scripted", script={"colour": "red"}) as model:
        sgl.use(model)
        assert ask.run(thing="sky")["colour"] is Colour.RED
    assert "torch" not in sys.modules, "the base install must not load torch"
    print(sgl.__file__)


if __name__ == "__main__":
    main()
