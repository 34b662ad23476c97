"""Programs that attack the sandbox. Each prints `contained` if what it tried came to nothing, else what it got.

`PROGRAMS` maps a name to the verdicts that are right and the source. CANARY_* are replaced by what the test hides on the host:
a file, a port, an abstract socket.
"""

from hostile import disturbing, exhausting, lingering, reaching

PROGRAMS: dict[str, tuple[str, str]] = (
    reaching.PROGRAMS | exhausting.PROGRAMS | disturbing.PROGRAMS | lingering.PROGRAMS
)
