"""Functions with their f-strings, calls and `is` made visible to a trace.

An f-string hands out a finished text, in which the place of a value that is not known yet could be
cut, counted or compared by accident. So a trace runs the program from its source, with every
f-string as a call of `hooks.text`, every function that is called seen by `hooks.callee` first, and
what `is` and `match` look at by `hooks.known`. Lines, globals and closures stay as they are.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import tokenize
import warnings
from collections.abc import Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any, Protocol

_HOOKS = "__sglite_trace__"
_FUTURE_FLAGS = 0x1FF0000  # those of `from __future__ import ...` in co_flags


class Hooks(Protocol):
    """What the rewritten code calls."""

    def text(self, *parts: Any) -> Any:
        """An f-string: constants, and (value, conversion, spec) for each replacement field."""

    def callee(self, function: Any) -> Any:
        """What is to be called instead of `function`."""

    def known(self, value: Any) -> Any:
        """`value`, if it is one whose identity may be asked."""


def rewritten(function: FunctionType, hooks: Hooks) -> FunctionType | None:
    """`function` with hooks; itself if it has them already; None if its source is not there."""
    code = function.__code__
    if _HOOKS in code.co_freevars:
        return function
    changed = _changed(code)
    if changed is None:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[_HOOKS] = CellType(hooks)
    closure = tuple(cells[name] for name in changed.co_freevars)
    again = FunctionType(
        changed, function.__globals__, function.__name__, function.__defaults__, closure
    )
    again.__kwdefaults__ = function.__kwdefaults__
    again.__dict__.update(function.__dict__)
    return again


@lru_cache(maxsize=1024)
def _changed(code: CodeType) -> CodeType | None:
    """The code with hooks, a free variable more; None if the source is not there."""
    node = _find(code)
    if node is None or _has_private_names(node):
        return None
    if isinstance(node, ast.Lambda):
        result = ast.copy_location(ast.Return(node.body), node.body)
        body: list[ast.stmt] = [result]
        node = ast.copy_location(ast.FunctionDef("by_lambda", node.args, body, [], None), result)
    inner = _Hooked().visit(node)
    inner.decorator_list = []
    names = [*code.co_freevars, _HOOKS]
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    outer = ast.FunctionDef("outer", arguments, [inner], [], None)
    ast.copy_location(outer, inner)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & _FUTURE_FLAGS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):  # a `super()` or a `nonlocal` that this form does not take
        return None
    found = _inner(_inner(whole, "outer"), inner.name)
    count = code.co_argcount + code.co_kwonlyargcount
    same = found is not None and found.co_varnames[:count] == code.co_varnames[:count]
    return found if same else None  # another: the file is no longer what was imported


def _find(code: CodeType) -> Any:
    """A fresh tree of the function that the code was made of."""
    lines = linecache.getlines(code.co_filename)
    tree = _parsed("".join(lines)) or _parsed_block(lines, code.co_firstlineno)
    found: list[Any] = [node for node in ast.walk(tree) if _is_of(node, code)] if tree else []
    if len(found) > 1:  # several lambdas on one line
        spots = {(line, column) for line, _, column, _ in code.co_positions()}
        found = [n for n in found if (n.body.lineno, n.body.col_offset) in spots]
    return found[0] if len(found) == 1 else None


def _parsed(text: str) -> ast.AST | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given when the file was imported
            return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _parsed_block(lines: list[str], first: int) -> ast.AST | None:
    """The tree of the block at a line, for a program in a file that is not all Python."""
    try:
        block = "".join(inspect.getblock(lines[first - 1 :]))
    except (SyntaxError, tokenize.TokenError, IndexError):
        return None
    indented = block[:1].isspace()
    tree = _parsed(f"if 1:\n{block}" if indented else block)
    return ast.increment_lineno(tree, first - 1 - indented) if tree else None


def _is_of(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    return (
        isinstance(node, ast.Lambda)
        and code.co_name == "<lambda>"
        and node.lineno == code.co_firstlineno
    )


def _inner(code: CodeType | None, name: str) -> CodeType | None:
    constants = code.co_consts if code is not None else ()
    return next((c for c in constants if isinstance(c, CodeType) and c.co_name == name), None)


def _has_private_names(node: ast.AST) -> bool:
    """Names that mean something else inside of a class."""
    names = (getattr(each, "attr", getattr(each, "id", "")) for each in ast.walk(node))
    return any(name.startswith("__") and not name.endswith("__") for name in names)


class _Hooked(ast.NodeTransformer):
    """Puts the hooks in."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        parts = list(self._parts(node))
        if all(isinstance(part, ast.Constant) for part in parts):
            return node
        return _call("text", parts, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _call("callee", [node.func], node.func)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
            node.left = _call("known", [node.left], node.left)
            node.comparators = [_call("known", [each], each) for each in node.comparators]
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        self.generic_visit(node)
        node.subject = _call("known", [node.subject], node.subject)
        return node

    def _parts(self, node: ast.JoinedStr) -> Iterator[ast.expr]:
        for part in node.values:
            if not isinstance(part, ast.FormattedValue):
                yield part
                continue
            value = self.visit(part.value)
            conversion = ast.Constant(chr(part.conversion) if part.conversion > 0 else "")
            spec = self.visit(part.format_spec) if part.format_spec else ast.Constant("")
            yield ast.Tuple([value, conversion, spec], ast.Load())


def _call(hook: str, arguments: list[ast.expr], where: ast.AST) -> ast.Call:
    function = ast.Attribute(ast.Name(_HOOKS, ast.Load()), hook, ast.Load())
    call = ast.Call(function, arguments, [])
    ast.copy_location(call, where)
    return ast.fix_missing_locations(call)
