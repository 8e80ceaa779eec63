"""Objects: declared and other properties, in their order or in any, and how many there are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from sglite.errors import GrammarError
from sglite.grammars._native import Builder
from sglite.grammars.automaton import Length, Machine, OneOf, OtherThan, accepted, explore
from sglite.grammars.characters import ANY
from sglite.grammars.lowering import lower_automaton
from sglite.grammars.schema import keywords
from sglite.grammars.schema.branches import Branches, Conjunction
from sglite.grammars.schema.document import Place
from sglite.grammars.schema.style import Style
from sglite.grammars.schema.texts import text_machines

MAX_CHOICES = 32

Member = tuple[int, bool]
"""The expression of a member with its key, and whether it is required."""


class Objects:
    """Lays objects out. `value`: the expression of a value."""

    def __init__(
        self,
        branches: Branches,
        builder: Builder,
        style: Style,
        value: Callable[[Conjunction], int],
    ) -> None:
        self._branches = branches
        self._builder = builder
        self._style = style
        self._value = value

    def lay(self, plain: Conjunction) -> int:
        """The objects for which a plain conjunction holds. Raises GrammarError."""
        required = list(dict.fromkeys(n for p in plain for n in keywords.names(p, "required")))
        declared = list(dict.fromkeys(n for p in plain for n in keywords.properties(p)))
        naming = [n for p in plain if (n := keywords.schema(p, "propertyNames")) is not None]
        names = []
        members: list[Member] = []
        for name in [*declared, *(n for n in required if n not in declared)]:
            held = self._branches.property(plain, name)
            if any(place.schema is False for place in held) or not all(
                self._branches.admits(place, name) for place in naming
            ):
                if name in required:
                    return self._builder.choice([])
                continue
            names.append(name)
            members.append((self._member(self._style.string(name), held), name in required))
        extra = self._extra(plain, {*declared, *required}, naming)
        low = max((keywords.count(p, "minProperties") or 0 for p in plain), default=0)
        highs = [h for p in plain if (h := keywords.count(p, "maxProperties")) is not None]
        wanted = [w for p in plain if (w := keywords.some_key(p))]
        if wanted:
            if low > 1 or highs:  # a key that is demanded is one already
                self._refuse_demand("a number of properties", plain)
            return self._demanded(
                names,
                members,
                extra,
                wanted,
                lambda machines: self._extra(plain, {*declared, *required}, naming, machines),
                plain,
            )
        if low == 0 and not highs:
            return self.write(members, extra)
        return self._counted(members, extra, low, min(highs, default=None), plain)

    def listed(self, members: Sequence[tuple[str, int]]) -> int:
        """An object of exactly these keys and values."""
        colon = self._style.colon
        return self.write(
            [
                (self._builder.sequence([self._style.string(name), colon, value]), True)
                for name, value in members
            ],
            None,
        )

    def _member(self, key: int, held: Conjunction) -> int:
        return self._builder.sequence([key, self._style.colon, self._value(held)])

    def _extra(
        self,
        plain: Conjunction,
        names: set[str],
        naming: list[Place],
        wanted: Sequence[Machine] = (),
    ) -> int | None:
        """A member whose key is none of `names` and suits the `wanted` machines."""
        others = [OtherThan(names)] if names else []
        found = [
            self._member(self._key([*machines, *others, *allowed, *wanted]), held)
            for machines, held in self._branches.other_properties(plain)
            if not any(place.schema is False for place in held)
            for allowed in self._names(naming)
        ]
        return self._builder.choice(found) if found else None

    def _names(self, naming: list[Place]) -> list[list[Machine]]:
        """Alternatives of machines for the names that `propertyNames` allows."""
        if not naming:
            return [[]]
        found: list[list[Machine]] = []
        for plain in self._branches.plain(tuple(naming)):
            if "string" not in self._branches.types(plain):
                continue
            values = self._branches.values(plain)
            if values is not None:
                found.append([OneOf([v for v in values if isinstance(v, str)])])
                continue
            machines: list[Machine] = []
            for place in plain:
                machines += text_machines(place)
                low, high = keywords.count(place, "minLength"), keywords.count(place, "maxLength")
                if low or high is not None:
                    machines.append(Length(low or 0, high))
            found.append(machines)
        return found

    def _key(self, machines: list[Machine]) -> int:
        """A key that all of the machines accept, compared after unescaping."""
        builder, spelling = self._builder, self._style.inside
        if not machines:
            return self._style.quoted(builder.repeat(builder.characters(ANY, spelling), 0, -1))
        return self._style.quoted(lower_automaton(builder, explore(machines), spelling))

    def write(self, members: Sequence[Member], extra: int | None) -> int:
        """An object of the members and any number of extra ones."""
        builder, style = self._builder, self._style
        if style.order == "any" and (len(members) > 1 or (members and extra is not None)):
            other = -1 if extra is None else extra
            body = builder.free_order(members, other, style.comma, style.close_object)
            return builder.sequence([style.open_object, body])
        body = self._in_order(members, extra)
        return builder.sequence([style.open_object, body, style.close_object])

    def _in_order(self, members: Sequence[Member], extra: int | None) -> int:
        """Members in their order, those not required left out at will, then the extra ones.

            first present member --> rest after it --> rest after the next --> ...

        The rests are rules, each used by every place that can lead to it.
        """
        builder, comma = self._builder, self._style.comma
        nothing = builder.literal(b"")
        rest = nothing
        if extra is not None:
            rest = builder.repeat(builder.sequence([comma, extra]), 0, -1)
        starts = [nothing] if extra is None else [nothing, builder.sequence([extra, rest])]
        lead = next((i for i, (_, required) in enumerate(members) if required), len(members))
        for i in reversed(range(len(members))):
            member, required = members[i]
            if i <= lead:
                if i == lead:
                    starts = []
                if lead > 0:
                    rule = builder.rule(f"the members after number {i + 1}")
                    builder.define(rule, rest)
                    rest = builder.call(rule)
                starts.append(builder.sequence([member, rest]))
            step = builder.sequence([comma, member])
            step = step if required else builder.choice([nothing, step])
            rest = builder.sequence([step, rest])
        return builder.choice(starts)

    # The number of members

    def _counted(
        self,
        members: list[Member],
        extra: int | None,
        low: int,
        high: int | None,
        plain: Conjunction,
    ) -> int:
        """An object of `low` to `high` members.

        Extra keys are not remembered, so a key that stands twice must not count twice: of the
        members that no `required` asks for, a minimum may ask for one.
        """
        sure = sum(required for _, required in members)
        if extra is None and low == len(members):
            members = [(member, True) for member, _ in members]
            sure = low
        if high == sure:
            members, extra = [m for m in members if m[1]], None
        if high is not None and extra is None and high >= len(members):
            high = None
        most = len(members) if extra is None else None
        if (high is not None and high < max(low, sure)) or (most is not None and most < low):
            return self._builder.choice([])
        if extra is not None and low > sure + 1:
            self._refuse(
                plain, "minProperties", "counts properties that are neither declared nor required"
            )
        if high is not None and (members or low > 0):
            if self._style.order == "any" and members:
                self._refuse(plain, "maxProperties", 'needs property_order="declared" here')
            return self._count_in_order(members, extra, low, high)
        if high is not None:
            assert extra is not None
            body = self._list(extra, high)
            return self._builder.sequence([self._style.open_object, body, self._style.close_object])
        if low <= sure:
            return self.write(members, extra)
        if self._style.order != "any":
            return self._count_in_order(members, extra, low, None)
        if low > sure + 1 or len(members) - sure > MAX_CHOICES:
            self._refuse(plain, "minProperties", 'needs property_order="declared" here')
        return self._some_of(members, extra)

    def _refuse(self, plain: Conjunction, keyword: str, reason: str) -> None:
        place = next(p for p in plain if keywords.count(p, keyword) is not None)
        raise GrammarError(f"{keyword!r} {reason}", place.at(keyword))

    def _list(self, extra: int, high: int) -> int:
        builder = self._builder
        if high == 0:
            return builder.literal(b"")
        rest = builder.repeat(builder.sequence([self._style.comma, extra]), 0, high - 1)
        return builder.choice([builder.literal(b""), builder.sequence([extra, rest])])

    def _refuse_demand(self, beside: str, plain: Conjunction) -> None:
        raise GrammarError(
            "the negation of 'additionalProperties' or 'patternProperties' is not supported beside "
            + beside,
            plain[0].pointer,
        )

    def _demanded(
        self,
        names: list[str],
        members: list[Member],
        extra: int | None,
        wanted: list[list[Machine]],
        special: Callable[[list[Machine]], int | None],
        plain: Conjunction,
    ) -> int:
        """Objects with a key for each of the `wanted`: a declared one made required, or an extra
        one, which may serve several. `special`: an extra member that suits further machines."""
        ways: set[tuple[frozenset[int], tuple[tuple[int, ...], ...]]] = {(frozenset(), ())}
        sure = {i for i, (_, required) in enumerate(members) if required}
        for number, machines in enumerate(wanted):
            fit = {i for i, name in enumerate(names) if _suits(name, machines)}
            if fit & sure:
                continue
            longer = set()
            for chosen, extras in ways:
                if fit & chosen:
                    longer.add((chosen, extras))
                    continue
                longer |= {(chosen | {i}, extras) for i in fit}
                for j, group in enumerate(extras):
                    joined = (*extras[:j], (*group, number), *extras[j + 1 :])
                    longer.add((chosen, joined))
                longer.add((chosen, (*extras, (number,))))
            ways = longer
            if len(ways) > MAX_CHOICES:
                self._refuse_demand("so many declared properties", plain)
        found = []
        for chosen, extras in ways:
            held = [(m, required or i in chosen) for i, (m, required) in enumerate(members)]
            more = [special([m for n in group for m in wanted[n]]) for group in extras]
            specials = [m for m in more if m is not None]
            if len(specials) == len(extras):
                found.append(self._with_specials(held, extra, specials))
        return self._builder.choice(found)

    def _some_of(self, members: list[Member], extra: int | None) -> int:
        """Objects with at least one member that is not required."""
        ways = [
            self.write([*members[:i], (member, True), *members[i + 1 :]], extra)
            for i, (member, required) in enumerate(members)
            if not required
        ]
        if extra is not None:
            ways.append(self.write([*members, (extra, True)], extra))
        return self._builder.choice(ways)

    def _with_specials(self, members: list[Member], extra: int | None, specials: list[int]) -> int:
        """Members, and all of the special ones among the extra ones."""
        if extra is None or not specials:
            return self.write(members, extra)
        if self._style.order == "any":
            return self.write([*members, *((special, True) for special in specials)], extra)
        builder, comma = self._builder, self._style.comma
        before = builder.repeat(builder.sequence([extra, comma]), 0, -1)
        behind = builder.repeat(builder.sequence([comma, extra]), 0, -1)
        orders = []
        for order in itertools.permutations(specials):
            steps = [before, order[0]]
            for special in order[1:]:
                steps += [comma, before, special]
            orders.append(builder.sequence([*steps, behind]))
        return self.write([*members, (builder.choice(orders), True)], None)

    def _count_in_order(
        self, members: list[Member], extra: int | None, low: int, high: int | None
    ) -> int:
        """Members in their order, with a rule for each number of those that came before."""
        builder, style = self._builder, self._style
        nothing = builder.literal(b"")
        cap = max(low, 1) if high is None else high
        rules: dict[tuple[int, int], int] = {}
        for at in reversed(range(len(members) + 1)):
            for count in range(min(at, cap) + 1):
                rules[at, count] = builder.rule(f"members from number {at + 1}, behind {count}")
                comma = style.comma if count else nothing
                if at < len(members):
                    member, required = members[at]
                    ways = [] if required else [builder.call(rules[at + 1, count])]
                    if high is None or count < high:
                        after = builder.call(rules[at + 1, min(count + 1, cap)])
                        ways.append(builder.sequence([comma, member, after]))
                else:
                    ways = [nothing] if count >= low else []
                    if extra is not None and (high is None or count < high):
                        most = -1 if high is None else high - count - 1
                        more = builder.sequence([style.comma, extra])
                        rest = builder.repeat(more, max(low - count - 1, 0), most)
                        ways.append(builder.sequence([comma, extra, rest]))
                builder.define(rules[at, count], builder.choice(ways))
        root = builder.call(rules[0, 0])
        return builder.sequence([style.open_object, root, style.close_object])


def _suits(name: str, machines: Sequence[Machine]) -> bool:
    return all(accepted(machine, name) for machine in machines)
