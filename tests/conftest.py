"""What tests of several packages share."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from sandbox import Pool, SandboxUnavailable

settings.register_profile("any machine", deadline=None)  # a busy one is slow, not wrong
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def bubblewrap() -> Iterator[Pool]:
    """One pool for the whole session."""
    try:
        pool = Pool("bubblewrap")
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    with pool:
        yield pool


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=True)
    yield disk
    # Lazily: after a test that failed, pytest keeps what it had open.
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A Hub of one's own over HTTP, which `huggingface_hub` in this process takes for the real one; its token can write."""
    import huggingface_hub.constants as constants
    from hub_server import WRITER, HubServer

    with HubServer() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        )
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", WRITER)
        monkeypatch.setenv("COBALT_CACHE", str(tmp_path / "cache"))
        yield server
