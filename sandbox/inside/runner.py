"""One test's process: becomes the program, runs it as Python would run a script, and never returns.

The program finds real descriptors for stdin, stdout and stderr, no other, and the limits of the kernel that cannot be raised
again. A stdin test runs it as `__main__`. For a call test the program's module is named `main`, so that what stands under
`if __name__ == "__main__":` stays out of the way. At the end the interpreter is not torn down, which would cost more than
everything else: threads are joined, exit handlers run, globals dropped and streams flushed, in the order of CPython, and then
the process exits.
"""

from __future__ import annotations

import atexit
import builtins
import os
import sys
from types import ModuleType

from sandbox.inside.wire import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType
    from typing import Any, NoReturn

_OWN_FILES = ("runner.py", "template.py", "examiner.py")
_UNTIL_WARM = 9  # CPython adapts code at the ninth run
_REHEARSAL = """
import sys
def solve(numbers, extra=0):
    best, seen = extra, {}
    for index, number in enumerate(numbers):
        best = max(best, number + index)
        seen[number] = seen.get(number, 0) + 1
    return [best, *sorted(seen.items(), key=lambda pair: -pair[0])]
line = sys.stdin.readline() or "5 300 7000\\n"
numbers = list(map(int, line.split()))
numbers.append(len(sys.stdin.read().strip().split()))
try:
    input()
except EOFError:
    pass
for _ in range(2):
    print(*solve(numbers), sum(numbers), sep=" ", end="")
print(" ".join(str(number) for number in numbers))
sys.stdout.write(f"{min(numbers) / 7:.3f}\\n")
"""


def supply_site_builtins() -> None:
    """Defines `exit`, `quit` and `help`, which Python leaves to the `site` module; that module costs too much to start."""
    from _sitebuiltins import Quitter, _Helper

    for name in ("exit", "quit"):
        setattr(builtins, name, Quitter(name, "Ctrl-D (i.e. EOF)"))
    builtins.help = _Helper()


def new_module(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """The namespace of a new main module called `name`."""
    module = ModuleType(name)
    sys.modules["__main__"] = sys.modules[name] = module
    namespace = module.__dict__
    namespace.update(values, __builtins__=builtins, __file__=f"{sys.path[0]}/main.py", __annotations__={})
    return namespace


def import_for_calls() -> None:
    """Imports what call tests need, once for all programs."""
    import json  # noqa: F401

    import sandbox.values  # noqa: F401


def run_stdin(body: CodeType, namespace: dict[str, Any]) -> NoReturn:
    try:
        exec(body, namespace)
    except BaseException as error:
        _finish(namespace, _report(error))
    _finish(namespace, 0)


def run_call(
    body: CodeType, namespace: dict[str, Any], entry_point: str, call: bytes, record: int, nonce: bytes
) -> NoReturn:
    """Runs the program, calls its entry point once, and writes one record: the nonce, then the value as tagged JSON."""
    from json import dumps, loads

    from sandbox.values import decode, encode_result

    arguments = loads(call)
    args, kwargs = decode(arguments["args"]), decode(arguments["kwargs"])
    own_pid, write_record = os.getpid(), write_all
    try:
        exec(body, namespace)
        value = _entry_point(namespace, entry_point)(*args, **kwargs)
        if os.getpid() == own_pid:
            write_record(record, nonce + dumps(encode_result(value)).encode())
    except BaseException as error:
        _finish(namespace, _report(error) or 1)  # leaving a call is a failure, whatever the status
    _finish(namespace, 0)


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


def _report(error: BaseException) -> int:
    """Prints what Python would print for an uncaught exception; returns the exit status."""
    if isinstance(error, SystemExit):
        code = error.code
        if not (code is None or isinstance(code, int)):
            print(code, file=sys.stderr)
            code = 1
        return (code or 0) & 0xFF if abs(code or 0) < 1 << 63 else 0xFF  # as C sees them
    error = error.with_traceback(_trimmed(error.__traceback__))
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


def _trimmed(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from its first frame that is not of the sandbox."""
    while traceback and traceback.tb_frame.f_code.co_filename in _OWN_FILES:
        traceback = traceback.tb_next
    return traceback


def message(error: BaseException) -> bytes:
    """What Python would print for an exception."""
    import traceback

    lines = traceback.format_exception(type(error), error, _trimmed(error.__traceback__))
    return "".join(lines).encode("utf-8", "backslashreplace")


def _finish(namespace: dict[str, Any], status: int) -> NoReturn:
    os._exit(_wound_up(namespace, status))


def _wound_up(namespace: dict[str, Any], status: int) -> int:
    """Does what CPython does at the end of a program; returns the exit status."""
    try:
        if threading := sys.modules.get("threading"):
            threading._shutdown()
        atexit._run_exitfuncs()
        namespace.clear()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
    except BaseException:
        return status or 120
    return status


def rehearse() -> None:
    """Runs a small program as the tests' processes will, in the agent, where stdin and stdout are /dev/null.

    What the interpreter remembers of it (methods looked up, code that has become warm) the processes of all tests then share;
    else each would write it down anew, and the first write to a page is the dearest thing that most of them do.
    """
    sys.__spec__.__dict__["_initializing"] = (
        False  # as for any other module; else `import sys` raises and drops an error each time
    )
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.wait4(pid, 0)
    body = compile(_REHEARSAL, "main.py", "exec", dont_inherit=True)
    for _ in range(_UNTIL_WARM):
        namespace = new_module("__main__", {})
        exec(body, namespace)
        _wound_up(namespace, 0)


def read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)
