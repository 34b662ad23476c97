"""One test's process: becomes the program, runs it as Python would run a script, and never returns.

The program gets real descriptors for stdin, stdout and stderr, no other, and the limits of the kernel that cannot be raised
again. A stdin test runs it as `__main__`. For a call test the program's module is named `main`, so that what stands under
`if __name__ == "__main__":` stays out of the way; the names that LeetCode preloads are defined before it starts, never by
changing its text. At the end the interpreter is not torn down, which would cost more than everything else: threads are
joined, exit handlers run, globals dropped and streams flushed, in the order of CPython, and then the process exits.
"""

from __future__ import annotations

import atexit
import builtins
import json
import marshal
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from sandbox.inside import harden
from sandbox.inside.watch import Limits
from sandbox.values import decode, encode_result

_ROOM_BEYOND_LIMIT = 4 << 30  # for a data segment that is reserved but never touched, such as thread stacks
_PRELOADED = (
    "typing", "collections", "math", "heapq", "bisect", "itertools", "functools", "string", "operator", "re",
    "random", "datetime", "copy", "statistics", "fractions", "decimal",
)  # fmt: skip
_NOT_STARRED = ("string", "operator", "re", "random", "datetime", "copy", "statistics", "decimal")


@dataclass(frozen=True, slots=True)
class Program:
    """What LOAD carries. `code` is the compiled prelude and program, marshalled, once the first test has made it."""

    source: str
    prelude: str
    entry_point: str | None


@dataclass(frozen=True, slots=True)
class Descriptors:
    """`compiled` receives the code of a program not compiled yet; `record` what a call returned; -1 where not wanted."""

    stdin: int
    stdout: int
    stderr: int
    compiled: int = -1
    record: int = -1
    channel: int = -1


def preloaded_names() -> dict[str, Any]:
    """The names that LeetCode defines for every program: common modules and what they export; no built-in is hidden."""
    names: dict[str, Any] = {}
    for name in _PRELOADED:
        module = __import__(name)
        if name not in _NOT_STARRED:
            exported = getattr(module, "__all__", None) or [key for key in vars(module) if not key.startswith("_")]
            names |= {key: getattr(module, key) for key in exported if not hasattr(builtins, key)}
    return (
        names
        | {name: sys.modules[name] for name in _PRELOADED if name != "copy"}
        | {"deepcopy": sys.modules["copy"].deepcopy}
    )


def supply_site_builtins() -> None:
    """Defines `exit`, `quit` and `help`, which Python leaves to the `site` module; that module costs too much to start."""
    from _sitebuiltins import Quitter, _Helper

    for name in ("exit", "quit"):
        setattr(builtins, name, Quitter(name, "Ctrl-D (i.e. EOF)"))
    builtins.help = _Helper()


def enter(fds: Descriptors, limits: Limits, count_processes: bool) -> Descriptors:
    """Makes this forked process the program's: its streams, its session, its limits. Returns where the others went.

    The kernel counts processes per user: `count_processes` only where no one else shares the user.
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for source, target in ((fds.stdin, 0), (fds.stdout, 1), (fds.stderr, 2)):
        os.dup2(source, target)
    extra = [fds.compiled, fds.record, fds.channel]
    kept = [os.dup2(fd, 240 + index, inheritable=False) if fd >= 0 else -1 for index, fd in enumerate(extra)]
    os.closerange(3, 240)
    for kind, limit in (
        (resource.RLIMIT_CPU, int(limits.cpu_s) + 2),
        (resource.RLIMIT_DATA, limits.memory + _ROOM_BEYOND_LIMIT),
        (resource.RLIMIT_FSIZE, max(limits.output, limits.file) + 1),
    ):
        harden.lower_limit(kind, limit)
    if count_processes:
        harden.lower_limit(resource.RLIMIT_NPROC, limits.processes)
    return Descriptors(0, 1, 2, *kept)


def compiled(program: Program, code: bytes, fds: Descriptors) -> tuple[CodeType, CodeType]:
    """The code of the prelude and of the program. Exits with a note to the agent if they do not compile."""
    if code:
        return marshal.loads(code)  # type: ignore[no-any-return]
    parts = []
    for letter, source, name in ((b"P", program.prelude, "prelude.py"), (b"S", program.source, "main.py")):
        try:
            parts.append(compile(source, name, "exec", dont_inherit=True))
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
            _write_all(fds.compiled, letter + _message(error))
            os._exit(1)
    return parts[0], parts[1]


def run_stdin(program: Program, code: bytes, fds: Descriptors) -> NoReturn:
    namespace = _new_module("__main__", {})
    try:
        _define(program, code, fds, namespace)
    except BaseException as error:
        _finish(namespace, _report(error))
    _finish(namespace, 0)


def run_call(
    program: Program, code: bytes, fds: Descriptors, names: dict[str, Any], call: bytes, nonce: bytes
) -> NoReturn:
    """Runs the program, calls its entry point once, and writes one record: the nonce, then the value as tagged JSON."""
    assert program.entry_point is not None
    arguments = json.loads(call)
    args, kwargs = decode(arguments["args"]), decode(arguments["kwargs"])
    own_pid, write_json, write_record = os.getpid(), json.dumps, _write_all
    namespace = _new_module("main", {**names, program.entry_point: None})
    del namespace[program.entry_point]
    try:
        _define(program, code, fds, namespace)
        value = _entry_point(namespace, program.entry_point)(*args, **kwargs)
        if os.getpid() == own_pid:
            write_record(fds.record, nonce + write_json(encode_result(value)).encode())
    except BaseException as error:
        _finish(namespace, _report(error, in_call=True))
    _finish(namespace, 0)


def _define(program: Program, code: bytes, fds: Descriptors, namespace: dict[str, Any]) -> None:
    """Executes the prelude and the program in `namespace`."""
    prelude, body = compiled(program, code, fds)
    if program.prelude:
        try:
            exec(prelude, namespace)
        except BaseException as error:
            if not code:
                _write_all(fds.compiled, b"P" + _message(error))
                os._exit(1)
            raise
    if not code:
        _write_all(fds.compiled, b"C" + marshal.dumps((prelude, body)))
        os.close(fds.compiled)
    exec(body, namespace)


def _entry_point(namespace: dict[str, Any], name: str) -> Callable[..., Any]:
    """The global function of that name, else the method of `Solution()`; `Class().method` names another class."""
    owner, _, method = name.rpartition("().")
    if owner and owner in namespace:
        return getattr(namespace[owner](), method)  # type: ignore[no-any-return]
    if callable(found := namespace.get(method)):
        return found  # type: ignore[no-any-return]
    if "Solution" in namespace:
        return getattr(namespace["Solution"](), method)  # type: ignore[no-any-return]
    raise NameError(f"name '{name}' is not defined")


def _new_module(name: str, names: dict[str, Any]) -> dict[str, Any]:
    module = ModuleType(name)
    sys.modules["__main__"] = sys.modules[name] = module
    namespace = module.__dict__
    namespace.update(names, __builtins__=builtins, __file__=os.path.join(sys.path[0], "main.py"), __annotations__={})
    return namespace


def _report(error: BaseException, in_call: bool = False) -> int:
    """Prints what Python would print for an uncaught exception; returns the exit status. Leaving a call is a failure."""
    if isinstance(error, SystemExit):
        code = error.code
        if not (code is None or isinstance(code, int)):
            print(code, file=sys.stderr)
            code = 1
        return (code or 0) & 0xFF or (1 if in_call else 0)
    error = error.with_traceback(_trimmed(error.__traceback__))
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


def _trimmed(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this module, where it has others."""
    inner = traceback
    while inner and inner.tb_frame.f_code.co_filename.endswith("runner.py"):
        inner = inner.tb_next
    return inner


def _message(error: BaseException) -> bytes:
    import traceback

    return "".join(traceback.format_exception(type(error), error, _trimmed(error.__traceback__))).encode(
        "utf-8", "backslashreplace"
    )


def _finish(namespace: dict[str, Any], status: int) -> NoReturn:
    try:
        if threading := sys.modules.get("threading"):
            threading._shutdown()
        atexit._run_exitfuncs()
        namespace.clear()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
    except BaseException:
        status = status or 120
    os._exit(status)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
