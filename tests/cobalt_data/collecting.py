"""Collects on the dataset given, with an engine whose answers depend on chat and seed alone, and says so line by line.

`python collecting.py DATASET`: a line per step, then the id of the new version. Run by tests that kill it.
"""

import random
import sys

from builders import make_problem
from scripted import ScriptedEngine, block

from cobalt_data.collection import CollectConfig, collect
from cobalt_data.commit import commit
from cobalt_data.dataset import open_version
from cobalt_data.engines.base import Sampling
from sandbox import Pool

PROGRAMS = ["print(2 * int(input()))", "print(0)", "print(", "print(input())", "x = int(input())\nprint(x + x)"]
CONFIG = CollectConfig(n=3, turns=3, sampling=Sampling(max_tokens=50), template="paper", problems_per_unit=2)


def problems():
    return [make_problem(f"p{index}") for index in range(10)]


def answer(chat, seed):
    said = "".join(message["content"] for message in chat)
    return block(random.Random(f"{seed} {said}").choice(PROGRAMS))


def main():
    version = open_version(sys.argv[1])
    with (
        Pool(workers=1) as pool,
        collect(
            version, ScriptedEngine(answer), pool, CONFIG, progress=lambda at: print(at.problems_done, flush=True)
        ) as collected,
    ):
        print("collected", flush=True)
        print(commit(collected.change, [version]).id, collected.resumed, flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt as interrupt:
        sys.exit(str(interrupt))
