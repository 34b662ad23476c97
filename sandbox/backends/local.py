"""A link to an agent that is a child process of this one, over a socket pair."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sandbox.errors import SandboxError
from sandbox.inside import bootstrap


class LocalLink:
    """Starts `command`, whose descriptors 0 and 1 are the channel, and sends it the agent."""

    def __init__(
        self,
        command: Sequence[str],
        config: Mapping[str, Any],
        env: Mapping[str, str],
        user: int | None = None,
        pass_fds: Sequence[int] = (),
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._socket, theirs = socket.socketpair()
        self._errors = os.fdopen(os.memfd_create("stderr"), "w+b")  # no disk can be too full for it
        self._on_close = on_close
        try:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors,
                env=dict(env),
                cwd="/",
                pass_fds=pass_fds,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                start_new_session=True,  # a Ctrl-C at the terminal is for cobalt, not for its sandboxes
            )
        except OSError as error:
            self._socket.close()
            raise SandboxError(f"cannot start {command[0]}: {error}") from error
        finally:
            theirs.close()
        with suppress(OSError):  # one that ends at once is found out by the first receive
            self._socket.sendall(bootstrap.messages(dict(config), same_python=True))
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, data: bytes | memoryview) -> int:
        return self._socket.send(data)

    def receive(self) -> bytes:
        return self._socket.recv(1 << 18)

    def close(self) -> str:
        if self._socket.fileno() < 0:
            return ""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._on_close()
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 2000))
        said = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.close()
        return said
