"""Where agents run: each backend starts them in its own way and confines them as it can; the rest of the package is the same.

A backend has a `name` and `launch()`, which starts one agent and returns the link to it. `choose` picks one: `auto` is docker,
then bubblewrap, never `process`.
"""

from __future__ import annotations

from typing import Protocol

from sandbox.errors import InputError, SandboxUnavailable


class Link(Protocol):
    """The channel to one agent and the handle of its sandbox. Sending and receiving do not block once `fileno` is ready."""

    def fileno(self) -> int: ...

    def send(self, data: bytes | memoryview) -> int:
        """Sends some of `data`; returns how many bytes. Raises OSError when the agent is gone."""
        ...

    def receive(self) -> bytes:
        """What has arrived, b"" when the agent is gone. Raises BlockingIOError when there is nothing for the caller yet."""
        ...

    def close(self) -> str:
        """Ends the sandbox and everything in it; returns what it said on stderr. May be called again."""
        ...


class Backend(Protocol):
    """One way to run agents."""

    @property
    def name(self) -> str: ...

    def launch(self) -> Link:
        """Starts one agent. Raises SandboxUnavailable if this machine cannot, SandboxError if it failed this time."""
        ...

    def close(self) -> None:
        """Frees what the backend holds beyond its links."""
        ...


def choose(name: str) -> Backend:
    """The backend called `name`. Raises SandboxUnavailable if it cannot work here, InputError if there is none such."""
    from sandbox.backends.bubblewrap import Bubblewrap
    from sandbox.backends.docker import Docker
    from sandbox.backends.process import Process

    if name == "process":
        return Process()
    if name == "bubblewrap":
        return Bubblewrap()
    if name == "docker":
        return Docker()
    if name != "auto":
        raise InputError(f"there is no backend {name!r}: use auto, docker, bubblewrap or process")
    reasons = []
    for backend in (Docker, Bubblewrap):
        try:
            return backend()
        except SandboxUnavailable as error:
            reasons.append(f"{backend.name}: {error}")
    reasons.append(
        "without isolation, for programs you trust, `--backend process` works everywhere (`make demo BACKEND=process`)"
    )
    raise SandboxUnavailable("no sandbox works here; " + "; ".join(reasons))
