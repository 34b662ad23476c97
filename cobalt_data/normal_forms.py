"""The normal forms of many programs (`cobalt_data.normalise`), on all cores where there are enough of them.

Half a millisecond per program is nothing for a few and the better part of an hour for a few million. Each share goes to an
interpreter of its own that imports the standard library alone; a pool of `multiprocessing` would import the caller's main
module in each of its workers, which a script need not be written for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from cobalt_data import normalise
from cobalt_data.errors import CobaltError
from cobalt_data.normalise import Source, normalise_programs

WORTH_A_PROCESS = 1_000  # programs, half a second of work


def normal_forms(programs: Sequence[Source]) -> list[str]:
    """The form of each (program, names to keep); equal ones are worked on once."""
    distinct = list(dict.fromkeys(programs))
    shares = min(os.cpu_count() or 1, len(distinct) // WORTH_A_PROCESS)
    if shares < 2:
        forms = normalise_programs(distinct)
    else:
        with ThreadPoolExecutor(shares) as threads:
            parts = threads.map(_in_a_process, (distinct[share::shares] for share in range(shares)))
            forms = [""] * len(distinct)
            for share, part in enumerate(parts):
                forms[share::shares] = part
    by_program = dict(zip(distinct, forms, strict=True))
    return [by_program[program] for program in programs]


def _in_a_process(programs: Sequence[Source]) -> list[str]:
    command = [sys.executable, "-I", "-S", normalise.__file__]
    done = subprocess.run(command, input=json.dumps(programs), capture_output=True, text=True, encoding="ascii")
    if done.returncode:
        raise CobaltError(f"normalising programs failed: {done.stderr.strip()[-200:]}")
    forms: list[str] = json.loads(done.stdout)
    return forms
