"""Chat templates that behave as those of the families with tools do, as short as they can be."""

from __future__ import annotations

# Tools in the system turn; results of neighbouring tool turns share one user turn.
HERMES = r"""
{%- if tools -%}
    {{- '<|im_start|>system\n' -}}
    {%- if messages[0].role == 'system' -%}{{- messages[0].content -}}{%- endif -%}
    {{- '\nTools:' -}}
    {%- for tool in tools -%}{{- '\n' ~ (tool | tojson) -}}{%- endfor -%}
    {{- '\nAnswer in <tool_call></tool_call>.<|im_end|>\n' -}}
{%- elif messages[0].role == 'system' -%}
    {{- '<|im_start|>system\n' ~ messages[0].content ~ '<|im_end|>\n' -}}
{%- endif -%}
{%- for m in messages -%}
    {%- if m.role == 'tool' -%}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}
            {{- '<|im_start|>user' -}}
        {%- endif -%}
        {{- '\n<tool_response>\n' ~ m.content ~ '\n</tool_response>' -}}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}
            {{- '<|im_end|>\n' -}}
        {%- endif -%}
    {%- elif m.role != 'system' -%}
        {{- '<|im_start|>' ~ m.role ~ '\n' ~ m.content -}}
        {%- for call in m.tool_calls -%}
            {{- '<tool_call>\n' ~ (call.function | tojson) ~ '\n</tool_call>' -}}
        {%- endfor -%}
        {{- '<|im_end|>\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
"""
# Tools before the first user text; results quoted; a call is the whole turn.
LLAMA3 = r"""
{#- calls of the model may begin with <|python_tag|> -#}
{%- for m in messages -%}
    {{- '<|im_start|>' ~ (m.role if m.role != 'tool' else 'ipython') ~ '\n' -}}
    {%- if m.role == 'tool' -%}
        {{- m.content | tojson -}}
    {%- else -%}
        {%- set first = 1 if messages[0].role == 'system' else 0 -%}
        {%- if tools and m.role == 'user' and loop.index0 == first -%}
            {%- for tool in tools -%}{{- (tool | tojson) ~ '\n' -}}{%- endfor -%}
        {%- endif -%}
        {{- m.content -}}
    {%- endif -%}
    {{- '<|im_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
"""
# Ids of nine characters; an answer that results follow must have its calls.
MISTRAL = r"""
{%- set ns = namespace(index=0) -%}
{{- bos_token -}}
{%- for m in messages -%}
    {%- if not (m.role == 'tool' or m.tool_calls is defined) -%}
        {%- if (m.role == 'user') != (ns.index % 2 == 0) -%}
            {{- raise_exception('roles must alternate') -}}
        {%- endif -%}
        {%- set ns.index = ns.index + 1 -%}
    {%- endif -%}
    {%- if m.role == 'user' -%}
        {%- if tools and loop.last -%}{{- '[TOOLS]' ~ (tools | tojson) ~ '[/TOOLS]' -}}{%- endif -%}
        {{- '[INST] ' ~ m.content ~ '[/INST]' -}}
    {%- elif m.role == 'tool' -%}
        {%- if m.tool_call_id | length != 9 -%}{{- raise_exception('nine') -}}{%- endif -%}
        {{- '[RESULT] {"content": ' ~ m.content -}}
        {{- ', "call_id": "' ~ m.tool_call_id ~ '"}[/RESULT]' -}}
    {%- elif m.tool_calls is defined -%}
        {{- '[TOOL_CALLS] [' -}}
        {%- for call in m.tool_calls -%}{{- call.function | tojson -}}{%- endfor -%}
        {{- ']' ~ eos_token -}}
    {%- else -%}
        {{- ' ' ~ m.content ~ eos_token -}}
    {%- endif -%}
{%- endfor -%}
"""
