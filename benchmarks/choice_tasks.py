"""Small labelled tasks for the methods of `select`, each with what can lead a method astray."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

LETTERS = Path(__file__).resolve().parent.parent.parent / "shared" / "bench"


@dataclass(frozen=True, slots=True)
class Item:
    """`until`: the text that follows a choice in a text like this one."""

    prompt: str
    choices: tuple[str, ...]
    answer: str
    until: str


_CAPITALS = (
    "France Paris|Italy Rome|Spain Madrid|Germany Berlin|Japan Tokyo|Russia Moscow|Egypt Cairo|"
    "Argentina Buenos Aires|Greece Athens|Austria Vienna|Poland Warsaw|Norway Oslo|Cuba Havana|"
    "Malaysia Kuala Lumpur|Portugal Lisbon|Ireland Dublin|Hungary Budapest|Kenya Nairobi|"
    "Ethiopia Addis Ababa|Peru Lima|Chile Santiago|Iran Tehran|Iraq Baghdad|India New Delhi|"
    "Mexico Mexico City|Panama Panama City|Kuwait Kuwait City|Sweden Stockholm|Turkey Ankara|"
    "Canada Ottawa|China Beijing|Thailand Bangkok"
)

_TOPICS = (
    ("sport", "The goalkeeper saved two penalties in the final minutes."),
    ("sport", "She ran the marathon in just over two hours."),
    ("sport", "The home team lost by three goals on Saturday."),
    ("sport", "He won the tennis match in straight sets."),
    ("sport", "The coach was dismissed after the fifth defeat in a row."),
    ("sport", "The swimmer broke the record over two hundred metres."),
    ("politics at home and abroad", "The president met the minister about the treaty."),
    ("politics at home and abroad", "Parliament voted against the new tax law."),
    ("politics at home and abroad", "The senator will not run in the next election."),
    ("politics at home and abroad", "Both governments agreed to open the border again."),
    ("politics at home and abroad", "The opposition asks for a vote of no confidence."),
    ("politics at home and abroad", "The minister resigned over the scandal."),
    ("science and technology", "The telescope found water on a distant planet."),
    ("science and technology", "A new chip doubles the speed of the computer."),
    ("science and technology", "Researchers have read the genome of the mammoth."),
    ("science and technology", "The rocket brought three satellites into orbit."),
    ("science and technology", "Physicists measured the mass of the particle."),
    ("science and technology", "The software update closes a hole in the browser."),
    ("food", "Bake the bread for forty minutes and let it cool."),
    ("food", "The soup needs more salt and a little lemon."),
    ("food", "This restaurant is known for its fresh pasta."),
    ("food", "Stir the butter and sugar until the cream is smooth."),
    ("food", "The cook serves grilled fish with rice."),
    ("food", "Slice the onions and fry them in oil."),
)  # fmt: skip

# Two ends of a sentence, the shorter one first; 1 where the longer one is right.
_ENDS = (
    ("The glass fell off the table, so", "it broke", "it went for a long walk in the park", 0),
    ("It began to rain, so she", "slept", "opened her umbrella and walked on", 1),
    ("The boy was hungry, so he", "ate a sandwich", "painted the wall of his room green", 0),
    ("The car had no fuel left, so it", "flew", "came to a stop at the side of the road", 1),
    ("The sun went down, and it became", "dark", "as bright and hot as it was at noon", 0),
    ("He forgot his key, so he", "swam", "could not get into his house", 1),
    ("The baby was tired, so it", "fell asleep", "drove to the office in a red car", 0),
    ("She studied for weeks, so she", "failed", "passed the exam with a very good mark", 1),
    ("The ice was too thin, so the skater", "fell in", "bought a new pair of reading glasses", 0),
    ("The shop was closed, so we", "shopped", "had to come back the next morning", 1),
    ("The dog saw the cat and", "barked", "wrote a letter to the mayor", 0),
    ("My phone's battery was empty, so I", "called", "looked for a place to charge it", 1),
    ("The milk was sour, so he", "poured it away", "gave it a name and taught it to sing", 0),
    ("The train was late, so they", "arrived early", "had to wait for an hour at the station", 1),
    ("The soup was too hot, so she", "waited", "put it back on the fire to make it hotter", 0),
    ("There was a fire in the kitchen, so they", "sat down", "called the fire brigade", 1),
    ("It was very cold outside, so he", "put on a coat", "took off his shoes and his shirt", 0),
    ("The lamp went out, so she", "read on", "changed the bulb and turned it on again", 1),
    ("The bread was old, so they", "fed the ducks", "asked it for the way to the station", 0),
    ("His tooth hurt, so he", "ate ice", "made an appointment with the dentist", 1),
    ("The plant got no water, so it", "dried up", "won the first prize in the lottery", 0),
    ("There was no bus, so she", "rode it", "walked home through the rain", 1),
    ("He was very thirsty, so he", "drank water", "cut the grass behind the old church", 0),
    ("The door was locked, so they", "went in", "rang the bell and waited outside", 1),
    ("The balloon touched the needle and", "burst", "learned to speak three languages", 0),
    ("The knife was sharp, and he", "sang", "cut his finger while he peeled the apple", 1),
    ("It snowed all night, so the street was", "white", "full of people in bathing suits", 0),
    ("The computer did not start, so he", "slept", "called a friend who could repair it", 1),
    ("The cup was full, so the tea", "ran over", "turned into a small brown horse", 0),
    ("She lost her ring, so she", "lost it", "looked for it in every room of the house", 1),
    ("The teacher told a joke, and the class", "laughed", "was sent to the moon for a year", 0),
    ("His shoes were dirty, so he", "ate them", "cleaned them with a brush before dinner", 1),
    ("The wind was strong, and the tree", "fell", "opened a bank account in the city", 0),
    ("They had no money, so they", "paid", "could not buy the tickets for the show", 1),
    ("The alarm rang at six, so she", "woke up", "became the king of a distant land", 0),
    ("The road was blocked, so the driver", "drove on", "turned around and took another way", 1),
    ("He ate too much cake, and he", "felt sick", "flew over the roofs of the town", 0),
    ("The book was boring, so she", "read on", "put it aside and watched a film instead", 1),
    ("The fire was hot, so the ice", "melted", "wrote a book about the history of art", 0),
    ("The bridge was broken, so the train", "crossed", "had to stop before the river", 1),
)  # fmt: skip

# One choice begins another one.
_PREFIXES = (
    ("The Statue of Liberty is in", ("New York", "New York Times", "New York Giants"), 0),
    ("A famous American newspaper is the", ("New York", "New York Times", "New York Giants"), 1),
    ("The first man on the moon was", ("Neil", "Neil Armstrong", "Neil Armstrong Airport"), 1),
    ("The English word for the German word Haus is", ("house", "household", "housekeeper"), 0),
    ("A person who cleans the rooms of a hotel is a", ("house", "household", "housekeeper"), 2),
    ("The opposite of cold is", ("hot", "hotel", "hot dog"), 0),
    ("We stayed for two nights in a", ("hot", "hotel", "hot dog"), 1),
    ("A sausage in a long bun is called a", ("hot", "hotel", "hot dog"), 2),
    ("The number after nine is", ("ten", "tennis", "tennis court"), 0),
    ("The sport that is played at Wimbledon is", ("ten", "tennis", "tennis court"), 1),
    ("He drives to work every morning in his", ("car", "carpet", "carpenter"), 0),
    ("A man who makes tables out of wood is a", ("car", "carpet", "carpenter"), 2),
    ("The floor of the room is covered by a red", ("car", "carpet", "carpenter"), 1),
    ("Bees make", ("honey", "honeymoon", "honeymoon trip"), 0),
    ("After the wedding the couple left for their", ("honey", "honeymoon", "honeymoon trip"), 1),
    ("The capital of the USA is", ("Washington", "Washington Irving", "Washington Post"), 0),
)  # fmt: skip

# Wrong choices that share a beginning, and one that stands alone; None where it is right.
_SHARED = (
    ("Oslo is the capital of", "South Africa|South Korea|South Sudan", "Norway", None),
    ("Seoul is the capital of", "South Africa|South Korea|South Sudan", "Norway", "South Korea"),
    ("Kangaroos live in", "New Zealand|New York|New Guinea", "Australia", None),
    ("Wellington is the capital of", "New Zealand|New York|New Guinea", "Australia", "New Zealand"),
    ("The White House is in", "San Francisco|San Diego|San Antonio", "Washington", None),
    ("The Golden Gate Bridge is in", "San Francisco|San Diego|San Antonio", "Boston",
     "San Francisco"),
    ("Pyongyang is the capital of", "North Korea|North Dakota|North Carolina", "Japan",
     "North Korea"),
    ("Tokyo is the capital of", "North Korea|North Dakota|North Carolina", "Japan", None),
    ("Romeo and Juliet was written by", "Charles Dickens|Charles Darwin|Charles Babbage",
     "Shakespeare", None),
    ("Oliver Twist was written by", "Charles Dickens|Charles Darwin|Charles Babbage",
     "Shakespeare", "Charles Dickens"),
    ("The inventor of the telephone was", "Thomas Edison|Thomas Jefferson|Thomas Mann",
     "Alexander Graham Bell", None),
    ("The inventor of the light bulb was", "Thomas Edison|Thomas Jefferson|Thomas Mann",
     "Alexander Graham Bell", "Thomas Edison"),
    ("The theory of relativity is by", "Isaac Newton|Isaac Asimov|Isaac Stern", "Einstein", None),
    ("The laws of motion are by", "Isaac Newton|Isaac Asimov|Isaac Stern", "Einstein",
     "Isaac Newton"),
    ("A famous river in Egypt is the", "Red Sea|Red River|Red Deer", "Nile", None),
    ("Egypt lies between the Mediterranean and the", "Red Sea|Red River|Red Deer", "Nile",
     "Red Sea"),
    ("The Eiffel Tower is in", "Los Angeles|Los Alamos|Los Cabos", "Paris", None),
    ("Hollywood is a part of", "Los Angeles|Los Alamos|Los Cabos", "Paris", "Los Angeles"),
    ("The largest planet is", "the Moon|the Sun|the Earth", "Jupiter", None),
    ("The planet on which we live is", "the Moon|the Sun|the Earth", "Jupiter", "the Earth"),
)  # fmt: skip


def tasks(count: int | None = None) -> dict[str, list[Item]]:
    """The items of every task, at most `count` of each."""
    made = {
        "capitals": list(_capitals()),
        "topics": list(_topics()),
        "ends": [
            Item(prompt, (f" {short}", f" {long}"), f" {(short, long)[which]}", ".")
            for prompt, short, long, which in _ENDS
        ],
        "prefixes": [
            Item(prompt, tuple(f" {c}" for c in choices), f" {choices[which]}", ".")
            for prompt, choices, which in _PREFIXES
        ],
        "shared": [
            Item(
                prompt,
                tuple(f" {c}" for c in (*group.split("|"), alone)),
                f" {answer or alone}",
                ".",
            )
            for prompt, group, alone, answer in _SHARED
        ],
    }
    if (LETTERS / "classify_workload.py").exists():
        made["letters"] = _letters()
    return {name: items[:count] for name, items in made.items()}


def _capitals() -> list[Item]:
    pairs = [entry.split(" ", 1) for entry in _CAPITALS.split("|")]
    cities = [city for _, city in pairs]
    items = []
    for number, (country, city) in enumerate(pairs):
        others = [cities[(number + step) % len(cities)] for step in (7, 13, 18, 25)]
        choices = tuple(f" {c}" for c in sorted({city, *others}))
        items.append(Item(f"The capital of {country} is", choices, f" {city}", "."))
    return items


def _topics() -> list[Item]:
    labels = sorted({label for label, _ in _TOPICS})
    shots = [next(entry for entry in _TOPICS if entry[0] == label) for label in labels]
    head = "".join(f"Text: {text}\nTopic: {label}\n\n" for label, text in shots)
    return [
        Item(f"{head}Text: {text}\nTopic:", tuple(f" {c}" for c in labels), f" {label}", "\n")
        for label, text in _TOPICS
        if (label, text) not in shots
    ]


def _letters() -> list[Item]:
    sys.path.insert(0, str(LETTERS))
    from classify_workload import LABELS, letters, prompt_prefix

    said = {"card": 0, "express": 0, "courier": 1, "driver": 1, "lid": 2, "code": 3, "battery": 4}
    items = []
    for letter in letters(32):
        which = next((number for word, number in said.items() if f" {word} " in letter), 5)
        prompt = f"{prompt_prefix()}Letter: {letter}\nClass:"
        items.append(Item(prompt, tuple(f" {c}" for c in LABELS), f" {LABELS[which]}", "\n"))
    return items
