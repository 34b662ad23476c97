"""The template of a program: a process that has it compiled and forks one process for each of its tests.

It is forked from the agent, takes the program's streams and limits upon itself, compiles, runs the prelude, imports the standard
modules that the program mentions, and then repeats: fork, wait, report. The fork happens ahead: the new process waits for
the agent's command itself, so it is there before its test is. The streams are files of the program, emptied by the agent between
tests; only stderr is a pipe, because nobody compares it and it may be endless.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import marshal
import os
import resource

from sandbox.inside import names, runner
from sandbox.inside.rlimit import lower_limit
from sandbox.inside.scratch import Scratch
from sandbox.inside.watch import Limits, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any, NoReturn

# Where a template keeps its descriptors beyond the streams, out of the way of programs that count from 3.
_COMMANDS, _REPORTS, _CALL, _RECORD, _CHANNEL, _END = range(240, 246)
_LONGEST_NOTE = 4000  # a pipe takes that much in one piece
_ROOM_BEYOND_LIMIT = 4 << 30  # for a data segment that is reserved but never touched, such as thread stacks


class Template:
    """The agent's handle: starts the process, passes it tests, and ends it. `job` is what LOAD carried."""

    def __init__(self, job: dict[str, Any], scratch: Scratch, exports: dict[str, str], count_processes: bool) -> None:
        self._stdin, self.stdout = scratch.file(), scratch.file()
        by_name = bool(job["entry_point"])
        self._call, self.record = (scratch.file(), scratch.file()) if by_name else (-1, -1)
        stderr, stderr_end = os.pipe()
        commands_end, self._commands = os.pipe()
        reports, reports_end = os.pipe()
        self.channel, channel_end = _socket_pair() if job["examines"] else (-1, -1)
        self.pid = os.fork()
        if self.pid == 0:
            kept = (commands_end, reports_end, self._call, self.record, channel_end)
            _grow(job, (self._stdin, self.stdout, stderr_end), kept, exports, count_processes)
        for fd in (stderr_end, commands_end, reports_end, channel_end):
            if fd >= 0:
                os.close(fd)
        self._fds = [
            fd for fd in (self._stdin, self.stdout, self._call, self.record, stderr, reports, self._commands) if fd >= 0
        ]
        self._reports, self._stderr = reports, stderr
        self._dirty = False

    def watch(self, relay: Callable[[], None], host: int) -> Watch:
        files = (self.stdout, self.record) if self.record >= 0 else (self.stdout,)
        channel = (self.channel, relay) if self.channel >= 0 else None
        return Watch(self.pid, self._reports, self._stderr, files, channel, host)

    def start(self, kind: bytes, nonce: bytes, payload: bytes) -> None:
        """Has the process that waits run one test."""
        target = self._stdin if kind == b"s" else self._call
        if payload or self._dirty:
            at = os.pwrite(target, payload, 0)
            while at < len(payload):
                at += os.pwrite(target, memoryview(payload)[at:], at)
            os.ftruncate(target, at)
            os.lseek(target, 0, os.SEEK_SET)
            self._dirty = True
        os.write(self._commands, kind + nonce)

    def content(self, fd: int, limit: int) -> bytes:
        """What a test has written to a file of its own, at most `limit` bytes; empties the file."""
        size = os.fstat(fd).st_size
        parts, at = [], 0
        while at < min(size, limit) and (part := os.pread(fd, min(size, limit) - at, at)):
            parts.append(part)
            at += len(part)
        if size:
            os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        return b"".join(parts)

    def close(self) -> None:
        """Frees the descriptors; the process is the caller's to end."""
        for fd in (*self._fds, *((self.channel,) if self.channel >= 0 else ())):
            os.close(fd)


def _socket_pair() -> tuple[int, int]:
    import socket

    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def _grow(
    job: dict[str, Any],
    streams: tuple[int, int, int],
    kept: tuple[int, ...],
    exports: dict[str, str],
    count_processes: bool,
) -> NoReturn:
    """In the forked process: the template."""
    try:
        os.setpgid(0, 0)
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        for target, fd in enumerate(streams):
            os.dup2(fd, target)
        for place, fd in enumerate(kept, _COMMANDS):
            if fd >= 0:
                os.dup2(fd, place, inheritable=False)
        os.closerange(3, _COMMANDS)
        limits = Limits(*job["limits"])
        lower_limit(resource.RLIMIT_DATA, limits.memory + _ROOM_BEYOND_LIMIT)
        lower_limit(resource.RLIMIT_FSIZE, max(limits.output, limits.file) + 1)
        if count_processes:
            lower_limit(resource.RLIMIT_NPROC, limits.processes)
        body, namespace = _prepared(job, exports)
        gc.freeze()
        _repeat(job, body, namespace, exports)
    finally:
        os._exit(1)


def _prepared(job: dict[str, Any], exports: dict[str, str]) -> tuple[CodeType, dict[str, Any]]:
    """The program's code, and the namespace for it in which the prelude has run. Reports and exits if there can be none."""
    prelude = _compiled(b"P", job["prelude"], "prelude.py") if job["prelude"] else None
    body = _compiled(b"S", job["source"], "main.py")
    codes = names.code_objects(body, prelude) if prelude else names.code_objects(body)
    names.import_ahead(codes)
    entry_point = job["entry_point"]
    if not entry_point:
        namespace = runner.new_module("__main__", {})
    else:
        given = names.supplied(names.mentioned(codes) - {entry_point.rpartition(".")[2]}, exports)
        namespace = runner.new_module("main", given)
    if prelude and not job["examines"]:
        try:
            exec(prelude, namespace)
        except BaseException as error:
            _refuse(b"P", error)
    return body, namespace


def _compiled(letter: bytes, source: str, name: str) -> CodeType:
    try:
        return compile(source.removeprefix("\ufeff"), name, "exec", dont_inherit=True)  # as Python reads a file
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        _refuse(letter, error)


def _refuse(letter: bytes, error: BaseException) -> NoReturn:
    os.write(_REPORTS, letter + runner.message(error)[-_LONGEST_NOTE:])
    os._exit(1)


def _repeat(job: dict[str, Any], body: CodeType, namespace: dict[str, Any], exports: dict[str, str]) -> NoReturn:
    os.write(_REPORTS, b"R")
    left = job["count"]
    while left != 0:
        pid = os.fork()
        if pid == 0:
            _become(os.read(_COMMANDS, 64), job, body, namespace, exports)
        # A template that the test has killed dies here, before it takes the test's status from the agent.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        _, status, usage = os.wait4(pid, 0)
        os.write(_REPORTS, marshal.dumps((status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)))
        left -= 1
    os._exit(0)


def _become(
    command: bytes, job: dict[str, Any], body: CodeType, namespace: dict[str, Any], exports: dict[str, str]
) -> NoReturn:
    """In the process of a test, once the agent has given its command. It never returns into the template's loop."""
    try:
        os.setpgid(0, 0)
        kind, nonce = command[:1], command[1:]
        if kind == b"s":
            os.closerange(_COMMANDS, _END)
            if job["entry_point"]:  # the namespace is that of a module to call; this test wants a script
                namespace = runner.new_module("__main__", {})
                exec(compile(job["prelude"], "prelude.py", "exec", dont_inherit=True), namespace)
            runner.run_stdin(body, namespace)
        os.closerange(_COMMANDS, _CALL)
        payload = runner.read_all(_CALL)
        os.close(_CALL)
        if kind == b"c":
            runner.run_call(body, namespace, job["entry_point"], payload, _RECORD, nonce)
        elif kind == b"a":
            from sandbox.inside import examiner

            examiner.run_check(job, exports, payload, _RECORD, _CHANNEL)
    finally:
        os._exit(1)
