"""`augment --unperturb`: a version as it was before `augment --perturb`.

A perturbed prompt keeps in its `perturbation` what it was before: id, last feedback and tokens. So its original is restored bit
for bit where `--replace` put the perturbed prompt in its place; where the original is still there, the perturbed one just
goes. Trajectories that were rolled out under perturbed tests (`--recollect`) go too, and what was cut from them with them.

Left out: perturbed rows that were imported as such, for which there is no original. An original that something else removed
meanwhile (`dedup`, say) comes back as well.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from cobalt_data.commit import Change
from cobalt_data.dataset import Version, table_from_rows
from cobalt_data.errors import InputError
from cobalt_data.field_checks import parsed_perturbation
from cobalt_data.manifest import Counts
from cobalt_data.rows import Prompt, Row
from cobalt_data.schemas import ID_COLUMNS

OPERATION = "unperturb"
MADE_UNDER_LIES = "rolled out under perturbed tests"
PERTURBED = "perturbed"
RESTORED = "restored"  # the name of the counts of the originals that were not in the table


def unperturb(version: Version) -> Change:
    """Puts every original back in its place. Raises InputError where nothing is perturbed, or an original does not add up."""
    restored, lies = _originals(version)
    rolled_out = _rolled_out_again(version)
    if not lies and not rolled_out:
        raise InputError(f"{version.reference} has nothing that `cobalt data augment --perturb` made: it is as it was")
    counts = {}
    if lies:
        rows = version.manifest.rows("prompts")
        gone = Counter({PERTURBED: len(lies) - len(restored)})  # the others leave their place to the original
        counts["prompts"] = Counts(rows, rows - gone.total(), dict(+gone))
        if restored:
            counts[RESTORED] = Counts(rows, len(restored))
    if rolled_out:
        rows = version.manifest.rows("trajectories")
        counts["trajectories"] = Counts(rows, rows - len(rolled_out), {MADE_UNDER_LIES: len(rolled_out)})
    return Change(
        operation=OPERATION,
        arguments={},
        seed=None,
        tables={},
        counts=counts,
        added={"prompts": table_from_rows("prompts", restored)} if restored else {},
        removed={name: ids for name, ids in (("prompts", lies), ("trajectories", rolled_out)) if ids},
    )


def _originals(version: Version) -> tuple[list[dict[str, Any]], set[str]]:
    """The originals that are not in the table, and the ids of the perturbed prompts that know one."""
    present: set[str] = set()
    lies: dict[str, Row] = {}
    if version.has("prompts"):
        for row in version.rows("prompts"):
            present.add(row["prompt_id"])
            if "original" in (parsed_perturbation(row["perturbation"], row["prompt_id"]) or {}):
                lies[row["prompt_id"]] = row
    missing = {
        original.prompt_id: original for original in map(_original, lies.values()) if original.prompt_id not in present
    }
    return [missing[prompt_id].to_row() for prompt_id in sorted(missing)], set(lies)


def _original(row: Row) -> Prompt:
    lie, before = Prompt.from_row(row), json.loads(row["perturbation"])["original"]
    prompt = (*lie.prompt[:-1], {"role": "user", "content": before["feedback"]})
    original = replace(lie, prompt=prompt, perturbation=None, prompt_tokens=before["prompt_tokens"])
    if original.prompt_id != before["prompt_id"]:
        raise InputError(
            f"prompt {row['prompt_id']}: field perturbation: its original comes out as {original.prompt_id}, "
            f"not {before['prompt_id']}; was the row changed? go back to a version before"
        )
    return original


def _rolled_out_again(version: Version) -> set[str]:
    if not version.has("trajectories"):
        return set()
    key = ID_COLUMNS["trajectories"]
    return {
        row[key]
        for row in version.rows("trajectories", columns=[key, "perturbation"])
        if "seed" in (parsed_perturbation(row["perturbation"], row[key]) or {})
    }
