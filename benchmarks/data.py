"""How fast the data layer is, against peers measured in the same run. `python -m benchmarks.data [--quick]` ends with one line
per claim and exits 1 if one is short; `--peers PYTHON` names an interpreter that has the peers (`benchmarks.near_duplicates`).
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.claims import print_machine, report
from benchmarks.near_duplicates import measure_near
from benchmarks.scale import QUICK_SIZES, SIZES, measure_scale


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="has datasketch and text-dedup")
    parser.add_argument("--rows", type=int, metavar="N", help="no dataset of more trajectories than this")
    arguments = parser.parse_args()
    print_machine()
    sizes = [rows for rows in (QUICK_SIZES if arguments.quick else SIZES) if rows <= (arguments.rows or max(SIZES))]
    return report([*measure_near(arguments.quick, arguments.peers), *measure_scale(sizes)])


if __name__ == "__main__":
    sys.exit(main())
