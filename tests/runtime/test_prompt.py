"""Pieces to ids, and healing."""

from __future__ import annotations

from array import array

import pytest
from fakes import TOKEN_BYTES, TURN, FakeTokenizer, FakeVocabulary
from hypothesis import given
from hypothesis import strategies as st

from sglite.runtime.cache.pages import PagePool
from sglite.runtime.prompt import encode_pieces, heal
from sglite.runtime.segment import Piece
from sglite.runtime.sequence import Sequence

TOKENIZER = FakeTokenizer()
LONGEST = max(map(len, TOKEN_BYTES))


def spell(ids) -> list[str]:
    return ["<turn>" if t == TURN else TOKEN_BYTES[t].decode() for t in ids]


def test_pieces_between_special_tokens_are_one_text():
    pieces = [
        Piece("<turn>a", "template"),
        Piece("b"),
        Piece("c<turn>d", "template"),
        Piece("e"),
    ]
    prompt = encode_pieces(pieces, TOKENIZER)
    assert spell(prompt.ids) == ["<turn>", "abc", "<turn>", "de"]
    assert prompt.healable == 0, "the token `de` is partly the template's"


def test_user_text_never_becomes_special():
    prompt = encode_pieces([Piece("<turn>")], TOKENIZER)
    assert TURN not in prompt.ids
    assert "".join(spell(prompt.ids)) == "<turn>"


@pytest.mark.parametrize("text", ["<turn>x", "nothing", "", "<turn><turn>"])
def test_a_special_piece_is_one_special_token(text):
    with pytest.raises(ValueError, match="not the text of one special token"):
        encode_pieces([Piece(text, "special")], TOKENIZER)
    assert list(encode_pieces([Piece("<turn>", "special")], TOKENIZER).ids) == [TURN]


@given(st.lists(st.tuples(st.text(alphabet="abcde \n<>", max_size=6), st.booleans()), max_size=6))
def test_healable_ids_lie_in_the_last_user_text(parts):
    pieces = [Piece(t, "user" if user else "template") for t, user in parts]
    prompt = encode_pieces(pieces, TOKENIZER)
    user = ""
    for text, is_user in reversed(parts):
        if not is_user and text:
            break
        user = text + user
    healable = b"".join(TOKEN_BYTES[t] for t in prompt.ids[len(prompt.ids) - prompt.healable :])
    assert user.encode().endswith(healable)
    rest = prompt.ids[: len(prompt.ids) - prompt.healable]
    if rest:
        # The next token to the left crosses the border.
        assert len(healable) + len(TOKEN_BYTES[rest[-1]]) > len(user.encode())


def healed(text: str, kind: str = "user") -> tuple[bytes, list[str]]:
    sequence = Sequence(0, PagePool(2))
    prompt = encode_pieces([Piece(text, kind)], TOKENIZER)
    sequence.append_literal(array("i", prompt.ids), prompt.healable)
    prefix = heal(sequence, FakeVocabulary(), TOKEN_BYTES, LONGEST)
    return prefix, spell(sequence.ids)


def test_the_longest_run_of_last_tokens_is_healed():
    assert healed("zz1") == (b"1", ["z", "z"])
    assert healed("zz t") == (b" t", ["z", "z"]), "two tokens become ` the`"
    assert healed("zzx") == (b"", ["z", "z", "x"]), "no token goes on from x"
    assert healed("zz123") == (b"", ["z", "z", "123"])


def test_healing_leaves_the_first_id_and_template_text():
    assert healed("1") == (b"", ["1"])
    assert healed("z1", "template") == (b"", ["z", "1"])


def test_a_model_may_have_learnt_a_space_in_front_of_texts():
    spaced = FakeTokenizer(space_prefix=True)
    pieces = [Piece("a"), Piece("b<turn>c", "template"), Piece("d"), Piece("", "ids", (TURN,))]
    prompt = encode_pieces([*pieces, Piece("e")], spaced)
    ends = ["<turn>", " ", "cd", "<turn>", "e"]
    assert spell(prompt.ids) == ["ab", *ends], "the second <turn> may be any id that came along"
    assert spell(prompt.opening.ids) == [" ", "ab", *ends]
    for pieces in ([], [Piece("<turn>", "special"), Piece("a")]):
        assert encode_pieces(pieces, spaced).opening is None
    assert encode_pieces([Piece("a")], TOKENIZER).opening is None


@given(st.text(alphabet="abcde 1t", max_size=6))
def test_the_space_is_no_text_of_the_user(text):
    prompt = encode_pieces([Piece(text)], FakeTokenizer(space_prefix=True))
    opening = prompt.opening or prompt
    healable = b"".join(TOKEN_BYTES[t] for t in opening.ids[len(opening.ids) - opening.healable :])
    assert text.encode().endswith(healable)
