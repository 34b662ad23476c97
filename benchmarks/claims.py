"""What a benchmark claims: a line for each claim beside what was promised, the machine before them, the exit status after."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass

CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the report."""

    name: str
    value: float
    goal: float
    at_most: bool = False
    unit: str = ""

    @property
    def holds(self) -> bool:
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    def __str__(self) -> str:
        bound = "at most" if self.at_most else "at least"
        verdict = "ok" if self.holds else "SHORT"
        return f"{self.name}: {self.value:.3g}{self.unit} (goal {bound} {self.goal:g}{self.unit}) {verdict}"


def print_machine() -> None:
    print(
        f"{CORES} cores, Linux {platform.release()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def report(claims: Iterable[Claim]) -> int:
    """Prints the claims as they come; the exit status, 1 if one is short."""
    short = False
    for claim in claims:
        print(claim, flush=True)
        short |= not claim.holds
    return int(short)
