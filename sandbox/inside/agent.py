"""The agent: one process that forks one process per test and reports what became of it.

It reads frames from the host (see `wire`), keeps the program's compiled code as bytes, which the program's first test makes
in passing, and is otherwise without state: after each test no process, file or descriptor of it is left. When the host goes
away it ends, and with it, as process 1, everything in its namespace.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import time
from typing import Any, NoReturn

from sandbox.inside import examiner, harden, runner, wire
from sandbox.inside.runner import Descriptors, Program
from sandbox.inside.scratch import Scratch
from sandbox.inside.watch import Limits, watch
from sandbox.inside.wire import Outcome

_FLUSH_EVERY_S = 0.005


class Channel:
    """The two descriptors to the host. Outcomes are gathered for a few milliseconds unless the host waits for each."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._frames = wire.FrameBuffer()
        self._unsent = bytearray()
        self._sent_at = 0.0

    def receive(self) -> tuple[int, bytes]:
        """The next frame; exits when the host is gone."""
        while (frame := self._frames.pop()) is None:
            self.flush()
            data = os.read(self._read_fd, 1 << 16)
            if not data:
                os._exit(0)
            self._frames.feed(data)
        return frame

    def send(self, data: bytes, at_once: bool) -> None:
        self._unsent += data
        if at_once or len(self._unsent) > 1 << 16 or time.monotonic() - self._sent_at > _FLUSH_EVERY_S:
            self.flush()

    def flush(self) -> None:
        if self._unsent:
            wire.write_all(self._write_fd, self._unsent)
            self._unsent.clear()
            self._sent_at = time.monotonic()


class Agent:
    def __init__(self, channel: Channel, scratch: Scratch, count_processes: bool) -> None:
        self._channel, self._scratch, self._count_processes = channel, scratch, count_processes
        self._names = runner.preloaded_names()
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)

    def serve(self) -> NoReturn:
        self._channel.send(wire.pack(wire.READY, json.dumps({"python": sys.version}).encode()), at_once=True)
        while True:
            kind, payload = self._channel.receive()
            if kind == wire.LOAD:
                self._load(json.loads(payload))
            elif kind == wire.TEST:
                self._channel.send(self._run(payload[:1], payload[1:]).pack(), self._eager)

    def _load(self, job: dict[str, Any]) -> None:
        self._program = Program(job["source"], job["prelude"], job["entry_point"])
        self._limits = Limits(**job["limits"])
        self._eager: bool = job["eager"]
        self._code = b""
        self._refused: Outcome | None = None
        self._scratch.place(job["source"].encode("utf-8", "surrogatepass"))

    def _run(self, kind: bytes, payload: bytes) -> Outcome:
        if self._refused:
            return self._refused
        files = {"stdout": self._scratch.file()}
        if kind == b"s" and payload:
            files["stdin"] = self._scratch.file()
            wire.write_all(files["stdin"], payload)
            os.lseek(files["stdin"], 0, os.SEEK_SET)
        if not self._code and kind != b"a":
            files["compiled"] = self._scratch.file()
        if kind != b"s":
            files["record"] = self._scratch.file()
        try:
            return self._run_in(files, kind, payload)
        finally:
            for fd in files.values():
                os.close(fd)
            self._scratch.tidy()

    def _run_in(self, files: dict[str, int], kind: bytes, payload: bytes) -> Outcome:
        stderr, stderr_end = os.pipe()
        ours, theirs = socket.socketpair() if kind == b"a" else (None, None)
        nonce = os.urandom(16) if kind == b"c" else b""
        fds = Descriptors(
            files.get("stdin", self._null),
            files["stdout"],
            stderr_end,
            files.get("compiled", -1),
            files.get("record", -1),
            theirs.fileno() if theirs else -1,
        )
        if (pid := os.fork()) == 0:
            self._become(kind, payload, fds, nonce)
        os.close(stderr_end)
        if theirs:
            theirs.close()
        watched = tuple(files[name] for name in ("stdout", "record") if name in files)
        relay = (ours.fileno(), lambda: self._relay(ours)) if ours else None
        try:
            usage = watch(pid, stderr, watched, self._limits, relay)
        finally:
            os.close(stderr)
            if ours:
                ours.close()
        if "compiled" in files and (refused := self._take_code(_content(files["compiled"], wire.MAX_FRAME))):
            return refused
        stdout, record = (
            _content(files[name], self._limits.output + 1) if name in files else b"" for name in ("stdout", "record")
        )
        ended = usage.ended
        if ended == wire.EXITED and max(len(stdout), len(record)) > self._limits.output:
            ended = wire.OUTPUT_LIMIT
        value = record[len(nonce) :] if record.startswith(nonce) else b""
        return Outcome(ended, usage.status, usage.cpu_s, usage.wall_s, usage.peak, stdout, usage.stderr, value)

    def _become(self, kind: bytes, payload: bytes, fds: Descriptors, nonce: bytes) -> NoReturn:
        """In the forked process: the test. It never returns into the agent's loop."""
        try:
            fds = runner.enter(fds, self._limits, self._count_processes)
            if kind == b"s":
                runner.run_stdin(self._program, self._code, fds)
            elif kind == b"c":
                runner.run_call(self._program, self._code, fds, self._names, payload, nonce)
            else:
                examiner.run_check(self._program, fds, self._names, payload)
        finally:
            os._exit(1)

    def _take_code(self, note: bytes) -> Outcome | None:
        """Keeps the compiled code; returns the outcome of every test if there can be none."""
        letter, content = note[:1], note[1:]
        if letter == b"C":
            self._code = content
        elif letter:
            ended = wire.SYNTAX_ERROR if letter == b"S" else wire.PRELUDE_ERROR
            self._refused = Outcome(ended, 1, 0.0, 0.0, 0, b"", content, b"")
        return self._refused

    def _relay(self, examiner_end: socket.socket) -> None:
        """Takes one call from the process of an assert test to the host, and the answer back."""
        frames = wire.FrameBuffer()
        while (frame := frames.pop()) is None:
            data = examiner_end.recv(1 << 16)
            if not data:
                return
            frames.feed(data)
        self._channel.send(wire.pack(wire.CALL, frame[1]), at_once=True)
        _, answer = self._channel.receive()
        examiner_end.sendall(wire.pack(wire.REPLY, answer))


def _content(fd: int, limit: int) -> bytes:
    size = min(os.fstat(fd).st_size, limit)
    parts, at = [], 0
    while at < size and (part := os.pread(fd, size - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def main(config: dict[str, Any]) -> NoReturn:
    """Runs the agent on descriptors 0 and 1. `config` is what the backend wants done first (see `backends`)."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    for directory, options in config["mounts"]:
        harden.mount_tmpfs(directory, options)
    os.chdir(config["scratch"][0])
    harden.limit_resources()
    if os.getpid() == 1:
        harden.close_to_others()
        harden.drop_privileges()
    else:
        harden.adopt_orphans()
    if config["seccomp"]:
        harden.filter_system_calls(bytes.fromhex(config["seccomp"]))
    runner.supply_site_builtins()
    sys.argv[:], sys.path[:0] = ["main.py"], [config["scratch"][0]]
    sys.path += config["packages"]
    agent = Agent(Channel(read_fd, write_fd), Scratch(config["scratch"]), config["count_processes"])
    for name in [name for name in sys.modules if name.split(".")[0] in ("sandbox", "ctypes", "_ctypes")]:
        del sys.modules[name]
    gc.collect()
    gc.freeze()
    agent.serve()
