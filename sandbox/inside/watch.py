"""Watches a test's processes against its limits, and ends all of them.

CPU time and resident memory are read from /proc for the whole tree of processes that the test started, every few
milliseconds, and taken from the kernel's accounting at the end: an overrun between two looks is still seen. The wall limit is
a backstop against programs that sleep: time that a program's first process spent runnable but waiting for a core does not
count, up to four times the limit, so a busy machine does not trip it.

Shared pages cannot be told apart from here, so each further process counts with the memory that it has beyond its parent's,
and the plain sum may reach four times the limit.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.inside import wire

_TICK_MS = 10
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CPU_UNIT = os.sysconf("SC_CLK_TCK")
_KEPT = 8192  # bytes of stderr kept from its beginning, and as many from its end


@dataclass(frozen=True, slots=True)
class Limits:
    """CPU and wall seconds, bytes of resident memory, processes and threads, bytes of stdout, bytes per file."""

    cpu_s: float
    wall_s: float
    memory: int
    processes: int
    output: int
    file: int


class Excerpt:
    """The beginning and the end of a stream that may be endless."""

    def __init__(self) -> None:
        self._head, self._tail = b"", b""

    def add(self, data: bytes) -> None:
        room = _KEPT - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-_KEPT:] if room < len(data) else self._tail

    def text(self) -> bytes:
        gap = b"\n[...]\n" if len(self._tail) == _KEPT else b""
        return self._head + gap + self._tail


@dataclass(slots=True)
class Usage:
    """What a test used. `ended` is one of the reasons in `wire`."""

    ended: int
    status: int
    cpu_s: float
    wall_s: float
    peak: int
    stderr: bytes


def watch(
    pid: int, stderr: int, files: tuple[int, ...], limits: Limits, channel: tuple[int, Callable[[], None]] | None = None
) -> Usage:
    """Waits for the process `pid` to end, or ends it; afterwards no process of the test is left.

    `stderr` is drained; each of `files` may grow to the output limit; `channel` is a descriptor and what to do when the
    process has written to it.
    """
    began = time.monotonic()
    handle = os.pidfd_open(pid)
    excerpt = Excerpt()
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(stderr, select.POLLIN)
    if channel:
        poll.register(channel[0], select.POLLIN)
    ended, peak, cpu_s, looked = wire.EXITED, 0, 0.0, began
    while ended == wire.EXITED:
        ready = dict(poll.poll(_TICK_MS))
        if handle in ready:
            break
        if stderr in ready:
            _drain_once(stderr, ready[stderr], excerpt, poll)
        if channel and channel[0] in ready:
            _serve(channel, ready[channel[0]], poll)
        now = time.monotonic()
        if now - looked >= _TICK_MS / 1000:
            looked = now
            cpu_s, memory = _tree_usage(pid, limits.memory)
            peak = max(peak, memory)
            ended = _overrun(pid, cpu_s, memory, now - began, files, limits)
    os.close(handle)
    status, own_cpu_s, own_peak = _end(pid, ended)
    others_cpu_s = end_others()
    while stderr_ready := [event for fd, event in poll.poll(0) if fd == stderr]:
        _drain_once(stderr, stderr_ready[0], excerpt, poll)
    return Usage(
        ended,
        status,
        max(cpu_s, own_cpu_s + others_cpu_s),
        time.monotonic() - began,
        max(peak, own_peak),
        excerpt.text(),
    )


def end_others() -> float:
    """Ends every process that is left of a test and reaps it; returns the CPU seconds that they used."""
    used = 0.0
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return used
        if pid:
            used += usage.ru_utime + usage.ru_stime
        elif os.getpid() == 1:
            os.kill(-1, signal.SIGKILL)
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        else:  # not in a namespace of its own: only what descends from here
            for child in _children(os.getpid()):
                _kill(child)
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)


def _end(pid: int, ended: int) -> tuple[int, float, int]:
    """Reaps the process, by force unless it has ended by itself: status, CPU seconds, peak memory in bytes."""
    if ended != wire.EXITED:
        _kill(pid)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _drain_once(stderr: int, event: int, excerpt: Excerpt, poll: select.poll) -> None:
    data = os.read(stderr, 1 << 16) if event & select.POLLIN else b""
    excerpt.add(data)
    if not data:
        poll.unregister(stderr)


def _serve(channel: tuple[int, Callable[[], None]], event: int, poll: select.poll) -> None:
    if event & select.POLLIN:
        channel[1]()
    else:
        poll.unregister(channel[0])


def _overrun(pid: int, cpu_s: float, memory: int, wall_s: float, files: tuple[int, ...], limits: Limits) -> int:
    if cpu_s > limits.cpu_s:
        return wire.CPU_LIMIT
    if memory > limits.memory:
        return wire.MEMORY_LIMIT
    if any(os.fstat(fd).st_size > limits.output for fd in files):
        return wire.OUTPUT_LIMIT
    if wall_s > limits.wall_s and (wall_s > 4 * limits.wall_s or wall_s - _queued_s(pid) > limits.wall_s):
        return wire.WALL_LIMIT
    return wire.EXITED


def _queued_s(pid: int) -> float:
    """Seconds that the process's first thread waited for a core while it could have run."""
    fields = _read(f"/proc/{pid}/schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def _tree_usage(root: int, limit: int) -> tuple[float, int]:
    """CPU seconds and bytes of resident memory of a process and its descendants."""
    cpu_s, memory, plain_sum, count = 0.0, 0, 0, 0
    pending = [(root, 0)]
    if os.getpid() == 1:  # what lost its parent became a child of process 1
        pending += [(pid, 0) for pid in _children(1) if pid != root]
    while pending:
        pid, inherited = pending.pop()
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if len(fields) < 22:
            continue
        cpu_s += sum(map(int, fields[11:15])) / _CPU_UNIT
        resident = int(fields[21]) * _PAGE
        memory += max(0, resident - inherited)
        plain_sum += resident
        count += 1
        pending += [(child, resident) for child in _children(pid)]
    return cpu_s, max(memory, plain_sum - 3 * limit if count > 1 else 0)


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _read(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(fd, 1 << 16).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
