"""What can go wrong with cobalt itself, as opposed to the programs it runs.

A program that fails is a value (a `Verdict`), never an exception. An exception says that the machine, a service or the
user's input is at fault; each carries one line that says what is wrong, where, and what to do. `CobaltError` is the root
for every package of the project and lives here because the sandbox stands at the bottom of the house.
"""


class CobaltError(Exception):
    """Root of all errors that cobalt raises on purpose. The command line prints it as one line.

    `exit_status` is what the process returns: 1 failed, 2 wrong usage or bad input, 3 a needed service is unavailable.
    """

    exit_status = 1


class InputError(CobaltError):
    """The user's input is wrong: the message names the file and line, or the row and field, and the remedy."""

    exit_status = 2


class SandboxUnavailable(CobaltError):
    """No backend, or not the one asked for, can run on this machine; the message says what to install."""

    exit_status = 3


class SandboxError(CobaltError):
    """The sandbox itself failed while judging a program, after its retries. It is never a verdict and never a reward."""
