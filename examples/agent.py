"""An agent with three tools: a calculator, a search in files, and a database that it may only read.

python examples/agent.py                    four questions, written below
python examples/agent.py "What is 7 * 6?"   yours
"""

from __future__ import annotations

import ast
import logging
import operator
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated

from pydantic import Field

import sglite as sgl

DATA = Path(__file__).parent / "data"
DATABASE = Path(tempfile.gettempdir()) / f"sglite_agent_{os.getpid()}.db"
QUESTIONS = [
    "What is 23 * 17?",
    "Which letters mention valves?",
    "How many products cost more than 20?",
    "What is the capital of France?",
]
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


@sgl.tool
def calculate(
    expression: Annotated[str, Field(max_length=60, pattern=r"^[0-9+*/%(). -]+$")],
) -> float:
    """Computes an arithmetic expression.

    Args:
        expression: numbers with + - * / // % and parentheses, such as 12 * (3 + 4)
    """

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(int() | float() as number):
                return number
            case ast.BinOp(left, op, right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(left), value(right))
            case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(operand))
        raise ValueError(f"{ast.unparse(node)} is no arithmetic")

    return value(ast.parse(expression.strip(), mode="eval").body)


@sgl.tool
def search_files(word: Annotated[str, Field(min_length=1, max_length=40)]) -> list[str]:
    """Finds lines with a word in the letters of customers; at most three.

    Args:
        word: what to look for
    """
    found = []
    for path in sorted(DATA.glob("*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if word.lower() in line.lower():
                found.append(f"{path.name}:{number}: {line[:160]}")
    return found[:3] or [f"no line has {word!r}"]


@sgl.tool
def query_products(sql: Annotated[str, Field(max_length=120, pattern="^SELECT ")]) -> list[object]:
    """Runs an SQL query on the table products(name, price, stock); at most five rows.

    Args:
        sql: one SELECT statement
    """
    with closing(sqlite3.connect(f"{DATABASE.as_uri()}?mode=ro", uri=True)) as database:
        steps = iter(range(1000))
        # A query that takes too long is stopped: the handler ends it by returning true.
        database.set_progress_handler(lambda: next(steps, None) is None, 1000)
        return database.execute(sql).fetchmany(5)


TOOLS = [calculate, search_files, query_products]


@sgl.function
def agent(s: sgl.State, question: str) -> str:
    s += sgl.system("You answer questions with the help of tools.", tools=TOOLS)
    s += sgl.user(question)
    # A small model does not ask for tools by itself, so the first step has to be a call.
    return s.use_tools("answer", max_steps=3, tool_choice="required", max_tokens=100)


def make_database() -> None:
    """A small shop."""
    rows = [("lamp", 24.5, 12), ("chair", 49.0, 3), ("pencil", 0.8, 900), ("globe", 31.0, 0)]
    DATABASE.unlink(missing_ok=True)
    with closing(sqlite3.connect(DATABASE)) as database, database:
        database.execute("CREATE TABLE products (name TEXT, price REAL, stock INTEGER)")
        database.executemany("INSERT INTO products VALUES (?, ?, ?)", rows)


def main(questions: list[str]) -> None:
    make_database()
    for question in questions or QUESTIONS:
        row = agent.run(question, options=sgl.Options(on_overflow="drop_oldest"))
        print(f"> {question}")
        for result in row.tool_results:
            arguments = ", ".join(f"{k}={v!r}" for k, v in result.call.arguments.items())
            print(f"  {result.call.name}({arguments}) -> {result.text}")
        usage = row.usage
        print(row["answer"].strip())
        print(f"  [{usage.decoded_tokens} tokens written, {usage.forced_tokens} forced,", end=" ")
        print(f"{usage.prompt_tokens} read, {usage.cached_tokens} of them reused]\n")
    DATABASE.unlink()


if __name__ == "__main__":
    logging.getLogger("sglite.tools").setLevel(logging.ERROR)  # errors of tools are shown below
    with sgl.Model("smollm2") as model, sgl.use(model):
        main(sys.argv[1:])
