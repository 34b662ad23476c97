"""What does not fit into memory goes to the directory for temporary files; a full one is one line."""

import random
import tempfile

import pytest

from cobalt_data import duck
from cobalt_data.errors import CobaltError
from cobalt_data.sketches import open_sketches


@pytest.fixture
def small_scratch(small_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    return small_disk


def test_shingles_that_find_no_room_are_one_clear_line(small_scratch):
    noise = random.Random(0)
    texts = [" ".join(noise.randbytes(2).hex() for _ in range(1_000)) for _ in range(200)]
    with pytest.raises(CobaltError, match="no space left"), open_sketches(3, 0.7) as sketches:
        sketches.add(texts)
        sketches.bands()
    assert not list(small_scratch.iterdir())


def test_a_join_that_finds_no_room_is_one_clear_line(small_scratch, monkeypatch):
    monkeypatch.setattr(duck, "MEMORY_LIMIT", "20MB")
    with (
        pytest.raises(CobaltError, match=r"disk: no room .* name another place in TMPDIR"),
        duck.open_duckdb() as database,
    ):
        database.execute(
            "CREATE TABLE texts AS SELECT repeat(hash(i)::VARCHAR, 20) AS text FROM range(200_000) numbers(i)"
        )
    assert not list(small_scratch.iterdir())
