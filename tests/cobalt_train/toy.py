"""Settings with which the toy model learns within a second, a disk that is full, and a pool that fails now and then."""

import resource
from concurrent.futures import Future
from contextlib import contextmanager

from cobalt_data.errors import SandboxError
from cobalt_train.config import TrainConfig

CONFIG = TrainConfig(
    steps=4,
    save_every=1,
    prompts_per_step=3,
    group_size=8,
    optimizer_steps=1,
    max_prompt_tokens=32,
    max_tokens=3,
    kl_coefficient=0.0,
    learning_rate=1e-2,
    compute_dtype="float32",
    engine_dtype="float32",
)


@contextmanager
def no_file_longer_than(size):
    """A disk that refuses what is longer (bytes), as a full one does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class UnreliablePool:
    """Judges in a real pool, except that every third program (or so) meets a sandbox that fails."""

    def __init__(self, pool, every=3):
        self._pool, self._every, self._count = pool, every, 0

    def submit(self, *arguments):
        self._count += 1
        if self._count % self._every:
            return self._pool.submit(*arguments)
        failed = Future()
        failed.set_exception(SandboxError("the sandbox went away"))
        return failed
