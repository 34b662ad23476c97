"""What runs inside the sandbox: the agent, the processes that it forks, and what both need. Standard library only.

    host                           sandbox (one per worker)
    worker.py  <== frames ==>  agent.py, process 1: reads tests, forks one process per test, watches it, reports
                                   |-- runner.py: this test's program, then gone with all that it started

The agent is process 1 of its own pid namespace, so the kernel drops every signal that a program sends it; it is not
dumpable, so no program of the same user can trace it or read its memory or descriptors; a program gets none of its
channels. It never runs a line of a program nor parses what a program wrote: it hands bytes to the host. Nothing survives a
test: whatever still runs is killed, whatever was written is wiped. The host sends these modules' source over the channel
(`bootstrap`), so no file of the project has to exist in the sandbox and versions cannot differ.
"""
