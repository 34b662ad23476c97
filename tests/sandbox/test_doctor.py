"""The doctor finds isolation where there is some, and says so where there is none."""

import pytest

from sandbox import doctor
from sandbox.errors import SandboxUnavailable


@pytest.mark.parametrize("backend", ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def test_every_check_holds_on_a_backend_that_isolates(backend: str) -> None:
    try:
        checks = doctor.checks(backend)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert [check for check in checks if not check.ok] == []
    assert checks[0].detail == backend
    assert len(checks) > 10


def test_a_plain_process_does_not_pass() -> None:
    failed = {check.check for check in doctor.checks("process") if not check.ok}
    assert {"network", "files", "processes", "system calls"} <= failed


def test_every_backend_is_listed_with_what_to_do() -> None:
    listed = {check.check: check for check in doctor.available()}
    assert set(listed) == {"docker", "bubblewrap", "process"}
    assert all(check.detail for check in listed.values())
