"""Near-duplicates among programs, from shingles to clusters, against the peers that people use: part of `benchmarks.data`.

The programs have about 460 characters, and a fifth of them are in clusters of 2 to 50. The peers do their work on the same rows,
in the interpreter that `--peers` names, where `pip install datasketch text-dedup` was given: a loop over datasketch's
MinHashLSH that queries and inserts, 128 permutations; and text-dedup's MinHash script on all cores, with the same permutations,
threshold and size of shingles, timed by its own clock without loading and saving. Shingling counts on every side. The peers
compare no candidate exactly; this project compares each.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.claims import CORES, Claim
from cobalt_data.duplicate_trajectories import TOKENS
from cobalt_data.near import NEAR_THRESHOLD, near_duplicates
from cobalt_data.sketches import open_sketches

SEED = 20261129
CHARACTERS = 440
CLUSTERED = 0.2
LARGEST_CLUSTER = 50
PERMUTATIONS = 128
NAMES = [
    "total",
    "count",
    "best",
    "value",
    "left",
    "right",
    "index",
    "rows",
    "cell",
    "step",
    "word",
    "seen",
    "limit",
    "cost",
]

# Reads a Parquet file of texts, prints how many were dropped and the seconds that it took.
DATASKETCH_LOOP = """
import re, sys, time
import pyarrow.parquet as pq
from datasketch import MinHash, MinHashLSH
path, size, threshold, permutations = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
texts = pq.read_table(path)["text"].to_pylist()
began, dropped = time.perf_counter(), 0
index = MinHashLSH(threshold=threshold, num_perm=permutations)
for place, text in enumerate(texts):
    tokens = re.findall(r"\\w+|[^\\w\\s]", text)
    sketch = MinHash(num_perm=permutations)
    sketch.update_batch({" ".join(tokens[i : i + size]).encode() for i in range(max(1, len(tokens) - size + 1))})
    if index.query(sketch):
        dropped += 1
    else:
        index.insert(place, sketch)
print(dropped, time.perf_counter() - began)
"""
TEXT_DEDUP_STEP = re.compile(r"(?:MinHashing|Clustering|Filtering)\s*:\s*([0-9.]+)s")
TEXT_DEDUP_AFTER = re.compile(r"After\s*:\s*([0-9]+)")


def programs(number: int) -> list[str]:
    """Mostly distinct programs; the rest are copies with one line more or less."""
    draw = random.Random(SEED)
    made = [_program(draw) for _ in range(round(number * (1 - CLUSTERED)))]
    while len(made) < number:
        original = _program(draw)
        made += [original, *(_copy(draw, original) for _ in range(draw.randint(1, LARGEST_CLUSTER - 1)))]
    draw.shuffle(made)
    return made[:number]


def _program(draw: random.Random) -> str:
    lines = ["import sys", *(f"{name} = int(input())" for name in draw.sample(NAMES, 2))]
    while sum(map(len, lines)) < CHARACTERS:
        lines += _statement(draw)
    return "\n".join([*lines, f"print({_expression(draw)})"])


def _statement(draw: random.Random) -> list[str]:
    target, value = draw.choice(NAMES), _expression(draw)
    kind = draw.random()
    if kind < 0.6:
        return [f"{target} = {value}"]
    head = f"if {target} < {value}:" if kind < 0.8 else f"for {target} in range({value}):"
    return [head, f"    {draw.choice(NAMES)} += {_expression(draw)}"]


def _expression(draw: random.Random, depth: int = 0) -> str:
    kind = draw.random()
    if depth > 1 or kind < 0.35:
        return draw.choice(NAMES)
    if kind < 0.5:
        return str(draw.randint(0, 99))
    left, right = _expression(draw, depth + 1), _expression(draw, depth + 1)
    return f"{left} {draw.choice('+-*%')} {right}" if kind < 0.85 else f"{draw.choice(('min', 'max'))}({left}, {right})"


def _copy(draw: random.Random, program: str) -> str:
    lines = program.split("\n")
    lines.insert(draw.choice([place for place in range(3, len(lines)) if lines[place][0] != " "]), "cost = 0")
    return "\n".join(lines)


def measure_near(quick: bool, peers: str) -> list[Claim]:
    """Rows per second of each side, one after the other on the same rows."""
    rows = 10_000 if quick else 100_000
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "programs.parquet"
        pq.write_table(pa.table({"text": programs(rows)}), path)
        for name, side in (("cobalt", near_dedup), ("datasketch", datasketch_loop), ("text-dedup", text_dedup)):
            if measured := side(path, peers):
                dropped, seconds = measured
                rates[name] = rows / seconds
                print(f"{name:12s} {rates[name]:8.0f} rows/s, {dropped} of {rows} rows dropped", flush=True)
    goals = {"datasketch": 8.0, "text-dedup": 1.0}
    return [
        Claim(f"near dedup against {peer}", rates["cobalt"] / rates[peer], goal, unit=" x")
        for peer, goal in goals.items()
        if peer in rates
    ]


def near_dedup(path: Path, _peers: str) -> tuple[int, float]:
    """The rows that would be dropped, and seconds."""
    texts = pq.read_table(path)["text"].combine_chunks()
    began = time.perf_counter()
    with open_sketches(TOKENS, NEAR_THRESHOLD) as sketches:
        sketches.add(texts)
        order = np.arange(len(texts))
        found, _, _ = near_duplicates(sketches, order, lambda _left, _right, alike: alike >= NEAR_THRESHOLD)
        return len(found), time.perf_counter() - began


def datasketch_loop(path: Path, peers: str) -> tuple[int, float] | None:
    arguments = [str(path), str(TOKENS), str(NEAR_THRESHOLD), str(PERMUTATIONS)]
    printed = _run([peers, "-c", DATASKETCH_LOOP, *arguments])
    if printed is None:
        return None
    dropped, seconds = printed.split()
    return int(dropped), float(seconds)


def text_dedup(path: Path, peers: str) -> tuple[int, float] | None:
    options = {
        "path": "parquet", "data_files": path, "split": "train", "column": "text", "ngram": TOKENS, "num_proc": CORES,
        "num_perm": PERMUTATIONS, "threshold": NEAR_THRESHOLD, "min_length": 0,
        "cache_dir": path.with_name("cache"), "output": path.with_name("output"),
    }  # fmt: skip
    arguments = [f"--{name}={value}" for name, value in options.items()]
    printed = _run([peers, "-m", "text_dedup.minhash", *arguments])
    if printed is None:
        return None
    dropped = pq.read_metadata(path).num_rows - int(TEXT_DEDUP_AFTER.findall(printed)[0])
    return dropped, sum(map(float, TEXT_DEDUP_STEP.findall(printed)))


def _run(command: list[str]) -> str | None:
    """What a peer prints; None where it is not installed."""
    environment = {**os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if "ModuleNotFoundError" in done.stderr:
        print(f"not measured: {done.stderr.strip().splitlines()[-1]}")
        return None
    done.check_returncode()
    return done.stdout + done.stderr
