"""How the modules of this package come into a sandbox: as source, in the first bytes of the channel.

`COMMAND` is what the sandbox's interpreter is given to run; `message` what the host then sends.
"""

from __future__ import annotations

import marshal
from functools import cache
from pathlib import Path
from typing import Any

COMMAND = """
import marshal, os, sys
from _frozen_importlib import ModuleSpec
def read(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
boot = marshal.loads(read(int.from_bytes(read(4), "big")))
class Sent:
    def find_spec(self, name, path, target=None):
        if name in boot["modules"]:
            return ModuleSpec(name, self, is_package=not boot["modules"][name])
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        code = boot["modules"].pop(module.__name__)
        if isinstance(code, str):
            code = compile(code, module.__name__.rpartition(".")[2] + ".py", "exec")
        exec(code, module.__dict__)
sys.meta_path.append(Sent())
import sandbox.inside.agent
sandbox.inside.agent.main(boot["config"])
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
    "LD_BIND_NOW": "1",  # once in the agent, not in every process that is forked from it
}
MARSHAL_VERSION = 4  # read by every Python from 3.4 on
FLAGS = ("-s", "-S", "-P", "-B")

_SENT = ("wire", "harden", "watch", "scratch", "names", "runner", "template", "agent", "examiner")


@cache
def _modules() -> dict[str, str]:
    """The source of every module that may be imported inside; packages are empty."""
    here = Path(__file__).parent
    modules = {f"sandbox.inside.{name}": (here / f"{name}.py").read_text() for name in _SENT}
    return {"sandbox": "", "sandbox.inside": "", "sandbox.values": (here.parent / "values.py").read_text(), **modules}


@cache
def _compiled() -> dict[str, Any]:
    """The same, compiled for this interpreter: compiling inside would scatter the agent's memory, and make forks dearer."""
    return {
        name: source and compile(source, name.rpartition(".")[2] + ".py", "exec") for name, source in _modules().items()
    }


def message(config: dict[str, Any], same_python: bool) -> bytes:
    """The first bytes to send to a new agent. `same_python`: it runs on this very interpreter."""
    modules = _compiled() if same_python else _modules()
    body = marshal.dumps({"modules": modules, "config": config}, MARSHAL_VERSION)
    return len(body).to_bytes(4, "big") + body
