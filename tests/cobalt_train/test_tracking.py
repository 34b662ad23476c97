"""Trackers: what TensorBoard really reads back, also after a resumed run, and what is refused."""

import re
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cobalt_data.errors import InputError
from cobalt_train.tracking import flat, tracking


def read(output):
    events = EventAccumulator(str(output / "tensorboard")).Reload()
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


def metrics(step, reward):
    return {"step": step, "reward": reward, "kl": None, "algo": "cobalt", "seconds": {"learn": 0.5}}


def test_tensorboard_shows_the_numbers_of_each_step(tmp_path):
    with tracking(("tensorboard",), tmp_path, {}, first_step=1) as track:
        for step in (1, 2, 3):
            track(metrics(step, step / 4))
    assert read(tmp_path) == {
        "reward": [(1, 0.25), (2, 0.5), (3, 0.75)],
        "seconds/learn": [(1, 0.5), (2, 0.5), (3, 0.5)],
    }


def test_steps_that_a_resumed_run_does_again_are_shown_once(tmp_path):
    for first, last in ((1, 3), (2, 4)):
        with tracking(("tensorboard",), tmp_path, {}, first_step=first) as track:
            for step in range(first, last + 1):
                track(metrics(step, first))
    assert read(tmp_path)["reward"] == [(1, 1), (2, 2), (3, 2), (4, 2)]


def test_without_trackers_nothing_is_written(tmp_path):
    with tracking((), tmp_path, {}, first_step=1) as track:
        track(metrics(1, 0.5))
    assert not list(tmp_path.iterdir())


def test_only_numbers_are_tracked():
    record = {"step": 3, "a": 1, "b": None, "c": "x", "d": True, "e": {"f": 0.5, "g": {"h": 2}}}
    assert dict(flat(record)) == {"a": 1, "e/f": 0.5, "e/g/h": 2}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mlflow", "tracker 'mlflow' is unknown: use one of tensorboard, wandb, trackio"),
        ("trackio", "trackio is not installed: pip install trackio"),
    ],
)
def test_a_tracker_that_there_is_not_is_one_line(name, said, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(InputError, match=re.escape(said)), tracking((name,), tmp_path, {}, first_step=1):
        pass
    assert not list(tmp_path.iterdir())


SERVICE = """
class Run:
    def log(self, numbers, step):
        if step == 2:
            raise ConnectionError("the service\\nis away")
    def finish(self):
        raise OSError("finished in vain")
def init(**given):
    if FAILS:
        raise RuntimeError("api_key not configured")
    return Run()
"""


@pytest.fixture
def service(tmp_path, monkeypatch):
    """A module by the name of wandb, as the real one behaves without its server."""
    (tmp_path / "modules").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    yield lambda fails: (tmp_path / "modules" / "wandb.py").write_text(SERVICE.replace("FAILS", str(fails)))
    sys.modules.pop("wandb", None)


def test_a_tracker_that_does_not_open_is_one_line(service, tmp_path):
    service(fails=True)
    with (
        pytest.raises(
            InputError, match=r"^wandb cannot be opened \(api_key not configured\): mend that or leave it out"
        ),
        tracking(("wandb",), tmp_path, {}, first_step=1),
    ):
        pass


def test_no_run_ends_for_the_sake_of_a_tracker(service, tmp_path):
    service(fails=False)
    said = []
    with tracking(("wandb", "tensorboard"), tmp_path, {}, 1, said.append) as track:
        for step in (1, 2, 3):
            track(metrics(step, step / 4))
    assert said == ["wandb takes no more metrics (the service is away); the run goes on, and metrics.jsonl has them"]
    assert len(read(tmp_path)["reward"]) == 3
