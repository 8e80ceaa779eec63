"""A hole as a request to an OpenAI-compatible endpoint, and what that endpoint cannot do.

The turns of a program arrive as pieces of a chat template. The template of a remote model is not
known here, and must not be: `CHAT_TEMPLATE` only marks where turns begin and end, so that messages
can be made of them again. A program without turns is a plain completion.

Fields: https://platform.openai.com/docs/api-reference/chat and, for what goes beyond it, vLLM's
OpenAI-compatible server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sglite.errors import ModelError
from sglite.grammars.quotes import without_quotes
from sglite.options import GREEDY, Sampling
from sglite.runtime.segment import Constraint, Gen, Hole, Piece, Select

_OPEN, _CONTENT, _CLOSE = "\ue000", "\ue001", "\ue002"  # they stand in template pieces alone

CHAT_TEMPLATE = (
    f"{{% for message in messages %}}{_OPEN}{{{{ message['role'] }}}}{_CONTENT}"
    f"{{{{ message['content'] }}}}{_CLOSE}{{% endfor %}}"
    f"{{% if add_generation_prompt %}}{_OPEN}assistant{_CONTENT}{{% endif %}}"
)

Extension = Literal["structured_outputs", "sampling", "prefill"]
EXTENSIONS: dict[Extension, str] = {
    "structured_outputs": "regex, grammars, and choices as they are, in `structured_outputs`",
    "sampling": "top_k, min_p, repetition_penalty, min_tokens, ignore_eos and stop_ids",
    "prefill": "answers that go on where the program has begun an assistant turn",
}
"""What some endpoints (vLLM, SGLang, `sglite serve`) can do beyond OpenAI's own."""

MOST_STOPS = 4
"""Stop texts that OpenAI's endpoint takes; for more than these the text has to be cut here."""


@dataclass(frozen=True, slots=True)
class Request:
    """`path` below the base URL, the JSON body, and how to read the text of the answer: `choice`
    tells that it stands in the JSON object that was asked for."""

    path: str
    body: dict[str, Any]
    choice: bool = False


class ChatApi:
    """Makes the requests for one model of one endpoint with these extensions."""

    def __init__(self, model: str, url: str, extensions: Iterable[Extension]) -> None:
        self._model = model
        self._url = url
        self._extensions = frozenset(extensions)
        unknown = sorted(self._extensions - EXTENSIONS.keys())
        if unknown:
            raise ValueError(
                f"extensions={unknown!r} are unknown; there is: {', '.join(EXTENSIONS)}"
            )

    def check(self, hole: Hole) -> None:
        """Raises ModelError for what the endpoint cannot do, wherever the hole stands."""
        if isinstance(hole, Gen):
            self._generation(hole)
        else:
            self._selection(hole)

    def request(self, pieces: Sequence[Piece], hole: Hole) -> Request:
        """The request for a hole after these pieces. Raises ModelError for what cannot be asked."""
        body: dict[str, Any] = {"model": self._model}
        path = "completions"
        if any(piece.kind == "template" for piece in pieces):
            path = "chat/completions"
            body["messages"] = messages = self._messages(pieces, hole)
            if messages[-1]["role"] == "assistant":
                body |= {"continue_final_message": True, "add_generation_prompt": False}
        else:
            body["prompt"] = "".join(piece.text for piece in pieces)
        choice = False
        if isinstance(hole, Gen):
            body |= self._generation(hole)
        else:
            body |= self._selection(hole)
            choice = "response_format" in body
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        return Request(path, body, choice)

    def _messages(self, pieces: Sequence[Piece], hole: Hole) -> list[dict[str, str]]:
        messages: list[dict[str, str]] = []
        open_turn = False
        for piece in pieces:
            if piece.kind != "template":
                if open_turn:
                    messages[-1]["content"] += piece.text
                elif piece.text.strip():
                    raise ModelError(
                        f"the text {piece.text[:40]!r} stands outside of every turn, and "
                        f"{self._url} takes turns; put it into one"
                    )
                continue
            for mark in _marks(piece.text):
                open_turn = mark is not None
                if mark is not None:
                    messages.append({"role": mark, "content": ""})
        if not open_turn or messages[-1]["role"] != "assistant":
            where = f"in a {messages[-1]['role']} turn" if open_turn else "outside of every turn"
            raise ModelError(
                f"hole {hole.name!r} stands {where}; {self._url} writes assistant turns alone"
            )
        if messages[-1]["content"]:
            self._need("prefill", f"hole {hole.name!r} stands behind text of its own turn")
            return messages
        return messages[:-1]

    def _generation(self, gen: Gen) -> dict[str, Any]:
        body: dict[str, Any] = {"max_tokens": gen.max_tokens} | self._sampling(gen)
        stops = [*gen.stop, *gen.until]
        if stops:
            body["stop"] = stops[:MOST_STOPS]
        if gen.logit_bias:
            body["logit_bias"] = {str(token): bias for token, bias in gen.logit_bias}
        for option, said in (("stop_regex=", gen.stop_regex), ("logprobs=", gen.top_logprobs)):
            if said:
                raise ModelError(
                    f"hole {gen.name!r} has {option}, which needs the tokens of the model; "
                    f"{self._url} gives text alone"
                )
        extra = {
            "min_tokens": gen.min_tokens,
            "ignore_eos": gen.ignore_eos,
            "stop_token_ids": list(gen.stop_ids),
        }
        extra = {name: value for name, value in extra.items() if value}
        if extra:
            self._need("sampling", f"hole {gen.name!r} has {', '.join(extra)}")
        return body | extra | self._constraint(gen.name, gen.constraint)

    def _selection(self, select: Select) -> dict[str, Any]:
        if select.method != "prob":
            raise ModelError(
                f"select {select.name!r} has method={select.method!r}, which needs the "
                f"probabilities of the model; {self._url} gives text alone"
            )
        body = {"temperature": select.sampling.temperature}
        if "structured_outputs" in self._extensions:
            return body | {"structured_outputs": {"choice": list(select.choices)}}
        schema = {
            "type": "object",
            "properties": {"choice": {"type": "string", "enum": list(select.choices)}},
            "required": ["choice"],
            "additionalProperties": False,
        }
        return body | _response_format(schema)

    def _sampling(self, gen: Gen) -> dict[str, Any]:
        sampling = gen.sampling
        body: dict[str, Any] = {"temperature": sampling.temperature}
        if sampling.temperature:
            body["seed"] = gen.key & 0x7FFF_FFFF
        for name in ("top_p", "presence_penalty", "frequency_penalty"):
            if getattr(sampling, name) != getattr(GREEDY, name):
                body[name] = getattr(sampling, name)
        extra = {name: getattr(sampling, name) for name in ("top_k", "min_p", "repetition_penalty")}
        extra = {k: v for k, v in extra.items() if v != getattr(Sampling(), k)}
        if extra:
            self._need("sampling", f"hole {gen.name!r} has {', '.join(extra)}")
        return body | extra

    def _constraint(self, name: str, constraint: Constraint | None) -> dict[str, Any]:
        if constraint is None:
            return {}
        if constraint.kind == "json_schema":
            return _response_format(without_quotes(json.loads(str(constraint.source))))
        formats = dict(constraint.options)
        asked = {"regex": "regex", "grammar": "grammar"}.get(constraint.kind)
        if asked is None or formats.get("format", "gbnf") != "gbnf":
            raise ModelError(
                f"hole {name!r} has a grammar that no endpoint takes; write it in GBNF, or as a "
                "regex or a type"
            )
        self._need("structured_outputs", f"hole {name!r} has a {asked}")
        return {"structured_outputs": {asked: constraint.source}}

    def _need(self, extension: Extension, what: str) -> None:
        if extension not in self._extensions:
            raise ModelError(
                f"{what}, and {self._url} is not known to take {EXTENSIONS[extension]}; if it "
                f"does, open the model with extensions=[{extension!r}]"
            )


def _response_format(schema: Any) -> dict[str, Any]:
    named = {"name": "answer", "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _marks(template: str) -> Iterable[str | None]:
    """The turns that a template piece opens, by role, and None for each that it closes."""
    for part in template.replace(_CLOSE, f"{_OPEN}{_CLOSE}{_CONTENT}").split(_OPEN)[1:]:
        role = part.partition(_CONTENT)[0]
        yield None if role == _CLOSE else role
