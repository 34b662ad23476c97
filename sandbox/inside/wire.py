"""The frames between the host and the agent, and the record of what became of one test.

A frame is `length (4 bytes, big endian), kind (1 byte), payload`. The host sends LOAD once per program, then its TESTs; the
agent answers every TEST with one OUTCOME, in order. CALL and REPLY are the questions of an assert test in between. Everything
that a program wrote is an opaque run of bytes here.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

READY, LOAD, TEST, OUTCOME, CALL, REPLY = range(6)
MAX_FRAME = 256 << 20

# How a test ended, as the agent saw it.
EXITED, CPU_LIMIT, WALL_LIMIT, MEMORY_LIMIT, OUTPUT_LIMIT, SYNTAX_ERROR, PRELUDE_ERROR = range(7)

_HEADER = struct.Struct("!IB")
_OUTCOME = struct.Struct("!BiddQIII")


def pack(kind: int, payload: bytes) -> bytes:
    return _HEADER.pack(len(payload), kind) + payload


class FrameBuffer:
    """Bytes as they arrive, frames as they are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def pop(self) -> tuple[int, bytes] | None:
        """The next complete frame as (kind, payload), None if there is none yet. Raises ValueError for an absurd length."""
        if len(self._bytes) < _HEADER.size:
            return None
        length, kind = _HEADER.unpack_from(self._bytes)
        if length > MAX_FRAME:
            raise ValueError(f"a frame of {length} bytes")
        end = _HEADER.size + length
        if len(self._bytes) < end:
            return None
        payload = bytes(memoryview(self._bytes)[_HEADER.size : end])
        del self._bytes[:end]
        return kind, payload


def write_all(fd: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test, before anything is compared.

    `status` is the exit status, or minus the signal; `cpu_s` and `wall_s` seconds; `peak` bytes of resident memory; `record`
    what the runner reported (the value of a call, in JSON), empty if it did not come to that.
    """

    ended: int
    status: int
    cpu_s: float
    wall_s: float
    peak: int
    stdout: bytes
    stderr: bytes
    record: bytes

    def pack(self) -> bytes:
        head = _OUTCOME.pack(
            self.ended,
            self.status,
            self.cpu_s,
            self.wall_s,
            self.peak,
            len(self.stdout),
            len(self.stderr),
            len(self.record),
        )
        return pack(OUTCOME, b"".join((head, self.stdout, self.stderr, self.record)))

    @classmethod
    def unpack(cls, payload: bytes) -> Outcome:
        """Raises struct.error or ValueError if `payload` is no outcome."""
        ended, status, cpu_s, wall_s, peak, *lengths = _OUTCOME.unpack_from(payload)
        if len(payload) != _OUTCOME.size + sum(lengths):
            raise ValueError("an outcome whose parts do not add up")
        start, parts = _OUTCOME.size, []
        for length in lengths:
            parts.append(payload[start : start + length])
            start += length
        return cls(ended, status, cpu_s, wall_s, peak, *parts)
