"""Executes untrusted programs and judges their output. Knows neither cobalt_data nor cobalt_train.

Public names only; see `docs/sandbox.md` for what each backend protects against and what it does not.
"""

from sandbox.errors import CobaltError, InputError, SandboxError, SandboxUnavailable
from sandbox.limits import Limits
from sandbox.pool import Pool
from sandbox.verdicts import Judge, ProgramResult, Test, TestResult, Verdict

__all__ = [
    "CobaltError",
    "InputError",
    "Judge",
    "Limits",
    "Pool",
    "ProgramResult",
    "SandboxError",
    "SandboxUnavailable",
    "Test",
    "TestResult",
    "Verdict",
]
