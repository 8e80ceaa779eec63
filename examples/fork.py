"""One text, several questions about it at the same time.

The branches go on from one shared state: the text is read once, and they are answered together.

    python examples/fork.py
"""

from __future__ import annotations

import sglite as sgl

REVIEW = """\
We stayed three nights at the Harbour Inn. The room was small but very clean, and from the window
we saw the fishing boats come in. Breakfast was the best part: fresh bread, smoked fish and strong
coffee. The bus to the city stops at the door, yet it runs only once an hour, and on Sunday it does
not run at all. For 90 euros a night we would come again, but next time with a car."""
ASPECTS = ["room", "breakfast", "bus", "price"]


@sgl.function
def read_review(s: sgl.State, review: str) -> None:
    s += f"Review:\n{review}\n\nWhat the review says:\n"
    branches = s.fork(len(ASPECTS))
    for aspect, branch in zip(ASPECTS, branches, strict=True):
        branch += f"The {aspect}:" + sgl.gen("comment", max_tokens=24, stop=["\n", "."])
        branch += f".\nIn one word, the {aspect} was" + sgl.select("verdict", [" good", " bad"])
    s.join(branches)  # each variable becomes a list, in the order of the branches
    likes = s["verdict"].count(" good")
    s += f"{likes} of {len(ASPECTS)} things were good. All in all, the guest"
    s += sgl.gen("summary", max_tokens=24, stop=["\n", "."])


def main() -> None:
    row = read_review.run(REVIEW)
    for aspect, comment, verdict in zip(ASPECTS, row["comment"], row["verdict"], strict=True):
        print(f"{aspect:10} {verdict.strip():5} {comment.strip()}")
    print(f"The guest {row['summary'].strip()}.")
    usage = row.usage
    print(f"{usage.prompt_tokens} tokens read, {usage.cached_tokens} of them reused")


if __name__ == "__main__":
    with sgl.Model("smollm2") as model, sgl.use(model):
        main()
