"""The names that LeetCode defines for every program: common modules and what they export, without any import.

Importing all of these modules would make every fork dearer, so the table of names is made once, in a process of its own, and a
program gets those that it mentions.
"""

from __future__ import annotations

import builtins
import marshal
import os
import sys
from types import CodeType

from sandbox.inside.wire import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STARRED = ("typing", "collections", "math", "heapq", "bisect", "itertools", "functools", "fractions")
_MODULES = ("string", "operator", "re", "random", "datetime", "copy", "statistics", "decimal", "sys", "json", "time")
_ALSO = {"deepcopy": "copy", "reduce": "functools", "sqrt": "math", "Decimal": "decimal", "ascii_lowercase": "string"}

# Standard modules that are imported ahead of the program's first line if the program imports them.
_IMPORT_NAME = compile("import a", "", "exec").co_code[6]  # the fourth instruction
_SAFE_TO_IMPORT = {*_STARRED, *_MODULES, "io", "array", "numbers", "enum", "dataclasses", "abc", "contextlib", "types"}


def table() -> dict[str, str]:
    """From every name to the module that exports it, or "" if the name is the module's own. No built-in is hidden."""
    read_fd, write_fd = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            write_all(write_fd, marshal.dumps(_exports()))
        finally:
            os._exit(0)
    os.close(write_fd)
    parts = []
    while part := os.read(read_fd, 1 << 16):
        parts.append(part)
    os.close(read_fd)
    os.waitpid(pid, 0)
    return marshal.loads(b"".join(parts))  # type: ignore[no-any-return]


def _exports() -> dict[str, str]:
    names = {}
    for module in _STARRED:
        content = vars(__import__(module))
        exported = content.get("__all__") or [key for key in content if not key.startswith("_")]
        names.update({name: module for name in exported if not hasattr(builtins, name)})
    names.update(_ALSO)
    names.update(dict.fromkeys((*_STARRED, *_MODULES), ""))
    return names


def code_objects(*codes: CodeType) -> list[CodeType]:
    """These code objects and all that they contain."""
    found = list(codes)
    for code in found:
        found += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


def mentioned(codes: list[CodeType]) -> set[str]:
    """All names that these code objects refer to."""
    return {name for code in codes for name in code.co_names}


def supplied(names: set[str], exports: dict[str, str]) -> dict[str, Any]:
    """The values of those `names` that LeetCode supplies."""
    values = {}
    for name in names & exports.keys():
        module = __import__(exports[name] or name)
        values[name] = getattr(module, name) if exports[name] else module
    return values


def import_ahead(codes: list[CodeType]) -> None:
    """Imports the standard modules that these code objects import, so that each test finds them imported."""
    for code in codes:
        instructions, at = code.co_code, -1
        while (at := instructions.find(_IMPORT_NAME, at + 1)) >= 0:
            if at % 2 == 0 and instructions[at + 1] < len(code.co_names):
                name = code.co_names[instructions[at + 1]].partition(".")[0]
                if name in _SAFE_TO_IMPORT and name not in sys.modules:
                    __import__(name)
