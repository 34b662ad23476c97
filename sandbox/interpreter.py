"""The files of the running Python: the interpreter, its standard library and the shared libraries that these need.

A virtual environment is seen through to the Python that it was made from. Installed packages are no part of it, but for the
few of `PACKAGES` that are installed here: judges such as LeetCode and AtCoder offer them to every program.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.elf import needed_files

PACKAGES = ("numpy", "sortedcontainers")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`executable` is its real path; `directories` are wanted whole, but for what `hidden` lies in them; `files` singly.

    `packages` are directories to be found side by side on the path of modules.
    """

    executable: Path
    directories: tuple[Path, ...]
    hidden: tuple[Path, ...]
    files: tuple[Path, ...]
    packages: tuple[Path, ...]


@cache
def running() -> Interpreter:
    """This process's own interpreter."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    executable = Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
    directories = tuple(dict.fromkeys(Path(sysconfig.get_path(key, vars=base)) for key in ("stdlib", "platstdlib")))
    extensions = [path for directory in directories for path in (directory / "lib-dynload").glob("*.so")]
    packages = _packages()
    extensions += [path for package in packages for path in package.rglob("*.so*")]
    libraries = needed_files([executable, *(path for path in extensions if not path.name.startswith("_tkinter"))])
    libraries = [path for path in libraries if not any(path.is_relative_to(package) for package in packages)]
    hidden = [directory / name for directory in directories for name in ("site-packages", "dist-packages", "test")]
    return Interpreter(
        executable,
        directories,
        tuple(path for path in hidden if path.is_dir()),
        (executable, *libraries),
        packages,
    )


def _packages() -> tuple[Path, ...]:
    """The directories of the packages to offer, each with the one of its libraries where it has one."""
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    found = [Path(spec.origin).parent for spec in specs if spec and spec.origin]
    beside = [path.with_name(f"{path.name}.libs") for path in found]
    return (*found, *(path for path in beside if path.is_dir()))
