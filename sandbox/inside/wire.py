"""The frames between the host and the agent.

A frame is `length (4 bytes, big endian), kind (1 byte), payload`. The host sends LOAD once per program, then its TESTs; the
agent answers every TEST with one OUTCOME, in order. CALL and REPLY are the questions of an assert test in between. An outcome is
a line of numbers (see `FIELDS`), followed by three runs of bytes that are opaque here.
"""

from __future__ import annotations

import os

READY, LOAD, TEST, OUTCOME, CALL, REPLY = range(6)
MAX_FRAME = 256 << 20

# How a test ended, as the agent saw it.
EXITED, CPU_LIMIT, WALL_LIMIT, MEMORY_LIMIT, OUTPUT_LIMIT, SYNTAX_ERROR, PRELUDE_ERROR = range(7)

# `status` is the exit status, or minus the signal; `peak` bytes of resident memory; then the lengths of the three parts.
FIELDS = ("ended", "status", "cpu_s", "wall_s", "peak", "stdout", "stderr", "record")

_HEADER = 5


def pack(kind: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + bytes((kind,)) + payload


def pack_outcome(
    ended: int, status: int, cpu_s: float, wall_s: float, peak: int, stdout: bytes, stderr: bytes, record: bytes
) -> bytes:
    head = f"{ended} {status} {cpu_s:.6f} {wall_s:.6f} {peak} {len(stdout)} {len(stderr)} {len(record)}\n"
    return pack(OUTCOME, head.encode() + stdout + stderr + record)


class FrameBuffer:
    """Bytes as they arrive, frames as they are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def pop(self) -> tuple[int, bytes] | None:
        """The next complete frame as (kind, payload), None if there is none yet. Raises ValueError for an absurd length."""
        data = self._bytes
        if len(data) < _HEADER:
            return None
        length = int.from_bytes(data[:4], "big")
        if length > MAX_FRAME:
            raise ValueError(f"a frame of {length} bytes")
        end = _HEADER + length
        if len(data) < end:
            return None
        kind, payload = data[4], bytes(memoryview(data)[_HEADER:end])
        del data[:end]
        return kind, payload


def write_all(fd: int, data: bytes | bytearray) -> None:
    done = os.write(fd, data)
    if done < len(data):
        view = memoryview(data)
        while done < len(data):
            done += os.write(fd, view[done:])
