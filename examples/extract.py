"""A letter becomes a record, and a file of letters becomes many.

python examples/extract.py                          the letters in examples/data
python examples/extract.py LETTER.txt BATCH.jsonl   your own; JSONL lines: {"letter": "..."}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel, Field

import sglite as sgl

DATA = Path(__file__).parent / "data"


class Order(BaseModel):
    """What every letter becomes. The model cannot write anything else."""

    order_number: str = Field(pattern=r"^[A-Z]{2}-[0-9]{5}$")
    customer: str = Field(max_length=40)
    quantity: int = Field(ge=1, le=999)
    article: str = Field(max_length=40)


# Letters with their records: a small model learns from them what we want.
SAMPLES = {
    "Hello, we order nine garden chairs, model Luna, number PL-30871. The bill was paid last week. "
    "Yours, Erik Lund, Lund Gardens": Order(
        order_number="PL-30871",
        customer="Erik Lund",
        quantity=9,
        article="garden chair Luna",
    ),
    "Order WD-11206: one oak table T2. I pay when it is here. Maria Costa": Order(
        order_number="WD-11206",
        customer="Maria Costa",
        quantity=1,
        article="oak table T2",
    ),
    "Dear Sirs, I confirm our order FT-55310 of 18 towels. I sent you the money yesterday. "
    "Kenji Mori": Order(
        order_number="FT-55310",
        customer="Kenji Mori",
        quantity=18,
        article="towel",
    ),
}


@sgl.function
def read_order(s: sgl.State, letter: str) -> None:
    s += sgl.system("You turn letters into records. Copy names and numbers letter for letter.")
    for sample, record in SAMPLES.items():
        s += sgl.user(sample)
        s += sgl.assistant(json.dumps(record.model_dump()))
    s += sgl.user(letter)
    s += sgl.assistant(sgl.gen("order", Order, max_tokens=160))


def extract_letter(path: Path) -> None:
    row = read_order.run(letter=path.read_text(encoding="utf-8"))
    order: Order = row["order"]  # an object, validated
    print(f"{path.name}\n{order.model_dump_json(indent=2)}")
    tell([row], row.timing.total)
    print(f"  first token after {row.timing.time_to_first_token:.2f} s\n")


def extract_batch(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    # Rows run together: what they share is computed once, and a failing row stops no other.
    rows = read_order.run_batch([json.loads(line) for line in lines], errors="return")
    print(f"{path.name}: {len(rows)} letters")
    for row in rows:
        print(row.error or row["order"].model_dump_json())
    started = min(row.timing.started_at for row in rows)
    tell(rows, max(row.timing.finished_at for row in rows) - started)


def tell(rows: list[sgl.Result], seconds: float) -> None:
    """What the engine did for these rows."""
    total = sgl.Usage()
    for row in rows:
        total.add(row.usage)
    computed = total.prompt_tokens - total.cached_tokens
    written = total.decoded_tokens + total.forced_tokens
    print(f"  prompt: {computed} tokens computed, {total.cached_tokens} reused")
    print(f"  output: {written} tokens, {total.forced_tokens} of them forced by the schema")
    print(f"  {written / max(seconds, 1e-9):.0f} tokens per second over {seconds:.2f} s")


def main(paths: list[Path]) -> None:
    for path in paths or [DATA / "letter.txt", DATA / "letters.jsonl"]:
        if path.suffix == ".jsonl":
            extract_batch(path)
        else:
            extract_letter(path)


if __name__ == "__main__":
    with sgl.Model("smollm2") as model, sgl.use(model):
        main([Path(argument) for argument in sys.argv[1:]])
