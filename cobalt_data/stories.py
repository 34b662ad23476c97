"""What trajectories tell about the prompts made from them: their turns, and the template that worded what they were told."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.misleading import Said
from cobalt_data.rows import Turn
from cobalt_data.templates import Template

_COLUMNS = ["trajectory_id", "problem_id", "sampling", "perturbation", "turns"]


@dataclass(frozen=True, slots=True)
class Story:
    turns: Sequence[Turn]
    template: Template


@dataclass(frozen=True, slots=True)
class Stories:
    """`of` a trajectory, by its id; `said`, by problem: what its programs were truly told, in the order of trajectories."""

    of: dict[str, Story] = field(default_factory=dict)
    said: dict[str, list[Said]] = field(default_factory=lambda: defaultdict(list))


def read_stories(version: Version, template: Template | None, all_of_them: bool = False) -> Stories:
    """The stories of the trajectories that prompts were made from, or of all. `template`: see `perturb`. Raises InputError."""
    stories = Stories()
    if not version.has("trajectories"):
        return stories
    wanted = set(version.table("prompts")["trajectory_id"].drop_null().to_pylist())
    templates: dict[str, Template] = {}
    for row in version.rows("trajectories", columns=_COLUMNS):
        if all_of_them or row["trajectory_id"] in wanted:
            sampling = row["sampling"]
            if sampling not in templates:
                templates[sampling] = _template_of(json.loads(sampling), template)
            turns = tuple(Turn.from_json(fields) for fields in json.loads(row["turns"]))
            stories.of[row["trajectory_id"]] = Story(turns, templates[sampling])
            if row["perturbation"] is None:
                stories.said[row["problem_id"]] += [
                    Said(row["trajectory_id"], number, turn.program, turn.feedback, templates[sampling].hash)
                    for number, turn in enumerate(turns)
                ]
    return stories


def _template_of(sampling: Mapping[str, Any], given: Template | None) -> Template:
    name, wanted = sampling.get("template"), sampling.get("template_hash")
    if given is not None and given.hash == wanted:
        return given
    if not isinstance(name, str):
        raise InputError("the trajectories do not say which template they were made with: they cannot be perturbed")
    template = Template.load(name)
    if template.hash != wanted:
        raise InputError(
            f"template {name} has changed since the trajectories were made (its hash is {template.hash}, theirs {wanted}): "
            "give the file that they were made with (--template), or collect again"
        )
    return template
