"""The parent of several workers: starts them, hands them clients, restarts those that die, carries what they ask.

Decides which worker gets a client (the one with the fewest), when one that died comes back (soon, then ever later), and
when that is given up (a loop of crashes). It knows nothing of policies, statements or keys: a CancelRequest goes to the
worker whose number its process number holds, and only that worker compares the secret.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from dpsql.errors import INTERNAL, Rejected
from dpsql.server.cancel import number_of
from dpsql.server.doors import Doors, hand
from dpsql.server.guests import Guests
from dpsql.server.limits import Limits
from dpsql.server.link import Body, Link, open_link, refusal

_log = logging.getLogger(__name__)

CANCEL_PATIENCE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds, but for `most`. A worker that ends `most` times within `window` is not started again.

    `start`: until a worker serves. `first`, `longest`: the pause before a restart, doubled each time. `answer`: for any
    question. `stop`: for a worker to let its clients go.
    """

    start: float = 120.0
    first: float = 0.1
    longest: float = 10.0
    most: int = 6
    window: float = 60.0
    answer: float = 120.0
    stop: float = 20.0


@dataclass(slots=True, eq=False)
class Worker:
    """A running worker; `clients` counts those that it has not let go yet."""

    number: int
    process: asyncio.subprocess.Process
    link: Link
    over: socket.socket
    clients: int = 0


class Supervisor:
    """`command` starts a worker, given two descriptors more; `first` is the question that it must answer to serve.

    One process more than `workers` gets no clients: it keeps what they share, and outlives each of them.
    """

    def __init__(
        self,
        command: Sequence[str],
        workers: int,
        first: Callable[[int], Body],
        sockets: list[socket.socket],
        patience: Patience | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._command = command
        self._count = workers
        self._first = first
        self._patience = Patience() if patience is None else patience
        self._guests = Guests(Limits() if limits is None else limits)
        self._doors = Doors(sockets, self._take)
        self._running: dict[int, Worker] = {}
        self._slots: list[asyncio.Task[None]] = []
        self._stopping = False
        self.changing = asyncio.Lock()
        """Held while what workers start with changes: none starts meanwhile."""
        self.restarts = 0

    @property
    def address(self) -> tuple[str, int]:
        return self._doors.address

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Those that serve clients, by number."""
        return tuple(self._running[number] for number in sorted(self._running) if number < self._count)

    async def start(self) -> None:
        """Returns when all workers serve. Raises Rejected with what a worker says that cannot."""
        self._slots = [asyncio.create_task(self._keep(await self._begin(self._count)))]
        begun = await asyncio.gather(*map(self._begin, range(self._count)), return_exceptions=True)
        for problem in begun:
            if isinstance(problem, BaseException):
                raise problem
        self._slots += [asyncio.create_task(self._keep(worker)) for worker in self.workers]

    async def failed(self) -> None:
        """Waits for a loop of crashes, and raises Rejected then."""
        done, _ = await asyncio.wait(self._slots, return_when=asyncio.FIRST_COMPLETED)
        for slot in done:
            slot.result()

    async def stop(self) -> None:
        """Lets nobody in any more, and returns when all workers have ended; one that takes too long is killed."""
        self._stopping = True
        self._doors.close()
        for slot in self._slots:
            slot.cancel()
        await asyncio.gather(*self._slots, return_exceptions=True)
        await asyncio.gather(*map(self._end, self.workers))
        await asyncio.gather(*map(self._end, tuple(self._running.values())))

    async def ask_all(self, question: Body) -> dict[int, Body]:
        """What each worker answers, by number. One that dies is left out; one that is silent is killed."""
        workers = tuple(self._running.values())
        answers = await asyncio.gather(*(self._ask(worker, question) for worker in workers))
        return {worker.number: answer for worker, answer in zip(workers, answers, strict=True) if answer is not None}

    async def _ask(self, worker: Worker, question: Body) -> Body | None:
        try:
            return await worker.link.ask(question, self._patience.answer)
        except ConnectionError:
            return None
        except TimeoutError:
            _log.error("worker %d does not answer: killed", worker.number)
            with suppress(ProcessLookupError):
                worker.process.kill()
            return None

    # --- one worker's life ---------------------------------------------------------------------------------------

    async def _begin(self, number: int) -> Worker:
        """A worker that serves. Raises Rejected if it does not come to that."""
        with _pair() as (control, control_there), _pair() as (over, over_there):
            there = (control_there.fileno(), over_there.fileno())
            process = await asyncio.create_subprocess_exec(
                *self._command, *map(str, there), pass_fds=there, stdin=asyncio.subprocess.DEVNULL
            )
            over.setblocking(False)
            link = await open_link(control.dup(), lambda question: self._asked(number, question))
            worker = Worker(number, process, link, over.dup())
        try:
            answer = await link.ask(self._first(number), self._patience.start)
        except (ConnectionError, TimeoutError):
            answer = {"refused": f"worker {number} ended before it could serve", "hint": "The log says why."}
        except asyncio.CancelledError:
            await self._end(worker)
            raise
        if "refused" in answer:
            await self._end(worker)
            hint = answer.get("hint")
            raise Rejected(str(answer["refused"]), hint=str(hint) if hint else None, sqlstate=INTERNAL)
        self._running[number] = worker
        if number < self._count:
            _log.info("worker %d serves: process %d", number, process.pid)
            self._doors.open()
        return worker

    async def _keep(self, worker: Worker) -> None:
        """Restarts a worker whenever it ends. Raises Rejected when that leads nowhere."""
        number, ends = worker.number, list[float]()
        while True:
            code = await worker.process.wait()
            self._forget(worker)
            why = _reason(code)
            restarted = None
            while restarted is None:
                now = time.monotonic()
                ends = [*(end for end in ends if end > now - self._patience.window), now]
                if len(ends) >= self._patience.most:
                    raise Rejected(
                        f"worker {number} ended {len(ends)} times within {self._patience.window:.0f} seconds"
                        f" (the last time: {why}); the proxy stops",
                        sqlstate=INTERNAL,
                        hint="The log above says what happened.",
                    )
                pause = min(self._patience.first * 2 ** (len(ends) - 1), self._patience.longest)
                _log.error("worker %d ended (%s); its clients are disconnected; restart in %.1f s", number, why, pause)
                await asyncio.sleep(pause)
                try:
                    async with self.changing:
                        restarted = await self._begin(number)
                except Rejected as error:
                    why = error.message
            worker = restarted
            self.restarts += 1

    def _forget(self, worker: Worker) -> None:
        self._running.pop(worker.number, None)
        self._guests.forget(worker.number)
        worker.link.close()
        worker.over.close()
        if not self.workers:
            self._doors.shut()

    async def _end(self, worker: Worker) -> None:
        self._forget(worker)
        with suppress(ProcessLookupError):
            worker.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._patience.stop):
                await worker.process.wait()
        except TimeoutError:
            _log.error("worker %d did not stop: killed", worker.number)
            with suppress(ProcessLookupError):
                worker.process.kill()
            await worker.process.wait()

    # --- clients, and what workers ask ---------------------------------------------------------------------------

    def _take(self, client: socket.socket) -> bool:
        for worker in sorted(self.workers, key=lambda worker: worker.clients):
            if hand(client, worker.over):
                worker.clients += 1
                return True
        return False

    async def _asked(self, number: int, question: Body) -> Body:
        """`left`: a client has gone. `enter`, `leave`: a user's session wants a place, or gives it back. `cancel`:
        another worker's client wants to stop its statement. `stop`: a user stops a session of theirs, wherever it is.

        The answer to `cancel` is the same whatever came of it, so that it tells nobody which keys are right.
        """
        match question:
            case {"do": "left"} if number in self._running:
                self._running[number].clients -= 1
            case {"do": "enter", "user": str(user), "place": int(place)} if number in self._running:
                try:
                    self._guests.admit(user, (number, place))
                except Rejected as error:
                    return refusal(error)
            case {"do": "leave", "place": int(place)}:
                self._guests.leave((number, place))
            case {"do": "cancel", "pid": int(pid)} if (worker := self._running.get(number_of(pid))) is not None:
                with suppress(ConnectionError, TimeoutError):
                    await worker.link.ask(question, CANCEL_PATIENCE)
            case {"do": "stop"}:
                asked = (worker.link.ask(question, CANCEL_PATIENCE) for worker in self.workers)
                answers = await asyncio.gather(*asked, return_exceptions=True)
                return {"stopped": any(isinstance(each, dict) and each.get("stopped") is True for each in answers)}
        return {}


@contextmanager
def _pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A socket pair; both ends are closed at the end of the block."""
    ends = socket.socketpair()
    try:
        yield ends
    finally:
        for end in ends:
            end.close()


def _reason(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"


def python(statement: str) -> tuple[str, ...]:
    """The command that runs a statement in a Python like this one."""
    return (sys.executable, "-c", statement)
