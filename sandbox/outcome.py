"""The record of what became of one test, as the host reads it from an agent's frame."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.inside.wire import FIELDS


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test, before anything is compared.

    `ended` is a reason of `wire`; `status` the exit status, or minus the signal; `cpu_s` and `wall_s` seconds; `peak` bytes of
    resident memory; `record` what the runner reported (the value of a call, in JSON), empty if it did not come to that.
    """

    ended: int
    status: int
    cpu_s: float
    wall_s: float
    peak: int
    stdout: bytes
    stderr: bytes
    record: bytes

    @classmethod
    def unpack(cls, payload: bytes) -> Outcome:
        """Raises ValueError if `payload` is no outcome."""
        head, _, body = payload.partition(b"\n")
        numbers = head.split()
        if len(numbers) != len(FIELDS):
            raise ValueError("an outcome with a malformed head")
        lengths = [int(number) for number in numbers[5:]]
        if min(lengths) < 0 or sum(lengths) != len(body):
            raise ValueError("an outcome whose parts do not add up")
        first, second = lengths[0], lengths[0] + lengths[1]
        return cls(
            ended=int(numbers[0]),
            status=int(numbers[1]),
            cpu_s=float(numbers[2]),
            wall_s=float(numbers[3]),
            peak=int(numbers[4]),
            stdout=body[:first],
            stderr=body[first:second],
            record=body[second:],
        )
