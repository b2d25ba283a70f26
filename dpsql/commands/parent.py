"""The parent of several workers. It reads the policy, listens and hands the clients out; the workers serve.

Decides that a policy is taken over by all or by none: all prepare it before any puts it in force, and a worker that is
started later is given the text in force, not what stands in the file by then.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final, cast

from dpsql.commands.metrics import Number, together
from dpsql.commands.running import begin_to_listen, no_place, say_ready, stop_signal
from dpsql.errors import Rejected
from dpsql.policy.load import load, parse
from dpsql.policy.model import Policy
from dpsql.server.doors import listen
from dpsql.server.link import Body
from dpsql.server.supervisor import Supervisor, python

_WORKER: Final = "from dpsql.commands.worker import main; main()"
"""What a new Python has to run to become a worker, given the descriptors of its ends as arguments."""


def run(workers: int, path: Path, address: tuple[str, int], metrics: int | None, audit: Path | None) -> None:
    """Serves until it is told to stop. Raises Rejected if workers cannot start, or do not stay up."""
    asyncio.run(_serve(workers, path, address, metrics, audit))


async def _serve(workers: int, path: Path, address: tuple[str, int], metrics: int | None, audit: Path | None) -> None:
    text, policy = _read(path)
    place = str(policy.path)

    def first(number: int) -> Body:
        where = None if audit is None else str(audit)
        return {"do": "start", "number": number, "workers": workers, "policy": text, "path": place, "audit": where}

    async def counted() -> list[Number]:
        answers = await supervisor.ask_all({"do": "metrics"})
        of_workers = {at: answer for at, answer in answers.items() if at < workers and "numbers" in answer}
        found = {at: cast(list[Any], answer["numbers"]) for at, answer in of_workers.items()}
        running = ("dpsql_workers", dict[str, str](), float(len(supervisor.workers)))
        return [running, ("dpsql_worker_restarts_total", {}, supervisor.restarts), *together(found)]

    async def reload() -> int:
        nonlocal text
        new, _ = await asyncio.to_thread(_read, path)
        async with supervisor.changing:
            answers = await supervisor.ask_all({"do": "prepare", "policy": new, "path": place})
            refused = next((answer for answer in answers.values() if "refused" in answer), None)
            if refused is not None:
                await supervisor.ask_all({"do": "abandon"})
                hint = refused.get("hint")
                raise Rejected(str(refused["refused"]), hint=None if hint is None else str(hint))
            text = new
            ended = await supervisor.ask_all({"do": "commit"})
        return sum(cast(int, answer.get("ended", 0)) for answer in ended.values())

    stopped = stop_signal()
    try:
        supervisor = Supervisor(python(_WORKER), workers, first, listen(*address))
    except OSError as error:
        raise no_place(address, error) from None
    try:
        starting = asyncio.create_task(supervisor.start())
        await _first_of(starting, stopped)
        if stopped.is_set():
            return
        end = await begin_to_listen(path, metrics, counted, reload)
        say_ready(policy, supervisor.address)
        await _first_of(asyncio.create_task(supervisor.failed()), stopped)
        end()
    finally:
        await supervisor.stop()


def _read(path: Path) -> tuple[str, Policy]:
    """A policy's text, which workers are given, with what it says. Raises PolicyError."""
    load(path)
    text = path.read_text(encoding="utf-8")
    return text, parse(text, path)


async def _first_of(work: asyncio.Task[None], stopped: asyncio.Event) -> None:
    """Waits for the work, or until the proxy is to stop; the work is ended then. Raises what it raises."""
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if stopped.is_set():
        work.cancel()
        await asyncio.wait((work,))
    else:
        work.result()
