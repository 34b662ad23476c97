"""What runs inside the sandbox: the agent, the processes that it starts, and what both need. Standard library only.

    host                           sandbox (one per worker)
    worker.py  <== frames ==>  agent.py, process 1: reads tests, watches them, reports
                                 `-- template.py, one per program: compiled, imported, forks each test in advance
                                       `-- runner.py, one per test: becomes the program, then gone with all that it started

The agent is process 1 of its own pid namespace, so the kernel drops every signal that a program sends it; it is not dumpable,
nor is a template, so no program of the same user can trace them or read their memory or descriptors; a program gets none of
their channels. Agent and template never run a line of a program nor parse what a program wrote: bytes go to the host as they
are. A program can kill or stop its template: the agent then goes on with the process that is left, or wakes the template.
Nothing survives a test: whatever still runs is killed, whatever was written is wiped. The host sends these modules'
source over the channel (`bootstrap`), so no file of the project has to exist in the sandbox and versions cannot differ.

Speed decides the style in here. A fork costs in proportion to what the parent has mapped, and every page that parent or child
writes to afterwards costs a fault, so agent and template import little (no `typing`, `dataclasses`, `json`, `signal`)
and do little between two forks; descriptors and files belong to a program, not to a test.
"""
