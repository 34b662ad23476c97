"""What trajectories tell about the prompts made from them: their turns, and the template that worded what they were told."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.misleading import Said
from cobalt_data.perturbation import NO_TURN, public_tests
from cobalt_data.rows import Prompt, Turn
from cobalt_data.staging import clear_disk_errors
from cobalt_data.templates import Template

PROBLEMS_AT_HAND = 2048  # a hundred kilobytes each
NO_TRAJECTORY = "its trajectory is not in the dataset"
NO_TEMPLATE = "its trajectory does not name the template of its feedback"
_COLUMNS = ["trajectory_id", "problem_id", "sampling", "perturbation", "turns"]


@dataclass(frozen=True, slots=True)
class Story:
    turns: Sequence[Turn]
    template: Template


class Stories:
    """What the trajectories of a version tell, kept on the disk: all are added, then read. In memory is the place of each, and
    `said` of some problems: what the programs of a problem were truly told, in the order of trajectories.

    Of a trajectory that does not say which template worded it, such as an imported conversation, only that is known.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = 0
        self._places: dict[str, tuple[int, int, Template]] = {}
        self._unworded: set[str] = set()
        self._honest: dict[str, list[str]] = defaultdict(list)  # by problem, the trajectories that were told the truth
        self.said = lru_cache(PROBLEMS_AT_HAND)(self._said)

    def add(self, row: Mapping[str, Any], template: Template | None) -> None:
        if template is None:
            self._unworded.add(row["trajectory_id"])
            return
        turns = row["turns"].encode()
        self._places[row["trajectory_id"]] = self._size, self._file.write(turns), template
        self._size += len(turns)
        if row["perturbation"] is None:
            self._honest[row["problem_id"]].append(row["trajectory_id"])

    def of(self, prompt: Prompt) -> Story | str:
        """Or why there is none. Raises InputError where the prompt was not cut from its trajectory."""
        if prompt.trajectory_id in self._unworded:
            return NO_TEMPLATE
        if prompt.trajectory_id not in self._places:
            return NO_TRAJECTORY if prompt.turn else NO_TURN
        fields, template = self._look_up(prompt.trajectory_id)
        turns = tuple(map(Turn.from_json, fields))
        _check_fit(prompt, turns)
        return Story(turns, template)

    def _said(self, problem_id: str) -> list[Said]:
        stories = [(trajectory_id, *self._look_up(trajectory_id)) for trajectory_id in self._honest[problem_id]]
        return [
            Said(trajectory_id, number, turn["program"], turn["feedback"], template.hash)
            for trajectory_id, turns, template in stories
            for number, turn in enumerate(turns)
        ]

    def _look_up(self, trajectory_id: str) -> tuple[list[dict[str, Any]], Template]:
        start, size, template = self._places[trajectory_id]
        self._file.seek(start)
        return json.loads(self._file.read(size)), template


def _check_fit(prompt: Prompt, turns: Sequence[Turn]) -> None:
    if prompt.turn > len(turns):
        wrong = f"has {prompt.turn} turns, its trajectory only {len(turns)}"
    elif prompt.turn and len(turns[prompt.turn - 1].public) > len(public_tests(prompt)):
        wrong = "has fewer public tests than its trajectory was told about"
    else:
        return
    raise InputError(f"prompt {prompt.prompt_id} {wrong}: make the prompts again with `cobalt data cut`")


@contextmanager
def open_stories(version: Version, template: Template | None, all_of_them: bool = False) -> Iterator[Stories]:
    """The stories of the trajectories that prompts were made from, or of all. `template`: see `perturb`. Raises InputError."""
    with tempfile.TemporaryFile(prefix="cobalt-stories-") as file:
        stories = Stories(file)
        if version.has("trajectories"):
            with clear_disk_errors(Path(tempfile.gettempdir())):
                _read(version, template, all_of_them, stories)
        yield stories


def _read(version: Version, template: Template | None, all_of_them: bool, stories: Stories) -> None:
    pieces = version.pieces("prompts", columns=["trajectory_id"])
    wanted = {trajectory_id for piece in pieces for trajectory_id in piece["trajectory_id"].drop_null().to_pylist()}
    templates: dict[str, Template | None] = {}
    for row in version.rows("trajectories", columns=_COLUMNS):
        if all_of_them or row["trajectory_id"] in wanted:
            sampling = row["sampling"]
            if sampling not in templates:
                templates[sampling] = _template_of(json.loads(sampling), template)
            stories.add(row, templates[sampling])


def _template_of(sampling: Mapping[str, Any], given: Template | None) -> Template | None:
    """None where the trajectories do not name theirs. Raises InputError where it is not what it was."""
    name, wanted = sampling.get("template"), sampling.get("template_hash")
    if given is not None and given.hash == wanted:
        return given
    if not isinstance(name, str):
        return None
    template = Template.load(name)
    if template.hash != wanted:
        raise InputError(
            f"template {name} has changed since the trajectories were made (its hash is {template.hash}, theirs {wanted}): "
            "give the file that they were made with (--template), or collect again"
        )
    return template
