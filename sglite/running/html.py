"""Rows and graphs in a notebook: HTML without scripts, and nothing in it but our own markup."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglite.running.result import Result

_MOST = 4000  # characters of one text

_BOX = "font-family:monospace;white-space:pre-wrap;border:1px solid #8886;padding:6px"
_HOLE = "background:#2b83;border-radius:3px"
_BAD = "color:#c22"


def row_html(row: Result) -> str:
    """The variables of a row and its text, in which what the model wrote is marked."""
    lines = [
        f"<tr><th style='text-align:left'>{_text(name)}</th><td>{_text(_shown(value))}</td></tr>"
        for name, value in row.variables.items()
    ]
    error = "" if row.error is None else f"<p style='{_BAD}'>{_text(str(row.error))}</p>"
    usage = row.usage
    counts = (
        f"row {row.row}, seed {row.seed}, {usage.prompt_tokens} tokens of prompt "
        f"({usage.cached_tokens} cached), {usage.decoded_tokens} decoded, "
        f"{usage.forced_tokens} forced, {row.timing.total:.2f} s"
    )
    return (
        f"<div>{error}<table>{''.join(lines)}</table>"
        f"<details><summary>{_text(counts)}</summary><div style='{_BOX}'>{_parts(row)}</div>"
        "</details></div>"
    )


def _parts(row: Result) -> str:
    written = []
    for part in row._record.filled_parts():
        if isinstance(part, str):
            written.append(_text(part))
        else:
            title = escape(f"{part.name}: {part.done.finish}", quote=True)
            text = _text(part.done.text)
            written.append(f"<span style='{_HOLE}' title=\"{title}\">{text}</span>")
    return "".join(written)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    short = text if len(text) <= _MOST else f"{text[:_MOST]} ... ({len(text)} characters)"
    return escape(short)
