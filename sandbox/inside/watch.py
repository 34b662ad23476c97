"""Watches a test's processes against its limits, and ends all of them.

CPU time and resident memory are read from /proc for the whole tree of processes that the test started, every few
milliseconds, and taken from the kernel's accounting at the end: an overrun between two looks is still seen. The wall limit is
a backstop against programs that sleep: time that a program's first process spent runnable but waiting for a core does not
count, up to four times the limit, so a busy machine does not trip it.

Shared pages cannot be told apart from here, so each further process counts with the memory that it has beyond the most that
its parent had, and the plain sum may reach four times the limit.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import marshal
import os
import select
import time

from sandbox.inside import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TICK_MS = 10
_PATIENCE_S = 2.0  # for a template to report a test that has been killed
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CPU_UNIT = os.sysconf("SC_CLK_TCK")
_KEPT = 8192  # bytes of stderr kept from its beginning, and as many from its end


class Limits:
    """CPU and wall seconds, bytes of resident memory, processes and threads, bytes of stdout, bytes per file."""

    def __init__(self, cpu_s: float, wall_s: float, memory: int, processes: int, output: int, file: int) -> None:
        self.cpu_s, self.wall_s, self.memory = cpu_s, wall_s, memory
        self.processes, self.output, self.file = processes, output, file

    def as_tuple(self) -> tuple[float, float, int, int, int, int]:
        return self.cpu_s, self.wall_s, self.memory, self.processes, self.output, self.file


class Excerpt:
    """The beginning and the end of a stream that may be endless."""

    def __init__(self) -> None:
        self._head, self._tail = b"", b""

    def add(self, data: bytes) -> None:
        room = _KEPT - len(self._head)
        self._head += data[:room]
        if room < len(data):
            self._tail = (self._tail + data[room:])[-_KEPT:]

    def text(self) -> bytes:
        gap = b"\n[...]\n" if len(self._tail) == _KEPT else b""
        return self._head + gap + self._tail


class Watch:
    """Watches the tests of one template. `reports` and `stderr` are read here; each of `files` may grow to the output limit.

    `channel` is a descriptor and what to do when a test has written to it; `host` the descriptor whose other end the host
    holds: when that is gone, nobody waits for the test, and `follow` raises EOFError.
    """

    def __init__(
        self,
        template: int,
        reports: int,
        stderr: int,
        files: tuple[int, ...],
        channel: tuple[int, Callable[[], None]] | None,
        host: int,
    ) -> None:
        self._template, self._reports, self._stderr, self._files, self._channel = (
            template,
            reports,
            stderr,
            files,
            channel,
        )
        self._host = host
        self._lost, self._orphan, self._orphan_pid = False, 0, 0
        self._poll = select.poll()
        for fd in (reports, stderr, *((channel[0],) if channel else ())):
            self._poll.register(fd, select.POLLIN)
        self._poll.register(host, 0)

    def follow(self, limits: Limits) -> tuple[int, bytes, bytes, float, int]:
        """Waits for the template's report, or ends the test: the reason, the report (empty if the template is lost and the test
        with it), stderr, and CPU seconds and peak memory as they were seen from outside."""
        began = looked = time.monotonic()
        ended, cpu_s, peak, excerpt = wire.EXITED, 0.0, 0, None
        while True:
            ready = dict(self._poll.poll(_TICK_MS))
            if ready.get(self._stderr, 0) & select.POLLIN:
                excerpt = excerpt or Excerpt()
                excerpt.add(os.read(self._stderr, 1 << 16))
            elif (self._orphan or self._reports) in ready and (report := self._report()) is not None:
                return ended, report, excerpt.text() if excerpt else b"", cpu_s, peak
            if self._host in ready:
                raise EOFError
            if self._channel and self._channel[0] in ready:
                self._channel[1]()
            now = time.monotonic()
            if now - looked >= _TICK_MS / 1000:
                looked = now
                kill(self._template, _signal.SIGCONT)  # a program may have stopped it
                cpu_s, memory, first = self._tree_usage(limits.memory)
                peak = max(peak, memory)
                if ended == wire.EXITED:
                    ended = self._overrun(first, cpu_s, memory, now - began, limits)
                    began = now if ended != wire.EXITED else began
                elif now - began > _PATIENCE_S:
                    return ended, b"", excerpt.text() if excerpt else b"", cpu_s, peak
                if ended != wire.EXITED:
                    for pid in self._roots() or [self._template]:
                        kill(pid)

    @property
    def lost(self) -> bool:
        """Whether the template died, by the program's doing: it can fork no other test."""
        return self._lost

    def _report(self) -> bytes | None:
        """The template's report; if a program has killed its template, what the kernel says of the test that it left behind,
        None as long as that runs."""
        if self._orphan:
            _, status, usage = os.wait4(self._orphan_pid, 0)
            return marshal.dumps((status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))
        report = os.read(self._reports, 1 << 16)
        if report:
            return report
        self._lost = True
        self._poll.unregister(self._reports)
        os.waitid(os.P_PID, self._template, os.WEXITED | os.WNOWAIT)  # its children are the agent's from here on
        left_behind = self._adopted()
        if not left_behind:
            return b""
        self._orphan_pid = min(left_behind)  # the test's first process; others that it started came after it
        self._orphan = os.pidfd_open(self._orphan_pid)
        self._poll.register(self._orphan, select.POLLIN)
        return None

    def close(self) -> None:
        if self._orphan:
            os.close(self._orphan)

    def _overrun(self, first: int, cpu_s: float, memory: int, wall_s: float, limits: Limits) -> int:
        if cpu_s > limits.cpu_s:
            return wire.CPU_LIMIT
        if memory > limits.memory:
            return wire.MEMORY_LIMIT
        for fd in self._files:
            if os.fstat(fd).st_size > limits.output:
                return wire.OUTPUT_LIMIT
        if wall_s > limits.wall_s and (wall_s > 4 * limits.wall_s or wall_s - _queued_s(first) > limits.wall_s):
            return wire.WALL_LIMIT
        return wire.EXITED

    def _roots(self) -> list[int]:
        """The test's own process, and what the agent has adopted."""
        return _children(self._template) + self._adopted()

    def _adopted(self) -> list[int]:
        """What lost its parent and so became a child of the agent."""
        return [pid for pid in _children(os.getpid()) if pid != self._template]

    def _tree_usage(self, limit: int) -> tuple[float, int, int]:
        """CPU seconds and bytes of resident memory of the test's processes, and the first of these.

        When the first has ended and its report is on the way, what it shared with those that it leaves behind can no longer be told
        from what they have: only the plain sum counts then.
        """
        cpu_s, residents, growth = 0.0, [], 0
        own = _children(self._template)
        roots = own + self._adopted() or [self._template]  # no test yet: the program is being compiled
        first = self._orphan_pid or roots[0]
        shared = _resident(self._template) or _resident(os.getpid())  # by all that descends from it
        has_ended = first not in (self._template, self._orphan_pid, *own)
        pending = [(pid, 0 if pid == first else shared) for pid in roots]
        while pending:
            pid, inherited = pending.pop()
            children = _children(pid)  # before its size is read, which so holds all that they took over from it
            fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            resident = int(fields[21]) * _PAGE if len(fields) > 21 else 0
            has_ended = has_ended or (pid == first and not resident)
            cpu_s += sum([int(field) for field in fields[11:15]]) / _CPU_UNIT
            growth += max(0, resident - inherited)
            residents.append(resident)
            if children:
                inherited = max(resident, _largest_resident(pid)) or inherited
                pending += [(child, inherited) for child in children]
        beyond_template = sum([max(0, resident - shared) for resident in residents])
        return cpu_s, max(0 if has_ended else growth, beyond_template - 3 * limit), first


def end_all(template: int) -> float:
    """Ends and reaps every process below this one; returns the CPU seconds of those that were not the template's."""
    used = 0.0
    while True:
        if os.getpid() == 1:
            try:
                os.kill(-1, _signal.SIGKILL)
            except ProcessLookupError:
                pass
        else:  # not in a namespace of its own: only what descends from here
            for child in _children(os.getpid()):
                for grandchild in _children(child):
                    kill(grandchild)
                kill(child)
        try:
            pid, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return used
        if pid != template:
            used += usage.ru_utime + usage.ru_stime


def kill(pid: int, number: int = _signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _queued_s(pid: int) -> float:
    """Seconds that the process's first thread waited for a core while it could have run."""
    fields = _read(f"/proc/{pid}/schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def _resident(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def _largest_resident(pid: int) -> int:
    """What a process had when it had most: it may have freed since what its children still share."""
    found = _read(f"/proc/{pid}/status").partition("VmHWM:")[2].split(maxsplit=1)
    return int(found[0]) * 1024 if found else 0


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
