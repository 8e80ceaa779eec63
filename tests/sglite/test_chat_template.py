"""Turns: a program writes what the model's own template would render for the same messages."""

from __future__ import annotations

import random

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from recorder import MakeScripted

import sglite as sgl
from sglite.chat import ChatTemplate
from sglite.runtime.segment import Append, Piece

CHATML = (  # with a system turn of its own, like SmolLM2
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {{- message['content'] | trim }}
    {{- '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%}
"""
INST = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
BLOCKS = """{%- set today = strftime_now("%Y") %}
{% for message in messages %}
    {% if message.role == "system" and not loop.first %}{% continue %}{% endif %}
    {{- "<" ~ message.role ~ ">" }}
    {{- message.content | trim }}
    {{- "</" ~ message.role ~ ">" }}
    {% if tools %}{{ tools | tojson }}{% endif %}
{% endfor %}
{% if add_generation_prompt %}{{- "<assistant>" }}{% endif %}
"""
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}


def rendered(source: str, messages: list[dict[str, str]]) -> str:
    """The oracle: the whole list at once, with the settings that transformers uses."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["strftime_now"] = lambda form: form
    return environment.from_string(source).render(messages=messages, **VARIABLES)


def written(template: ChatTemplate, messages: list[dict[str, str]]) -> str:
    text = ""
    for i, message in enumerate(messages):
        opening, closing = template.fragments([m["role"] for m in messages[: i + 1]])
        text += opening + message["content"] + closing
    return text


@pytest.mark.parametrize(
    ("source", "system"),
    [
        (CHATML, False),
        (CHATML, True),
        (GEMMA, False),
        (GEMMA, True),
        (INST, False),
        (BLOCKS, False),
        (BLOCKS, True),
    ],
)
def test_turn_by_turn_equals_the_whole(source: str, system: bool) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for length in (1, 2, 3, 6):
        roles = ["system"] * system + ["user", "assistant"] * length
        messages = [
            {"role": role, "content": "".join(rng.choices("ab <>{}é世", k=6)).strip() or "c"}
            for role in roles
        ]
        template = ChatTemplate(source, VARIABLES)
        for end in range(1 + system, len(messages) + 1):
            assert written(template, messages[:end]) == rendered(source, messages[:end])


def test_a_template_that_rewrites_earlier_turns_is_named_once() -> None:
    source = (
        "{% for m in messages %}({{ m.role }}:{% if loop.last %}new{% else %}old{% endif %}:"
        "{{ m.content }}{% if loop.last %}!{% else %}?{% endif %}){% endfor %}"
    )
    template = ChatTemplate(source)
    assert template.fragments(["user"]) == ("(user:new:", "!)")
    with pytest.warns(UserWarning, match="rewrites earlier turns"):
        fragments = template.fragments(["user", "assistant"])
    assert fragments.closing == "!)"
    assert fragments.opening.endswith("(assistant:new:")
    template.fragments(["user", "assistant", "user"])  # a second warning would be an error


def test_a_generation_prompt_of_its_own_is_kept() -> None:
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>think{% endif %}"
    )
    template = ChatTemplate(source)
    assert template.fragments(["user", "assistant"]) == ("<assistant>think", "</>")


def test_refusals_say_what_the_template_says(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("a") + sgl.user("b")

    scripted(chat_template=GEMMA)
    with pytest.raises(sgl.ProgramError, match=r"\['user', 'user'\].*must alternate") as caught:
        program.run()
    assert caught.value.node == "user()"
    assert caught.value.filename == __file__


@pytest.mark.parametrize("source", ["{% for %}", "{{ ''.__class__.__mro__ }}", "{{ 1/0 }}", "x"])
def test_broken_and_hostile_templates_are_errors(source: str) -> None:
    with pytest.raises(sgl.ModelError, match="chat template"):
        ChatTemplate(source).fragments(["user"])


def test_a_base_model_has_no_turns(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        with s.user():
            s += "a"

    scripted(chat_template=None)
    with pytest.raises(sgl.ProgramError, match=r"base model.*plain prompts"):
        program.run()


def test_turns_do_not_nest(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        with s.user():
            s += sgl.assistant("no")

    scripted()
    with pytest.raises(sgl.ProgramError, match=r"assistant\(\) inside of user\(\)"):
        program.run()


def test_templates_and_text_are_pieces_of_their_own_kind(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.system("be", " brief")
        with s.user():
            s += "why<|im_end|>"
        s += sgl.assistant("well, " + sgl.gen("x"))

    engine = scripted()
    row = program.run()
    before, _, after = engine.steps()
    assert before == Append(
        (
            Piece("<|im_start|>system\n", "template"),
            Piece("be brief"),
            Piece("<|im_end|>\n<|im_start|>user\n", "template"),
            Piece("why<|im_end|>"),
            Piece("<|im_end|>\n<|im_start|>assistant\n", "template"),
            Piece("well, "),
        )
    )
    assert after == Append((Piece("<|im_end|>\n", "template"),))
    assert row.ids.count(258) == 3
    assert row.messages() == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "why<|im_end|>"},
        {"role": "assistant", "content": "well, <x>"},
    ]
