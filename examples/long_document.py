"""Records out of a document that is read window by window, each with the places where it stands.

python examples/long_document.py            the log of a harbour in examples/data
python examples/long_document.py LOG.txt    yours

Arrivals of ships become records of ship, port and cargo. The model can write nothing but words that
stand in its window (`sgl.quote`); what else a record has to be, a validator checks, and a record
that it refuses is tried once more. Then the records are merged by ship, and proved by the places in
the document.

What is quoted stands in the log, but need not be true. A model of 135M parameters names ten of the
eleven ships here, and six of them with the right port and cargo; it takes a ship that leaves for
one that arrives, and a crane for a cargo. Larger models do better, and each line can be looked up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, create_model, model_validator

import sglite as sgl

LOG = Path(__file__).parent / "data" / "harbour_log.txt"
TOKENS, OVERLAP = 90, 20  # of a window; more than one or two ships in it are too much for 135M
FIELDS = ("ship", "port", "cargo")

# A small model learns from them what we want.
SAMPLES = {
    "2 May. The sloop Martha came in from Leith with wool for the weavers. A dog fell into the "
    "harbour and was saved.": [("Martha", "Leith", "wool")],
    "6 May. The men mended nets. The bark Rosa has arrived from Oporto with wine. Her captain "
    "limps.": [("Rosa", "Oporto", "wine")],
    "9 May. The brig Hector arrived from Cadiz with cork. Later the steamer Union brought sugar "
    "from London.": [("Hector", "Cadiz", "cork"), ("Union", "London", "sugar")],
}

Place = tuple[int, int]  # characters of the document, from the first to behind the last
Evidence = dict[str, dict[tuple[str, str], dict[Place, float]]]
"""ship -> field and value -> where the document has it, and how sure the model was"""


class Arrival(BaseModel):
    ship: str
    port: str
    cargo: str

    @model_validator(mode="after")
    def is_likely(self) -> Self:
        if len({self.ship, self.port, self.cargo}) < 3:
            raise ValueError("ship, port and cargo are three different things")
        return self


def arrivals_in(text: str) -> Any:
    """The type of what is read out of this text: arrivals in its own words."""
    words = Annotated[str, sgl.quote(text, whole_words=True, max_length=20)]
    arrival: Any = create_model("Arrival", __base__=Arrival, **dict.fromkeys(FIELDS, (words, ...)))
    return Annotated[list[arrival], Field(min_length=1, max_length=2)]


@sgl.function
def read_window(s: sgl.State, text: str) -> None:
    s += sgl.system("You list the ships that arrive, each with its port and cargo, as in the log.")
    for sample, arrivals in SAMPLES.items():
        s += sgl.user(sample)
        s += sgl.assistant(json.dumps([dict(zip(FIELDS, a, strict=True)) for a in arrivals]))
    s += sgl.user(text)
    s += sgl.assistant(sgl.gen("arrivals", arrivals_in(text), max_tokens=120, retries=1))


def merged(windows: Iterable[sgl.Window], rows: Iterable[sgl.Result]) -> Evidence:
    """All that was read, by ship; what two windows have of one place is one."""
    found: Evidence = {}
    for window, row in zip(windows, rows, strict=True):
        for index, arrival in enumerate([] if row.error else row["arrivals"]):
            said = found.setdefault(arrival.ship, {})
            for name in FIELDS:
                known = row.meta("arrivals").fields[f"/{index}/{name}"]
                place = (window.start + known.source.start, window.start + known.source.end)
                said.setdefault((name, getattr(arrival, name)), {})[place] = known.probability
    return found


def main(paths: list[Path]) -> None:
    doc = (paths or [LOG])[0].read_text(encoding="utf-8")
    windows = sgl.windows(doc, tokens=TOKENS, overlap=OVERLAP)
    rows = read_window.run_batch([{"text": window.text} for window in windows], errors="return")
    for ship, said in merged(windows, rows).items():
        print(ship)
        for (name, value), places in said.items():
            for (start, end), sure in sorted(places.items()):
                around = doc[max(0, start - 24) : end + 24].replace("\n", " ")
                print(f"  {name:5} {value:14} {sure:4.0%} at {start:5}  ...{around}...")
    tries = sum(len(row.meta("arrivals").attempts) for row in rows if "arrivals" in row)
    refused = [row for row in rows if isinstance(row.error, sgl.RetryError)]
    usage = sgl.Usage()
    for row in rows:
        usage.add(row.usage)
    print(f"{len(windows)} windows, {tries} attempts, {len(refused)} without a likely record")
    print(f"{usage.prompt_tokens} tokens read, {usage.cached_tokens} of them reused")


if __name__ == "__main__":
    with sgl.Model("smollm2") as model, sgl.use(model):
        main([Path(argument) for argument in sys.argv[1:]])
