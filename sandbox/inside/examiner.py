"""The process of an assert test, in a sandbox of its own: runs the test's code against a stand-in for the program.

`candidate`, and the name of the entry point, are the stand-in: a call goes over a channel to the host, which has the
program's sandbox answer it, and the value that comes back is rebuilt here from plain data. So the program never shares a
process with the code that examines it. A call passes its arguments by value: what the program does to them is not seen here.
"""

from __future__ import annotations

import builtins
import json
import os
import socket

from sandbox.inside import names, wire
from sandbox.inside.runner import message
from sandbox.values import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from sandbox.values import Json

HELD, FAILED, PROGRAM_FAILED, UNUSABLE = (b"held", b"failed", b"program", b"unusable")


class Opaque:
    """Stands for a returned object that is no plain data. It equals nothing but itself."""


class ProgramFailedError(Exception):
    """A call did not return and raised nothing that has a built-in name."""


class Candidate:
    """The stand-in for the program's entry point."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._frames = wire.FrameBuffer()
        self.calls = 0
        self.raised: BaseException | None = None
        self.unusable: TypeError | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        try:
            call = json.dumps({"args": encode(list(args)), "kwargs": encode(kwargs)})
        except TypeError as error:
            self.unusable = error
            raise
        self._channel.sendall(wire.pack(wire.CALL, call.encode()))
        answer = json.loads(self._reply())
        if "value" in answer:
            return _rebuilt(answer["value"])
        self.raised = _raised(answer["error"], answer["message"])
        raise self.raised

    def _reply(self) -> bytes:
        while (frame := self._frames.pop()) is None:
            data = self._channel.recv(1 << 16)
            if not data:
                os._exit(1)
            self._frames.feed(data)
        return frame[1]


def _raised(name: str, message: str) -> Exception:
    """The built-in exception of that name, where there is one that takes a message."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:
            pass
    return ProgramFailedError(name, message)


def run_check(job: dict[str, Any], exports: dict[str, str], code: bytes, record: int, channel: int) -> NoReturn:
    """Runs the code of an assert test and records how it ended. A `check(candidate)` that it defines and does not call is
    called."""
    candidate = Candidate(socket.socket(fileno=channel))
    ended, note = HELD, b""
    try:
        prelude = compile(job["prelude"], "prelude.py", "exec", dont_inherit=True)
        body = compile(code.decode(), "test.py", "exec", dont_inherit=True)
        namespace = names.supplied(names.mentioned(names.code_objects(prelude, body)), exports)
        namespace |= {"__name__": "check", "__builtins__": builtins}
        exec(prelude, namespace)
        namespace |= _stand_ins(candidate, job["entry_point"])
        exec(body, namespace)
        if not candidate.calls and callable(check := namespace.get("check")):
            check(candidate)
    except BaseException as error:
        ended, note = _fault(candidate, error), message(error)
    wire.write_all(2, note)
    wire.write_all(record, ended)
    os._exit(0)


def _fault(candidate: Candidate, error: BaseException) -> bytes:
    if error is candidate.raised:
        return PROGRAM_FAILED
    return UNUSABLE if error is candidate.unusable or isinstance(error, SyntaxError) else FAILED


def _stand_ins(candidate: Candidate, entry_point: str | None) -> dict[str, Any]:
    owner, _, method = (entry_point or "").rpartition("().")
    names: dict[str, Any] = {"candidate": candidate}
    if owner:
        names[owner] = type(owner, (), {method: staticmethod(candidate)})
    elif method:
        names[method] = candidate
        names["Solution"] = type("Solution", (), {method: staticmethod(candidate)})
    return names


def _rebuilt(tree: Json) -> Any:
    """The value of a tagged tree in which objects that are no plain data, at any depth, become `Opaque`."""
    if isinstance(tree, list):
        return [_rebuilt(item) for item in tree]
    if isinstance(tree, dict):
        tag = next(iter(tree), "")
        if tag == "$object":
            return Opaque()
        if not tag.startswith("$"):
            return {key: _rebuilt(item) for key, item in tree.items()}
        if tag in ("$tuple", "$set", "$frozenset"):
            kind = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}[tag]
            return kind(_rebuilt(item) for item in tree[tag])
        if tag == "$dict":
            return {_rebuilt(key): _rebuilt(item) for key, item in tree[tag]}
    return decode(tree)
