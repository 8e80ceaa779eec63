"""A conversation that outgrows the context: what is left, and which turns go.

Before each hole there has to be room for what it may write. Where there is none, whole turns leave
the context; what stays is put into a new sequence, with the ids that were generated as they are and
the turns at the start unchanged, so that the prefix cache has them. The record keeps everything.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from queue import SimpleQueue
from typing import TYPE_CHECKING

from sglite import chat
from sglite.errors import CapacityError, ModelError
from sglite.language import ir
from sglite.options import DEFAULT_MAX_TOKENS, DROP_OLDEST, Message
from sglite.running.executor import Run
from sglite.running.lowering import DEFAULT_JSON_MAX_TOKENS, Pending
from sglite.running.record import Slot, Turn, add_parts, program_error, text_of
from sglite.runtime.engines.base import SequenceId, StepRefused
from sglite.runtime.segment import Append, Event, Piece, Segment, SegmentDone, SegmentFailed

if TYPE_CHECKING:
    from sglite.language.recorder import Recorder

logger = logging.getLogger("sglite.overflow")


def tokens_left(state: Recorder) -> int:
    """How many tokens the context still takes after all that was added so far. Waits for it."""
    return max(0, state._run.engine.capacity - _length(state))


def make_room(state: Recorder, hole: ir.Hole, place: ir.Place) -> None:
    """See to it that the hole and the end of its turn have room, by the policy of the program."""
    if isinstance(hole, ir.Gen) and hole.drops:
        return  # a thought that leaves the prompt with this hole has just been written
    need = _most_tokens(hole, state._run)
    if state._turn_is_open():
        template = state._template()
        need += len(template.fragments(state._record.roles(), state._tools).closing.encode())
    _make_room(state, need, hole.at(place))


def make_room_for_text(state: Recorder) -> None:
    """The same for the text after the last hole; a coroutine that is over cannot wait for it."""
    if not state._run.in_task:
        _make_room(state, 0, None)


def _make_room(state: Recorder, need: int, node: ir.Node | None) -> None:
    capacity = state._run.engine.capacity
    need = min(need, capacity // 2)
    if _bound(state) + need <= capacity:
        return  # the lengths of texts alone say so: nothing has to be waited for
    if _length(state) + need <= capacity:
        return
    turns = [turn for turn in state._record.turns if not turn.dropped]
    policy = state._on_overflow
    try:
        if policy == DROP_OLDEST:
            _drop_oldest(state, turns, need)
        elif callable(policy):
            _leave_out(state, _not_kept(state, turns, policy))
    except ModelError as error:
        raise program_error(f"turns were dropped, and {error}", node) from error


def cuts(turns: Sequence[Turn]) -> list[list[Turn]]:
    """What can be dropped, from little to much. The system turn stays, and so does the last
    exchange: a user's turn with all that follows; of that the oldest calls of tools can go."""
    lead = sum(1 for _ in takewhile(lambda turn: turn.role == "system", turns))
    users = [
        i for i, turn in enumerate(turns) if i >= lead and turn.role == "user" and not turn.answers
    ]
    found = [[*turns[lead:start]] for start in users[1:]]
    last = users[-1] if users else lead - 1
    steps = [i for i in range(last + 1, len(turns)) if turns[i].role == "assistant"]
    found += [[*turns[lead:last], *turns[last + 1 : step]] for step in steps[1:-1]]
    return found


def _drop_oldest(state: Recorder, turns: Sequence[Turn], need: int) -> None:
    """Drop as few turns as leave a quarter of the context free, so that this is not needed again
    at once: what comes after a dropped turn has to be computed anew."""
    capacity = state._run.engine.capacity
    choices = cuts(turns)
    if not choices:
        return

    def length(dropped: list[Turn]) -> int:
        return _measure(state._run, None, _rebuilt(state, dropped).pieces())

    for wanted in (capacity - need - capacity // 4, capacity - need):
        # Dropping more never makes it longer.
        at = bisect_left(choices, -wanted, key=lambda dropped: -length(dropped))
        if at < len(choices):
            break
    _leave_out(state, choices[min(at, len(choices) - 1)])


def _not_kept(
    state: Recorder, turns: Sequence[Turn], policy: Callable[[list[Message]], Iterable[Message]]
) -> list[Turn]:
    """What a function of the user leaves out. It gets all turns that can go."""
    lead = sum(1 for _ in takewhile(lambda turn: turn.role == "system", turns))
    closed = [turn for turn in turns[lead:] if turn.end is not None]
    parts = state._record.all_parts()
    messages = [
        {"role": turn.role, "content": text_of(parts[turn.start : turn.end])} for turn in closed
    ]
    kept = {id(message) for message in policy(messages)}
    if not kept <= {id(message) for message in messages}:
        raise ValueError("on_overflow= returns those of the turns it was given that are to stay")
    return [t for t, message in zip(closed, messages, strict=True) if id(message) not in kept]


def _leave_out(state: Recorder, dropped: Sequence[Turn]) -> None:
    """Go on without these turns, in a new sequence."""
    if not dropped:
        return
    pending = _rebuilt(state, dropped)
    for turn in dropped:
        turn.dropped = True
    state._pending = pending
    if state._sequence is not None:
        state._run.release(state._sequence)
        state._sequence = None
    logger.info("the context is full: %d turns were dropped", len(dropped))


def _rebuilt(state: Recorder, dropped: Iterable[Turn]) -> Pending:
    """The text of all that stays."""
    gone = {id(turn) for turn in dropped}
    parts = state._record.all_parts()
    pending = Pending()
    roles: list[str] = []
    is_cut = False
    add_parts(pending, parts[: state._record.turns[0].begin])
    for turn, end in _spans(state):
        if turn.dropped or id(turn) in gone:
            is_cut = True
            continue
        begin = turn.begin
        if is_cut and set(roles) <= {"system"}:
            # A template may begin the first turn in another way than the others.
            opening = state._template().fragments([*roles, turn.role], state._tools).opening
            for text, is_template in chat.pieces(opening):
                pending.text(text, "template" if is_template else "user")
            begin = turn.start
        roles.append(turn.role)
        add_parts(pending, parts[begin:end])
    return pending


def _spans(state: Recorder) -> Iterator[tuple[Turn, int]]:
    """The turns, and where the parts of each end: text that follows a turn belongs to it."""
    turns = state._record.turns
    following = [turn.begin for turn in turns[1:]]
    return zip(turns, [*following, state._record.position], strict=False)


def _length(state: Recorder) -> int:
    """Ids of the state with all text that is pending. Waits for the holes before."""
    engine = state._run.engine
    if "tokens" not in engine.capabilities:
        state._run.cannot(
            ModelError(
                f"the tokens of {engine.name} are not known, so what its context holds cannot be "
                "counted; leave turns out in the program itself"
            )
        )
    state._flush()
    for part in state._record.all_parts():
        if isinstance(part, Slot):
            state._run.wait(part)
    return _measure(state._run, state._sequence, state._pending.pieces())


def _measure(run: Run, sequence: SequenceId | None, pieces: tuple[Piece, ...]) -> int:
    """Ids that `sequence` would have after these pieces; one more than the capacity for too many.

    A fork of it takes them, so that its own text is not yet cut into tokens.
    """
    run.check()
    engine = run.engine
    probe = engine.open() if sequence is None else engine.fork(sequence, 1)[0]
    ends: SimpleQueue[SegmentDone | SegmentFailed] = SimpleQueue()

    def sink(event: Event) -> None:
        if isinstance(event, SegmentDone | SegmentFailed):
            ends.put(event)

    try:
        engine.submit(probe, Segment((Append(pieces),) if pieces else ()), sink)
        end = ends.get()
        if isinstance(end, SegmentDone):
            return len(end.ids)
        error = end.error
    except StepRefused as refused:
        error = refused.error
    finally:
        engine.close(probe)
    if not isinstance(error, CapacityError):
        run.cannot(error)
    return engine.capacity + 1


def _bound(state: Recorder) -> int:
    """No fewer than the ids of the state: a token has at least one byte."""
    parts = state._record.all_parts()
    for turn, end in reversed([*_spans(state)]):
        if turn.dropped:
            del parts[turn.start : end]
    total = 1
    for part in parts:
        if isinstance(part, str):
            total += len(part.encode())
        elif part.result is not None:
            total += len(part.result.ids)
        else:
            total += _most_tokens(part.node, state._run)
    return total


def _most_tokens(hole: ir.Hole, run: Run) -> int:
    if isinstance(hole, ir.Select):
        return max(len(choice.encode()) for choice in hole.choices)
    is_free = hole.constraint is None and hole.tools is None
    default = DEFAULT_MAX_TOKENS if is_free else DEFAULT_JSON_MAX_TOKENS
    thought = hole.think.max_tokens if hole.think is not None else 0
    return thought + (hole.options.over(run.options).max_tokens or default)
