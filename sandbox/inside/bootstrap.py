"""How the modules of this package come into a sandbox: as source, in the first bytes of the channel.

`COMMAND` is what the sandbox's interpreter is given to run; `message` what the host then sends.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

COMMAND = """
import json, os, sys, types
def read(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
boot = json.loads(read(int.from_bytes(read(4), "big")))
for name, source in boot["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(compile(source, name.rpartition(".")[2] + ".py", "exec"), module.__dict__)
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, module)
sys.modules["sandbox.inside.agent"].main(boot["config"])
"""

# Hash order repeats, digits are not limited, text is UTF-8, numeric libraries do not start a thread per core of the host.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONINTMAXSTRDIGITS": "0",
    "PYTHONUTF8": "1",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "PATH": "/usr/bin:/bin",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
FLAGS = ("-s", "-S", "-P", "-B")

_ORDER = (
    "values",
    "inside.wire",
    "inside.harden",
    "inside.watch",
    "inside.scratch",
    "inside.runner",
    "inside.examiner",
)


@cache
def _modules() -> list[tuple[str, str]]:
    package = Path(__file__).parent.parent
    names = [*_ORDER, "inside.agent"]
    sources = [(f"sandbox.{name}", (package / f"{name.replace('.', '/')}.py").read_text()) for name in names]
    return [("sandbox", ""), ("sandbox.inside", ""), *sources]


def message(config: dict[str, Any]) -> bytes:
    """The first bytes to send to a new agent."""
    body = json.dumps({"modules": _modules(), "config": config}).encode()
    return len(body).to_bytes(4, "big") + body
