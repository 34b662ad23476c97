"""The limits of one call that a judge does not set. Time and memory are the judge's."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.errors import InputError
from sandbox.inside import watch
from sandbox.verdicts import Judge

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Per test. `wall_s` None means ten times the CPU limit and two seconds; it may not be less than ten times.

    `processes` counts threads too; `output_bytes` holds for stdout and for a returned value, `file_bytes` for each file.
    """

    wall_s: float | None = None
    processes: int = 64
    output_bytes: int = 8 * _MIB
    file_bytes: int = 64 * _MIB

    def __post_init__(self) -> None:
        for name in ("processes", "output_bytes", "file_bytes"):
            if getattr(self, name) < 1:
                raise InputError(f"limits.{name} is {getattr(self, name)!r}: give a positive number")

    def complete(self, judge: Judge) -> watch.Limits:
        """All limits of a test. Raises InputError for a wall limit that could decide before the CPU limit."""
        wall_s = 10 * judge.time_limit_s + 2 if self.wall_s is None else self.wall_s
        if wall_s < 10 * judge.time_limit_s:
            raise InputError(
                f"limits.wall_s is {wall_s}: it is a backstop of at least 10 times {judge.time_limit_s} CPU seconds"
            )
        return watch.Limits(
            cpu_s=judge.time_limit_s,
            wall_s=wall_s,
            memory=judge.memory_mb * _MIB,
            processes=self.processes,
            output=self.output_bytes,
            file=self.file_bytes,
        )
