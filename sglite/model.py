"""A model in use: its name, its engine, and which one a run takes."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, Self

from sglite.errors import ModelError, SgliteError
from sglite.runtime.engines.base import Engine

if TYPE_CHECKING:
    from sglite.chat import ChatTemplate
    from sglite.grammars import Vocabulary
    from sglite.runtime.engines.chat_api import Extension


logger = logging.getLogger("sglite.fallback")


class Model:
    """A model with its engine, in this process. Close it, or use it in a `with`, to free it.

    `name` is a name that `sglite pull` knows, the path of a GGUF file or of a folder with
    safetensors (then `weights` says what its matrices become, None: what they are), or
    `hf:ORG/REPO/FILE`; a known name is fetched on first use. `threads` None: one per core.
    `context`: most tokens of one sequence, None: what the model was made for. `kv_memory` in bytes,
    None: 1 GiB or less.
    `prefix_cache` False computes every prompt anew; the path of a folder also saves prefixes
    there, so that a prompt that was seen before a restart costs nothing after it.

    `backend="scripted"` answers without a model: `script` maps a variable to its answer, to a list
    of answers, one for each occurrence, or to a function of the text so far; a hole without one
    gets some valid text. The arguments that size an engine mean nothing there.

    `backend="remote"` asks the OpenAI-compatible endpoint at `url` (`http://localhost:8000/v1`) for
    the model of that name. `api_key` None: OPENAI_API_KEY of the environment, or none.
    `extensions` names what the endpoint can do beyond OpenAI's own: "structured_outputs" (regex,
    grammars), "sampling" (top_k, min_p, ...), "prefill" (holes behind text of their own turn). What
    it cannot do is a ProgramError that names it.

    `fallback` is the model that a run goes to when this one cannot do it: a prompt that does not
    fit, a model that does not load, an engine that fails. It stays yours to close.

    Raises ModelError for a model that cannot be found or read, ValueError for an argument out of
    range.
    """

    def __init__(
        self,
        name: str | PathLike[str],
        backend: str = "cpu",
        *,
        threads: int | None = None,
        context: int | None = None,
        kv_memory: int | None = None,
        kv_dtype: Literal["f16", "f32"] = "f16",
        prefix_cache: bool | str | PathLike[str] = True,
        weights: Literal["q8_0", "q4_0"] | None = None,
        script: Mapping[str, Any] | None = None,
        url: str | None = None,
        api_key: str | None = None,
        extensions: Sequence[Extension] = (),
        fallback: Model | None = None,
    ) -> None:
        if fallback is not None and not isinstance(fallback, Model):
            raise TypeError(f"fallback= takes a Model, got {fallback!r}; write sgl.Model(...)")
        self._fallback = fallback
        if backend != "remote" and (url is not None or api_key is not None or extensions):
            raise ValueError(
                f"url=, api_key= and extensions= are for backend='remote', not for {backend!r}"
            )
        if backend == "scripted":
            from sglite.runtime.engines.scripted import ScriptedEngine
            from sglite.tools.formats import script_of

            self._adopt(ScriptedEngine(fspath(name), script=script_of(script or {})))
            return
        if script is not None:
            raise ValueError(f"script= is for backend='scripted', not for {backend!r}")
        if backend == "remote":
            from sglite.runtime.engines.remote import RemoteEngine

            if url is None:
                raise ValueError("backend='remote' needs url=, such as 'http://localhost:8000/v1'")
            self._adopt(
                RemoteEngine(
                    fspath(name), url=url, api_key=api_key, extensions=extensions, context=context
                )
            )
            return
        from sglite.runtime.load import load_engine

        try:
            engine = load_engine(
                fspath(name),
                backend=backend,
                threads=threads,
                context=context,
                kv_memory=kv_memory,
                kv_dtype=kv_dtype,
                prefix_cache=prefix_cache,
                weights=weights,
            )
        except (SgliteError, OSError, MemoryError) as error:
            if fallback is None:
                raise
            from sglite.runtime.engines.unloaded import UnloadedEngine

            logger.warning("%s does not load, %s answers: %s", name, fallback.name, error)
            self.failure = ModelError(f"{fspath(name)} does not load: {error}")
            self.failure.__cause__ = error
            engine = UnloadedEngine(fspath(name), self.failure)
        self._adopt(engine)

    _fallback: Model | None = None
    failure: ModelError | None = None
    """Why it did not load; a model without a fallback raises that instead."""

    def _adopt(self, engine: Engine) -> None:
        self.engine = engine
        self.name = engine.name
        self.closed = False
        self._chat: ChatTemplate | None = None
        self._lock = threading.Lock()
        # Also ends the engine's thread at exit, before the interpreter is taken down under it.
        self._shutdown = weakref.finalize(self, engine.shutdown)

    @property
    def fallback(self) -> Model | None:
        """The model that takes what this one cannot do."""
        return self._fallback

    @property
    def path(self) -> str | None:
        """The model's file; None for a model without one."""
        path = self.engine.path
        return None if path is None else fspath(path)

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the model's tokeniser."""
        return self.engine.vocabulary

    @property
    def chat(self) -> ChatTemplate:
        """The model's own chat template. Raises ModelError for a base model, which has none."""
        from sglite.chat import ChatTemplate

        with self._lock:
            if self._chat is None:
                source = self.engine.chat_template
                if source is None:
                    raise ModelError(
                        f"{self.name} is a base model without a chat template; "
                        "write plain prompts instead of system(), user() and assistant()"
                    )
                self._chat = ChatTemplate(source, self.engine.template_variables)
            return self._chat

    def stats(self) -> dict[str, Any]:
        """The engine's counters since it started."""
        return self.engine.stats()

    def close(self) -> None:
        """End the engine; runs under way fail. Closing twice is fine."""
        self.closed = True
        self._shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Model {self.name!r}{' closed' if self.closed else ''}>"


_in_use: ContextVar[Model | None] = ContextVar("sglite_model", default=None)
_latest: Model | None = None
"""For threads that started without a context of their own."""


class Use:
    """The effect of `use(model)`. As a context manager it ends with the block."""

    def __init__(self, model: Model) -> None:
        global _latest
        self._model = model
        self._earlier = _latest
        self._token = _in_use.set(model)
        _latest = model

    def __enter__(self) -> Model:
        return self._model

    def __repr__(self) -> str:
        return f"<using {self._model.name}>"

    def __exit__(self, *_: object) -> None:
        global _latest
        _in_use.reset(self._token)
        if _latest is self._model:
            _latest = self._earlier


def use(model: Model) -> Use:
    """Run programs on this model from now on, or, in a `with`, for the length of the block.

    A run takes the model that is in use when it is submitted. Inside of a block that holds for this
    thread or task alone; other threads that have chosen no model follow the latest choice.
    """
    if not isinstance(model, Model):
        raise TypeError(f"use() takes a Model, got {model!r}; write sgl.use(sgl.Model(...))")
    return Use(model)


def context_with(model: Model) -> Context:
    """A copy of this thread's context in which `model` is in use; nobody else's choice changes."""
    context = copy_context()
    context.run(_in_use.set, model)
    return context


def current_model() -> Model:
    """The model in use. Raises ModelError if there is none."""
    model = _in_use.get() or _latest
    if model is None:
        raise ModelError(
            "no model is in use; write sgl.use(sgl.Model('smollm2')), or pass model= to the run"
        )
    return model
