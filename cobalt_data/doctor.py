"""What works on this machine, and what to do about what does not.

Packages are looked up without importing them; a sandbox backend is tried by running a program in it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata

from rich.table import Table
from rich.text import Text

from cobalt_data.engines import INSTALL, VLLM_DISTRIBUTIONS, choose_engine
from sandbox.doctor import Check as Held
from sandbox.doctor import available

ENGINES = {"transformers": ("torch", "transformers"), "openai": ("openai",), "vllm": VLLM_DISTRIBUTIONS}
LIBRARIES = ("polars", "duckdb", "pyarrow", "datasets", "huggingface_hub")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that can work or not; `detail` says which version, or what to do."""

    part: str
    name: str
    ok: bool
    detail: str


def examine() -> Iterator[Check]:
    """Yields the checks as they are made. Takes a second or two: each backend judges a program."""
    yield Check("python", sys.version.split()[0], sys.version_info >= (3, 11), "3.11 or newer is needed")
    for name in LIBRARIES:
        version = _version(name)
        yield Check("library", name, version is not None, version or "pip install cobalt-rl")
    for name in ENGINES:
        yield _engine(name)
    yield _gpu()
    for check in available():
        yield Check("backend", check.check, check.ok, check.detail)


def is_usable(checks: list[Check]) -> bool:
    """Some engine and some backend that isolates work."""
    working = {(check.part, check.name) for check in checks if check.ok}
    return any(part == "engine" for part, _ in working) and bool(
        working & {("backend", "docker"), ("backend", "bubblewrap")}
    )


def checks_table(checks: Iterable[Check]) -> Table:
    table = Table("part", "name", "works", "detail", box=None, header_style="bold", pad_edge=False)
    for check in checks:
        table.add_row(check.part, check.name, "yes" if check.ok else "no", Text(check.detail))
    return table


def held_table(checks: Iterable[Held]) -> Table:
    """What `cobalt sandbox doctor` tried."""
    table = Table("check", "held", "detail", box=None, header_style="bold", pad_edge=False)
    for check in checks:
        table.add_row(check.check, "yes" if check.ok else "NO", Text(check.detail))
    return table


def _engine(name: str) -> Check:
    """Whether its packages are installed: all of them, or one of the distributions of vLLM."""
    versions = {package: version for package in ENGINES[name] if (version := _version(package)) is not None}
    if len(versions) < (1 if name == "vllm" else len(ENGINES[name])):
        needed = (
            "vllm" if name == "vllm" else ", ".join(package for package in ENGINES[name] if package not in versions)
        )
        return Check("engine", name, False, f"needs {needed}: {INSTALL[name]}")
    default = "; the default" if name == choose_engine("auto") else ""
    return Check("engine", name, True, ", ".join(f"{package} {versions[package]}" for package in versions) + default)


def _gpu() -> Check:
    if shutil.which("nvidia-smi") is None:
        return Check("device", "gpu", False, "none found; the CPU is enough for small models")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    names = [line.split(" (UUID")[0] for line in listed.stdout.splitlines()]
    return Check("device", "gpu", listed.returncode == 0, ", ".join(names) or "nvidia-smi does not answer")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
