"""The host's side of one agent: sends tests, receives outcomes, and knows when the agent is lost.

A lost agent is a `SandboxError`, never an outcome. The caller starts another worker and repeats what it was doing.
"""

from __future__ import annotations

import marshal
import select
import time
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass

from sandbox.backends import Backend
from sandbox.errors import SandboxError
from sandbox.inside import bootstrap, wire
from sandbox.inside.watch import Limits
from sandbox.outcome import Outcome

_START_S = 60.0
_GRACE_S = 60.0  # beyond what a test can take at most
_IN_FLIGHT = 2  # tests sent ahead while the caller may stop early


@dataclass(frozen=True, slots=True)
class Program:
    """What an agent needs to know of a program. `examines`: it is no program, but the code of assert tests is to be run."""

    source: str
    prelude: str
    entry_point: str | None
    examines: bool = False


class Worker:
    """One agent, started at once. Not thread-safe: one thread drives it."""

    def __init__(self, backend: Backend) -> None:
        """Raises SandboxError if the agent does not start."""
        self._link = backend.launch()
        self._frames = wire.FrameBuffer()
        self._unsent: deque[memoryview] = deque()
        self._unwanted = 0  # outcomes of tests that the caller no longer waits for
        self._patience_s = _START_S
        kind, _ = self.receive()
        if kind != wire.READY:
            raise self._lost("its first frame was not READY")

    def load(self, program: Program, limits: Limits, count: int, eager: bool = True) -> None:
        """Makes `program` the one of the `count` tests that follow (-1: nobody knows how many).

        `eager`: each outcome is wanted as soon as it is there.
        """
        self._patience_s = max(self._patience_s, 4 * limits.wall_s + _GRACE_S)
        job = {**asdict(program), "limits": limits.as_tuple(), "count": count, "eager": eager}
        self.send(wire.pack(wire.LOAD, marshal.dumps(job, bootstrap.MARSHAL_VERSION)))

    def outcomes(self, payloads: Iterable[bytes]) -> Generator[Outcome, None, None]:
        """Runs tests of the loaded program, few of them ahead; their outcomes in order.

        The caller may stop at any outcome and must then close the iterator.
        """
        waiting = 0
        try:
            for data in payloads:
                self.send(wire.pack(wire.TEST, data))
                waiting += 1
                if waiting >= _IN_FLIGHT:
                    waiting -= 1
                    yield self.receive_outcome()
            while waiting:
                waiting -= 1
                yield self.receive_outcome()
        finally:
            self._unwanted += waiting

    def send(self, frame: bytes) -> None:
        """Queues a frame; it leaves while the next one is waited for."""
        self._unsent.append(memoryview(frame))

    def receive_outcome(self) -> Outcome:
        while self._unwanted:
            self._unwanted -= 1
            self.receive()
        kind, data = self.receive()
        try:
            if kind == wire.OUTCOME:
                return Outcome.unpack(data)
        except ValueError as error:
            raise self._lost(str(error)) from error
        raise self._lost(f"a frame of kind {kind} instead of an outcome")

    def receive(self) -> tuple[int, bytes]:
        """The next frame of the agent. Raises SandboxError if the agent is gone or silent for too long."""
        try:
            if (frame := self._frames.pop()) is None:
                frame = self._next_frame()
        except (OSError, ValueError) as error:
            raise self._lost(str(error)) from error
        return frame

    def close(self) -> None:
        self._link.close()

    def _next_frame(self) -> tuple[int, bytes]:
        poll = select.poll()
        deadline = time.monotonic() + self._patience_s
        while (frame := self._frames.pop()) is None:
            poll.register(self._link.fileno(), select.POLLIN | (select.POLLOUT if self._unsent else 0))
            events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not events:
                raise self._lost(f"it was silent for {self._patience_s:.0f} s")
            if events[0][1] & select.POLLOUT:
                self._send_some()
            if events[0][1] & ~select.POLLOUT:
                self._receive_some()
        return frame

    def _send_some(self) -> None:
        data = b"".join(self._unsent) if sum(map(len, self._unsent)) < 1 << 18 else self._unsent[0]
        if len(data) != len(self._unsent[0]):
            self._unsent = deque([memoryview(data)])
        sent = self._link.send(self._unsent[0])
        if sent == len(self._unsent[0]):
            self._unsent.popleft()
        else:
            self._unsent[0] = self._unsent[0][sent:]

    def _receive_some(self) -> None:
        try:
            data = self._link.receive()
        except BlockingIOError:
            return
        if not data:
            raise self._lost("it ended")
        self._frames.feed(data)

    def _lost(self, reason: str) -> SandboxError:
        said = self._link.close()
        return SandboxError(f"the sandbox's agent is lost: {reason}" + (f" ({said})" if said else ""))
