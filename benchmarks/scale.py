"""What the verbs of the data layer cost on datasets of growing size, each in a process of its own through the command line.

Time is the processor's, user and system, which a busy machine does not change much; memory is the greatest resident size.
Growth compares the cost of one more row among the larger sizes with that among the smaller ones: 1 is linear.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.claims import Claim

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (1_000, 4_000)
COMMAND = (sys.executable, "-c", "import cli; cli.main()", "data")
WORK = {  # every one on the dataset as it was made
    "dedup": ("dedup",),
    "near dedup": ("dedup", "--near"),
    "cut": ("cut", "--tokenizer", "estimate"),
    "split": ("split",),
}
LOOKS = ("log", "show", "diff")
LARGEST_GIB, LONGEST_LOOK_S, STEEPEST = 4, 1, 1.5


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process: seconds on the clock and of the processor, the greatest resident size, and what it printed."""

    wall_s: float
    cpu_s: float
    gib: float
    output: str


def measure_scale(sizes: Sequence[int]) -> list[Claim]:
    costs: dict[str, dict[int, Cost]] = {name: {} for name in (*WORK, *LOOKS)}
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="cobalt-scale-") as home:
            for name, cost in measure_size(Path(home), rows).items():
                costs[name][rows] = cost
    return _claims(costs, max(sizes))


def measure_size(home: Path, rows: int) -> dict[str, Cost]:
    """All verbs on a dataset of so many trajectories; every verb works on the version that was made."""
    made = _run((sys.executable, "-m", "benchmarks.made_trajectories", str(home / "made"), str(rows)))
    parquet = sum(path.stat().st_size for path in (home / "made").glob("versions/*/*/*.parquet"))
    _print(rows, "make", made, f"   {parquet / 1e9:.2f} GB of Parquet")
    version, costs = made.output.split()[-1], {}
    for name, (verb, *options) in WORK.items():
        costs[name] = _run((*COMMAND, verb, version, *options, "-o", str(home / "changed"), "--json"))
        _print(rows, name, costs[name])
        if name == "dedup":
            changed = json.loads(costs[name].output)["reference"]
            for look, words in {"log": (version,), "show": (version,), "diff": (version, changed)}.items():
                costs[look] = min((_run((*COMMAND, look, *words)) for _ in range(3)), key=lambda cost: cost.wall_s)
                _print(rows, look, costs[look])
        shutil.rmtree(home / "changed")
    return costs


def _run(command: Sequence[str]) -> Cost:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with status {process.returncode}")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, output)


def _print(rows: int, name: str, cost: Cost, more: str = "") -> None:
    rate = rows / cost.cpu_s
    print(
        f"{rows:9,} rows  {name:10}  {cost.wall_s:8.1f} s  {cost.cpu_s:8.1f} s CPU  {rate:9,.0f} rows/s CPU  {cost.gib:5.2f} GiB{more}",
        flush=True,
    )


def _claims(costs: Mapping[str, Mapping[int, Cost]], largest: int) -> list[Claim]:
    claims = [
        Claim(f"memory of {name}, {largest:,} rows", costs[name][largest].gib, LARGEST_GIB, True, " GiB")
        for name in WORK
    ]
    claims += [
        Claim(f"{name}, {largest:,} rows", costs[name][largest].wall_s, LONGEST_LOOK_S, True, " s") for name in LOOKS
    ]
    return claims + [
        Claim(f"growth of {name}", _growth(costs[name]), STEEPEST, True, " x") for name in WORK if len(costs[name]) > 2
    ]


def _growth(costs: Mapping[int, Cost]) -> float:
    """The cost of a row between the two largest sizes over that between the two smallest."""
    sizes = sorted(costs)

    def slope(small: int, large: int) -> float:
        return (costs[large].cpu_s - costs[small].cpu_s) / (large - small)

    return slope(*sizes[-2:]) / slope(*sizes[:2])
