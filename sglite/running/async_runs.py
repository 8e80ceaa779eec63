"""Runs in an event loop: `arun`, `arun_batch`, `astream`, and batches of `async def` programs.

An `async def` program is a task and holds no thread. A plain def is executed by a worker, since it
may wait, and the loop must not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sglite.running.batch import Errors, Failures, Row, check_row, in_order
from sglite.running.executor import Run
from sglite.running.mailbox import mailbox
from sglite.running.progress import Bar
from sglite.running.result import Result
from sglite.running.stream import Reader, StreamEvent
from sglite.running.workers import workers

if TYPE_CHECKING:
    from sglite.running.journal import Journal
    from sglite.running.launch import Launch

Rows = Iterable[Row] | AsyncIterable[Row]


async def arun(
    launch: Launch, row: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Result:
    """`Function.arun`, with program, model, options and seed settled in `launch`."""
    run = launch.start(row)
    await _execute(launch, run, args, kwargs)
    result = Result(run)
    if result.error is not None:
        raise result.error
    return result


async def astream(
    launch: Launch, row: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], errors: Errors
) -> AsyncIterator[StreamEvent]:
    """`Function.astream`, with program, model, options and seed settled in `launch`."""
    box = mailbox(asyncio.get_running_loop())
    there = asyncio.Event()
    reader = Reader(lambda: box.call(there.set))
    run = launch.start(row, reader)
    task = asyncio.create_task(_execute(launch, run, args, kwargs))
    try:
        while not reader.ended:
            await there.wait()
            there.clear()
            for event in reader.events():
                yield event
        await task
        for event in reader.last(Result(run), errors):
            yield event
    finally:
        run.cancel("the stream was left before its end")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def arun_in_order(results: AsyncIterator[Result], errors: Errors) -> list[Result]:
    """Every row, in order."""
    return in_order([row async for row in results], errors)


async def arun_as_completed(
    launch: Launch, rows: Rows, window: int, bar: Bar, journal: Journal | None
) -> AsyncIterator[Result]:
    """Every row when it is done, at most `window` of them under way or not taken."""
    with bar, journal or bar:
        source = _numbered(rows)
        live: set[asyncio.Task[Result]] = set()
        more = True
        try:
            while True:
                while more and len(live) < window:
                    try:
                        index, arguments = await anext(source)
                    except StopAsyncIteration:
                        more = False
                        break
                    past = journal.recall(index, arguments) if journal is not None else None
                    if past is not None:
                        bar.advance(past, recalled=True)
                        yield past
                    else:
                        live.add(asyncio.create_task(_row(launch, index, arguments)))
                if not live:
                    return
                done, live = await asyncio.wait(live, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    result = task.result()
                    if journal is not None:
                        journal.write(result)
                    bar.advance(result)
                    yield result
        finally:
            for task in live:
                task.cancel()
            await asyncio.gather(*live, return_exceptions=True)


async def good_ones(results: AsyncIterator[Result]) -> AsyncIterator[Result]:
    """The rows that did not fail. Raises BatchError at the end if one did."""
    failures = Failures()
    async for result in results:
        if not failures.keep(result):
            yield result
    failures.check()


def from_loop(results: AsyncIterator[Result]) -> Iterator[Result]:
    """The same rows, for code that has no event loop: one that runs while a row is waited for."""
    with asyncio.Runner() as runner:

        async def following() -> Result | None:
            return await anext(results, None)

        try:
            while (result := runner.run(following())) is not None:
                yield result
        finally:
            runner.run(_close(results))


async def _close(results: Any) -> None:
    await results.aclose()


async def _numbered(rows: Rows) -> AsyncIterator[tuple[int, Row]]:
    index = 0
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield index, row
            index += 1
    else:
        for row in rows:
            yield index, row
            index += 1


async def _row(launch: Launch, index: int, arguments: Row) -> Result:
    run = launch.start(index)
    problem = check_row(arguments)
    if problem is not None:
        run.fail(problem)
    else:
        await _execute(launch, run, (), arguments)
    return Result(run)


async def _execute(
    launch: Launch, run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Execute the body where it belongs; returns when the run has ended."""
    if launch.in_task:
        await launch.execute_in_task(run, args, kwargs)
        return
    interrupts: list[BaseException] = []

    def job() -> None:
        try:
            launch.execute(run, args, kwargs)
        except BaseException as error:  # such as SystemExit: for whoever awaits the result
            interrupts.append(error)

    workers.submit(job)
    try:
        await run.join_in_task()
    except asyncio.CancelledError:
        run.cancel("the task of the run was cancelled")
        if workers.withdraw(job):
            job()  # comes to its end at once
        raise
    if interrupts:
        raise interrupts[0]
