"""One pool per backend for the whole session: a test of the sandbox costs no start of its own. `bubblewrap` is shared with others."""

import os
from collections.abc import Iterator

import pytest

from sandbox import Pool, SandboxUnavailable


@pytest.fixture(scope="session")
def docker() -> Iterator[Pool]:
    try:
        pool = Pool("docker")
    except SandboxUnavailable as error:
        if os.environ.get("COBALT_REQUIRE_DOCKER"):
            raise
        pytest.skip(str(error))
    with pool:
        yield pool


@pytest.fixture(scope="session", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def isolated(request: pytest.FixtureRequest) -> Pool:
    """A pool of each backend that isolates."""
    pool: Pool = request.getfixturevalue(request.param)
    return pool
