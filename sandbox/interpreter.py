"""The files of the running Python: the interpreter, its standard library and the shared libraries that these need.

A virtual environment is seen through to the Python that it was made from. Installed packages are no part of it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.elf import needed_files


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`executable` is its real path; `directories` are wanted whole, but for what `hidden` lies in them; `files` singly."""

    executable: Path
    directories: tuple[Path, ...]
    hidden: tuple[Path, ...]
    files: tuple[Path, ...]


@cache
def running() -> Interpreter:
    """This process's own interpreter."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    executable = Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
    directories = tuple(dict.fromkeys(Path(sysconfig.get_path(key, vars=base)) for key in ("stdlib", "platstdlib")))
    extensions = [path for directory in directories for path in (directory / "lib-dynload").glob("*.so")]
    graphical = [path for path in extensions if path.name.startswith("_tkinter")]
    libraries = needed_files([executable, *(path for path in extensions if path not in graphical)])
    hidden = [directory / name for directory in directories for name in ("site-packages", "dist-packages", "test")]
    return Interpreter(
        executable,
        directories,
        tuple(path for path in hidden if path.is_dir()),
        (executable, *libraries),
    )
