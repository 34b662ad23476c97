"""Back to what was: every original, bit for bit."""

import json

import pytest
from builders import count_words, executed_and_cut, make_dataset, make_problem

from cobalt_data.commit import Change, commit
from cobalt_data.dataset import table_from_rows
from cobalt_data.errors import InputError
from cobalt_data.perturb import KINDS, PerturbConfig, perturb
from cobalt_data.replay import replay
from cobalt_data.rows import Prompt
from cobalt_data.unperturb import unperturb
from cobalt_data.verify import verify
from sandbox import Pool

RIGHT, WRONG = "print(2 * int(input()))", "print(3 * int(input()))"


@pytest.fixture(scope="module")
def pool():
    with Pool(backend="process", workers=2) as started:
        yield started


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, pool):
    problems = [make_problem(f"p{number}", split=side) for number, side in enumerate(("train", "train", "test"))]
    programs = [[WRONG, RIGHT], [RIGHT, WRONG], [WRONG, "print("]]
    return executed_and_cut(tmp_path_factory.mktemp("unperturb") / "d", problems, programs, pool, skip_solved=False)


def perturbed(version, pool, path, **settings):
    return commit(perturb(version, PerturbConfig("words", **settings), pool, count_words), [version], path)


@pytest.mark.parametrize("replaces", [False, True])
def test_the_originals_come_back_bit_for_bit(prepared, pool, tmp_path, replaces):
    lying = perturbed(prepared, pool, tmp_path / "d", kinds=dict.fromkeys(KINDS, 0.7), replace=replaces)
    assert lying.manifest.content != prepared.manifest.content
    honest = commit(unperturb(lying), [lying])
    assert honest.manifest.content == prepared.manifest.content and not list(verify(honest))
    assert honest.table("prompts").equals(prepared.table("prompts"))
    assert replay(honest).id == honest.id
    counts, lies = honest.manifest.counts, sum(row["perturbation"] is not None for row in lying.rows("prompts"))
    assert counts["prompts"].dropped == ({} if replaces else {"perturbed": lies})
    assert ("restored" in counts and counts["restored"].rows_out == lies) is replaces


def test_several_runs_are_undone_at_once(prepared, pool, tmp_path):
    added = perturbed(prepared, pool, tmp_path / "d", kinds={"swap": 0.5})
    replaced = perturbed(added, pool, None, kinds={"swap": 0.5, "stale": 0.4}, seed=1, replace=True)
    change = unperturb(replaced)
    assert commit(change, [replaced]).manifest.content == prepared.manifest.content
    counts = change.counts["prompts"]
    assert counts.rows_in == replaced.manifest.rows("prompts") and change.counts["restored"].rows_out > 0
    assert counts.rows_in - sum(counts.dropped.values()) == counts.rows_out == prepared.manifest.rows("prompts")


def test_where_nothing_was_perturbed_nothing_is_written(prepared):
    with pytest.raises(InputError, match="it is as it was"):
        unperturb(prepared)
    with pytest.raises(InputError, match="it is as it was"):
        unperturb(make_dataset(prepared.dataset.parent / "bare", [make_problem()]))


def test_an_original_that_does_not_add_up_is_refused_with_its_row(prepared, pool, tmp_path):
    lying = perturbed(prepared, pool, tmp_path / "d", kinds={"swap": 1.0})
    rows = [row for row in lying.rows("prompts") if row["perturbation"]]
    facts = json.loads(rows[0]["perturbation"])
    facts["original"]["feedback"] += "!"
    forged = Prompt.from_row({**rows[0], "perturbation": json.dumps(facts)}).to_row()
    change = perturb(prepared, PerturbConfig("words"), pool, count_words)
    tables = {"prompts": table_from_rows("prompts", [forged])}
    version = commit(type(change)("forge", {}, None, tables, {}), [lying])
    with pytest.raises(InputError, match=f"prompt {forged['prompt_id']}: field perturbation"):
        unperturb(version)


@pytest.mark.parametrize("original", [None, [1], {}, {"prompt_id": "x"}])
def test_an_original_that_is_none_is_one_line_to_perturb_and_to_unperturb(prepared, pool, tmp_path, original):
    (row, *_) = prepared.rows("prompts")
    lie = {**row, "perturbation": json.dumps({"kind": "swap", "seed": 0, "original": original})}
    tables = {"prompts": table_from_rows("prompts", [lie])}
    version = commit(Change("forge", {}, None, tables, {}), [prepared], tmp_path / "d")
    for verb in (unperturb, lambda version: perturb(version, PerturbConfig("words"), pool, count_words)):
        with pytest.raises(InputError, match=f"perturbation of {row['prompt_id']}: .*original"):
            verb(version)
