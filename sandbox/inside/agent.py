"""The agent: one process that has a template for the program at hand, passes it tests, and reports what became of each.

It reads frames from the host (see `wire`). After each test no process, file or byte of it is left; after each program no
process but the agent. When the host goes away the agent ends, and with it, as process 1, everything in its namespace.
"""

from __future__ import annotations

import gc
import marshal
import os
import resource
import sys
import time

from sandbox.inside import names, runner, wire
from sandbox.inside.rlimit import lower_limit
from sandbox.inside.scratch import Scratch, remove
from sandbox.inside.template import Template
from sandbox.inside.watch import Limits, Watch, end_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_FLUSH_EVERY_S = 0.02
_REPEATS = 10
_STACK_BYTES = 120 << 20  # what the kernel keeps free below the stack of a process that was started as usual


class Channel:
    """The two descriptors to the host. Outcomes are gathered for a few milliseconds unless the host waits for each."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd, self._write_fd = read_fd, write_fd
        self._frames = wire.FrameBuffer()
        self._unsent = bytearray()
        self._sent_at = 0.0

    def receive(self) -> tuple[int, bytes]:
        """The next frame. Raises EOFError when the host is gone."""
        while (frame := self._frames.pop()) is None:
            self.flush()
            data = os.read(self.read_fd, 1 << 16)
            if not data:
                raise EOFError
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
        self._template: Template | None = None
        self._exports: dict[str, str] = {}
        self._children = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)

    def serve(self) -> NoReturn:
        self._channel.send(wire.pack(wire.READY, b""), at_once=True)
        while True:
            kind, payload = self._channel.receive()
            if kind == wire.LOAD:
                self._load(marshal.loads(payload))
            elif kind == wire.TEST:
                self._channel.send(self._outcome(payload[:1], payload[1:]), self._eager)

    def _load(self, job: dict[str, Any]) -> None:
        self._end_template()
        self._job, self._limits, self._eager = job, Limits(*job["limits"]), job["eager"]
        self._refused = b""
        self._scratch.place(job["source"].encode("utf-8", "surrogatepass"))
        if job["entry_point"] and not self._exports:
            runner.import_for_calls()
            self._exports = names.table()

    def _outcome(self, kind: bytes, payload: bytes) -> bytes:
        """The outcome of a test. A program may kill its template just when that knows how the test ended: then it runs again."""
        for _ in range(_REPEATS):
            if outcome := self._refused or self._attempt(kind, payload):
                return outcome
        return wire.pack_outcome(wire.EXITED, -9, 0.0, 0.0, 0, b"", b"", b"")

    def _attempt(self, kind: bytes, payload: bytes) -> bytes | None:
        """Runs a test; None if nobody knows how it ended."""
        began = time.monotonic()
        template = self._template
        if template is None:
            template, failed = self._new_template(began)
            if failed:
                return failed
        nonce = os.urandom(16) if kind == b"c" else b""
        template.start(kind, nonce, payload)
        ended, report, stderr, cpu_s, peak = self._watch.follow(self._limits)
        known = bool(report) or ended != wire.EXITED
        status, own_cpu_s, own_peak = marshal.loads(report) if report else (9, 0.0, 0)
        strays = os.pread(self._children, 4096, 0).split() != [b"%d" % template.pid]
        disturbed = strays or self._watch.lost or not report
        others_cpu_s = end_all(template.pid) if disturbed else 0.0
        output = self._limits.output
        stdout = template.content(template.stdout, output + 1)
        record = template.content(template.record, output + 1) if template.record >= 0 else b""
        if ended == wire.EXITED and max(len(stdout), len(record)) > output:
            ended = wire.OUTPUT_LIMIT
        self._job["count"] -= known
        if disturbed:
            self._end_template()
        elif self._job["count"] == 0:
            os.waitpid(template.pid, 0)  # it ends by itself after its last test
            self._free_template()
        self._scratch.tidy()
        if not known:
            return None
        return wire.pack_outcome(
            ended,
            os.waitstatus_to_exitcode(status),
            max(cpu_s, own_cpu_s + others_cpu_s),
            time.monotonic() - began,
            max(peak, own_peak * 1024),
            stdout,
            stderr,
            record[len(nonce) :] if record.startswith(nonce) else b"",
        )

    def _new_template(self, began: float) -> tuple[Template, bytes]:
        """A template that is ready for tests; else the outcome of the test at hand, and of all others if they cannot run."""
        template = Template(self._job, self._scratch, self._exports, self._count_processes)
        self._template = template
        self._watch: Watch = template.watch(self._relay, self._channel.read_fd)
        ended, report, stderr, cpu_s, peak = self._watch.follow(self._limits)
        if report == b"R":
            return template, b""
        letter, note = report[:1], report[1:]
        if letter:
            ended = wire.SYNTAX_ERROR if letter == b"S" else wire.PRELUDE_ERROR
        outcome = wire.pack_outcome(ended, 1, cpu_s, time.monotonic() - began, peak, b"", note or stderr, b"")
        self._refused = outcome if letter else b""
        self._end_template()
        self._scratch.tidy()
        return template, outcome

    def _end_template(self) -> None:
        if self._template:
            end_all(self._template.pid)
            self._free_template()

    def _free_template(self) -> None:
        if self._template:
            self._watch.close()
            self._template.close()
            self._template = None

    def _relay(self) -> None:
        """Takes one call from the process of an assert test to the host, and the answer back."""
        assert self._template
        channel, frames = self._template.channel, wire.FrameBuffer()
        while (frame := frames.pop()) is None:
            data = os.read(channel, 1 << 16)
            if not data:
                return
            frames.feed(data)
        self._channel.send(wire.pack(wire.CALL, frame[1]), at_once=True)
        _, answer = self._channel.receive()
        wire.write_all(channel, wire.pack(wire.REPLY, answer))


def main(config: dict[str, Any]) -> NoReturn:
    """Runs the agent on descriptors 0 and 1, in a process that `harden` has prepared."""
    if os.getpid() == 1 and os.access(
        "/proc/self/mem", os.R_OK
    ):  # the interpreter's file can be read, so this process can
        from sandbox.inside import harden

        harden.close_to_others()
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    for name in ("LD_LIBRARY_PATH", "LD_BIND_NOW"):
        os.environ.pop(name, None)
    lower_limit(resource.RLIMIT_STACK, _STACK_BYTES)  # not earlier: threads take what was in force at the start
    runner.supply_site_builtins()
    sys.argv[:], sys.path[:0] = ["main.py"], [config["scratch"][0]]
    sys.path += config["packages"]
    runner.rehearse()
    agent = Agent(Channel(read_fd, write_fd), Scratch(config["scratch"]), config["count_processes"])
    gc.collect()
    gc.freeze()
    try:
        agent.serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the host is gone
        end_all(0)
        for directory in config["remove"]:
            remove(directory)
    os._exit(0)
