"""The backend `docker`: one long-lived container per agent, over the Docker SDK.

No network, a read-only root with nothing but an interpreter (see `sandbox.image`), an unprivileged user, no capability, no new
privileges, the system call filter of `sandbox.seccomp`, limits on processes, memory and CPU by cgroup, and tmpfs limited in
bytes and files as the only writable places. The agent is process 1 of the container; its channel is the container's attached
stdin and stdout, so a remote daemon serves as well as a local one. When the host goes away, stdin ends, the agent with it, and
the daemon removes the container.
"""

from __future__ import annotations

import json
import os
import struct
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.image import NAME, PACKAGES, USER
from sandbox.inside import bootstrap
from sandbox.seccomp import docker_profile

_TMPFS = f"size=128m,nr_inodes=4096,mode=0700,uid={USER},gid={USER},noexec,nosuid,nodev"
_MEMORY = 4 << 30  # a wall behind the memory limit of each test
_PROCESSES = 64 + 8  # the kernel counts the agent's own too
_UNSTARTED_S = 300
_STDOUT, _STDERR = 1, 2
_SOCKET = "/var/run/docker.sock"


class Docker:
    name = "docker"

    def __init__(self) -> None:
        """Raises SandboxUnavailable if no daemon answers or the image has not been built."""
        self._api = connect().api
        try:
            self._image = self._api.inspect_image(NAME)["Id"]
        except Exception as error:
            raise SandboxUnavailable(
                f"the image {NAME} is missing: `cobalt sandbox build` makes it ({error})"
            ) from None
        self._remove_unstarted()
        host: dict[str, Any] = {
            "network_mode": "none",
            "read_only": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges", f"seccomp={json.dumps(docker_profile())}"],
            "tmpfs": {"/tmp": _TMPFS, "/dev/shm": _TMPFS},
            "mem_limit": _MEMORY,
            "memswap_limit": _MEMORY,
            "pids_limit": _PROCESSES,
            "cpu_period": 100_000,
            "cpu_quota": 200_000,
            "auto_remove": True,
            "log_config": {"Type": "none", "Config": {}},
        }
        self._host_config = self._api.create_host_config(**host)

    def launch(self) -> DockerLink:
        config = {
            "mounts": [],
            "scratch": ["/tmp", "/dev/shm"],
            "copy_to": "",
            "seccomp": b"",
            "remove": [],
            "packages": [PACKAGES],
            "count_processes": False,
        }
        return DockerLink(self._api, self._image, self._host_config, config)

    def close(self) -> None:
        self._api.close()

    def _remove_unstarted(self) -> None:
        """Removes containers of ours that were made long ago and never started: whoever made them was killed just then."""
        ours = {"label": "cobalt=sandbox", "status": "created"}
        with suppress(Exception):
            for container in self._api.containers(all=True, filters=ours):
                if time.time() - container["Created"] > _UNSTARTED_S:
                    self._api.remove_container(container["Id"])


class DockerLink:
    """The attached streams of one container. Docker sends stdout and stderr as chunks with a header of 8 bytes."""

    def __init__(self, api: Any, image: str, host_config: Any, config: dict[str, Any]) -> None:
        self._api = api
        self._stream: Any = None
        self._id = (
            f"cobalt-sandbox-{uuid.uuid4().hex}"  # ours, so that it can be removed even if the daemon's answer was lost
        )
        self._raw, self._errors = bytearray(), bytearray()
        try:
            api.create_container(
                image,
                [*bootstrap.FLAGS, "-c", bootstrap.COMMAND],
                user=f"{USER}:{USER}",
                hostname="sandbox",
                environment=bootstrap.ENVIRONMENT,
                name=self._id,
                working_dir="/",
                stdin_open=True,
                labels={"cobalt": "sandbox"},
                host_config=host_config,
            )
            streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._stream = api.attach_socket(self._id, streams)
            self._socket = getattr(self._stream, "_sock", self._stream)
            api.start(self._id)
            self._socket.sendall(bootstrap.messages(config, same_python=False))
            self._socket.setblocking(False)
        except Exception as error:
            self.close()
            raise SandboxError(f"Docker does not start a container: {error}") from error

    def fileno(self) -> int:
        return int(self._socket.fileno())

    def send(self, data: bytes | memoryview) -> int:
        return int(self._socket.send(data))

    def receive(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            return b""
        self._raw += data
        out = self._chunks()
        if not out:
            raise BlockingIOError
        return out

    def close(self) -> str:
        if self._id:
            with suppress(Exception):  # it may have ended, and so been removed, by itself
                self._api.remove_container(self._id, force=True)
            with suppress(Exception):
                self._stream.close()
            self._id = ""
        return self._errors.decode("utf-8", "replace").strip()

    def _chunks(self) -> bytes:
        """Takes the complete chunks out of what has arrived; returns those of stdout."""
        out = bytearray()
        while len(self._raw) >= 8:
            stream, size = struct.unpack_from("!BxxxI", self._raw)
            if len(self._raw) < 8 + size:
                break
            if stream == _STDOUT:
                out += self._raw[8 : 8 + size]
            elif stream == _STDERR:
                self._errors = (self._errors + self._raw[8 : 8 + size])[-2000:]
            del self._raw[: 8 + size]
        return bytes(out)


def connect() -> Any:
    """A client of the Docker daemon. Raises SandboxUnavailable if the SDK is not installed or no daemon answers."""
    if not os.environ.get("DOCKER_HOST") and not Path(_SOCKET).exists():
        raise SandboxUnavailable(f"no Docker daemon: {_SOCKET} does not exist and DOCKER_HOST is not set")
    try:
        import docker
    except ImportError:
        raise SandboxUnavailable("the Docker SDK is not installed: `pip install cobalt-rl[docker]`") from None
    try:
        client = docker.from_env()
        client.ping()
    except Exception as error:
        raise SandboxUnavailable(f"the Docker daemon does not answer: {error}") from None
    return client
