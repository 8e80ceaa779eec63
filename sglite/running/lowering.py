"""From recorded nodes to the steps of a segment, and the randomness key of a hole.

All literal text between two holes becomes one `Append`, however often the program read in between:
text waits here until the next hole or the end of the program arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any

from sglite.language import ir
from sglite.language.types import with_space
from sglite.options import DEFAULT_MAX_TOKENS, Options, Sampling
from sglite.runtime.engines.base import Engine
from sglite.runtime.segment import Append, Gen, Piece, PieceKind, Select, Step

DEFAULT_JSON_MAX_TOKENS = 512
"""The limit of a JSON hole without `max_tokens`; records are longer than answers."""

BranchPath = tuple[int, ...]
"""Where a branch left its parents: (number of the fork, number of the branch), for each level."""


def hole_key(seed: int, row: int, path: BranchPath, name: str, occurrence: int) -> int:
    """The 64-bit randomness key: it depends on what the hole is, never on when it runs."""
    identity = f"({seed}, {row}, {path}, {name!r}, {occurrence})".encode()
    return int.from_bytes(blake2b(identity, digest_size=8).digest(), "little")


def lower_hole(
    node: ir.Hole,
    name: str,
    key: int,
    defaults: Options,
    *,
    engine: Engine,
    after_word: bool = False,
) -> Gen | Select:
    """The step of a hole, with everything resolved. Raises ValueError for a value out of range.

    `engine` knows the ids of texts. `after_word`: text of the program that does not end in white
    space stands before the hole.
    """
    sampling, max_tokens = _resolve(node.options, defaults)
    if isinstance(node, ir.Select):
        return Select(name, node.choices, key, sampling, node.method, node.until, node.hidden)
    if max_tokens is None:
        is_json = node.constraint is not None and node.constraint.kind == "json_schema"
        max_tokens = DEFAULT_JSON_MAX_TOKENS if is_json else DEFAULT_MAX_TOKENS
    constraint = node.constraint
    if constraint is not None and node.spaced and after_word:
        constraint = with_space(constraint)
    return Gen(
        name,
        key,
        constraint,
        max_tokens,
        sampling,
        node.stop,
        node.stop_ids,
        node.until,
        node.ignore_eos,
        node.min_tokens,
        _biases(node, engine),
        node.stop_regex,
        node.top_logprobs,
        node.hidden,
        node.drops,
    )


class Lowered:
    """The step of a hole, all but its name and its key."""

    __slots__ = ("_after", "_before", "_kind")

    def __init__(
        self, node: ir.Hole, defaults: Options, *, engine: Engine, after_word: bool = False
    ) -> None:
        step = lower_hole(node, "", 0, defaults, engine=engine, after_word=after_word)
        self._kind: Callable[..., Gen | Select] = type(step)
        names, at = _BORDER[type(step)]
        self._before: list[Any] = [getattr(step, name) for name in names[1:at]]
        self._after: list[Any] = [getattr(step, name) for name in names[at + 1 :]]

    def step(self, name: str, key: int) -> Gen | Select:
        """The step of one occurrence."""
        return self._kind(name, *self._before, key, *self._after)


_BORDER = {
    kind: (names := [field.name for field in fields(kind)], names.index("key"))
    for kind in (Gen, Select)
}

_lowered: dict[tuple[int, int, bool], tuple[ir.Hole, Options, Lowered]] = {}
_MOST_LOWERED = 4096


def lowered(node: ir.Hole, defaults: Options, *, engine: Engine, after_word: bool) -> Lowered:
    """`Lowered`, remembered: each row of a batch has the same holes and the same options."""
    key = (id(node), id(defaults), after_word)
    found = _lowered.get(key)
    if found is not None:
        return found[2]
    made = Lowered(node, defaults, engine=engine, after_word=after_word)
    if isinstance(node, ir.Select) or not node.logit_bias:  # its ids are those of one model
        if len(_lowered) >= _MOST_LOWERED:
            _lowered.clear()
        # With node and options, so that their ids are nobody else's.
        _lowered[key] = (node, defaults, made)
    return made


def _biases(node: ir.Gen, engine: Engine) -> tuple[tuple[int, float], ...]:
    """The biases by id. Raises ValueError for a text that is not one token of the model."""
    biases: dict[int, float] = {}
    for token, bias in node.logit_bias:
        ids = [token] if isinstance(token, int) else _ids_of(token, engine)
        if len(ids) != 1:
            raise ValueError(
                f"{node.describe()}: logit_bias has the text {token!r}, which is {len(ids)} tokens "
                f"of {engine.name}: {ids}; name one token, by its text or its id"
            )
        if ids[0] in biases:
            raise ValueError(f"{node.describe()}: logit_bias names the token {token!r} twice")
        biases[ids[0]] = bias
    return tuple(biases.items())


def _ids_of(text: str, engine: Engine) -> Sequence[int]:
    encode = engine.vocabulary.encode
    if encode is None:
        raise ValueError(f"{engine.name} cannot tell the token of {text!r}; name it by its id")
    return encode(text.encode())


@lru_cache(maxsize=4096)
def _resolve(said: Options, defaults: Options) -> tuple[Sampling, int | None]:
    options = said.over(defaults)
    return options.sampling(), options.max_tokens


_Text = tuple[PieceKind, str, tuple[int, ...]]


class Pending:
    """What a branch has recorded and not yet handed over: finished steps, then literal text."""

    __slots__ = ("_steps", "_texts")

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._texts: list[_Text] = []

    def text(self, text: str, kind: PieceKind = "user") -> None:
        """More literal text."""
        if text:
            self._texts.append((kind, text, ()))

    def generated(self, text: str, ids: tuple[int, ...], healed: str) -> None:
        """What a hole has written before, with the end of the text before it that it took over."""
        left = len(healed)
        while left:
            before = self._texts.pop()[1]
            self.text(before[: max(0, len(before) - left)])
            left = max(0, left - len(before))
        if ids:
            self._texts.append(("ids", text, ids))

    def pieces(self) -> tuple[Piece, ...]:
        """The literal text after the last hole."""
        if len(self._texts) == 1:
            ((kind, text, ids),) = self._texts
            return (Piece(text, kind, ids),)
        return tuple(_pieces(self._texts))

    def cut(self) -> None:
        """What follows is a text of its own, which can leave the prompt again."""
        self._end_text()

    @property
    def ends_in_word(self) -> bool:
        """Whether text of the program stands last, and does not end in white space."""
        return (
            bool(self._texts)
            and self._texts[-1][0] == "user"
            and not self._texts[-1][1][-1:].isspace()
        )

    def hole(self, hole: Gen | Select) -> None:
        """A hole, after all text so far."""
        self._end_text()
        self._steps.append(hole)

    def take(self, *, text_too: bool = False) -> tuple[Step, ...]:
        """The steps up to the last hole, which are then no longer pending.

        `text_too`: also the text after it, because the program has ended.
        """
        if text_too:
            self._end_text()
        steps = tuple(self._steps)
        self._steps.clear()
        return steps

    def carried(self) -> Pending:
        """The pending text alone, for a branch that leaves here."""
        branch = Pending()
        branch._texts = self._texts.copy()
        return branch

    def _end_text(self) -> None:
        if self._texts:
            self._steps.append(Append(self.pieces()))
            self._texts.clear()


def _pieces(texts: list[_Text]) -> Iterator[Piece]:
    """Neighbours of one kind as one piece; special tokens and ids stay pieces of their own."""
    for kind, group in groupby(texts, key=itemgetter(0)):
        if kind in ("special", "ids"):
            yield from (Piece(text, kind, ids) for _, text, ids in group)
        else:
            yield Piece("".join(text for _, text, _ in group), kind)
