"""How the modules of this package come into a sandbox: as source, in the first bytes of the channel.

`COMMAND` is what the sandbox's interpreter is given to run, once for each of two stages; `messages` what the host then sends.
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
__import__(boot["main"])
sys.modules[boot["main"]].main(boot["config"])
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

_FIRST = ("rlimit", "harden")
_SECOND = ("wire", "rlimit", "watch", "scratch", "names", "runner", "template", "agent", "examiner", "harden")


def messages(config: dict[str, Any], same_python: bool) -> bytes:
    """The first bytes to send to a sandbox: `harden` for the first stage, the agent for the second.

    `same_python`: this very interpreter runs there. Then it is sent compiled, as compiling inside would scatter the agent's
    memory, and make forks dearer.
    """
    first = {"main": "sandbox.inside.harden", "modules": _modules(_FIRST, same_python), "config": config}
    second = {"main": "sandbox.inside.agent", "modules": _modules(_SECOND, same_python), "config": config}
    parts = (marshal.dumps(stage, MARSHAL_VERSION) for stage in (first, second))
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


@cache
def _modules(names: tuple[str, ...], compiled: bool) -> dict[str, Any]:
    """What may be imported inside, as source or as code; packages are empty."""
    package = Path(__file__).parent.parent
    files = {f"sandbox.inside.{name}": package / "inside" / f"{name}.py" for name in names}
    files["sandbox.values"] = package / "values.py"
    modules: dict[str, Any] = {"sandbox": "", "sandbox.inside": ""}
    for name, path in files.items():
        source = path.read_text()
        modules[name] = compile(source, path.name, "exec", optimize=2) if compiled else source
    return modules
