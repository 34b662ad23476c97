"""Exports: what consumers' loaders get, and that nothing half-written stays behind."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from builders import call_test, count_words, make_dataset, make_problem, rated
from datasets import load_dataset
from trl import apply_chat_template

from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dataset import open_version
from cobalt_data.engines.transformers import TransformersEngine
from cobalt_data.errors import InputError
from cobalt_data.export import FORMATS, export
from cobalt_data.importers import import_problems
from sandbox import Judge

PROMPT_FORMATS = [name for name in FORMATS if name != "reference"]


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    problems = [make_problem("a/1"), make_problem("a/2"), make_problem("b/1", split="test_variants")]
    trajectories = [rated(problem, [0.5, 1.0], sample) for problem in problems for sample in range(2)]
    made = make_dataset(tmp_path_factory.mktemp("export") / "d", problems, trajectories)
    return commit(cut(made, CutConfig("words", "all"), count_words), [made])


@pytest.fixture(scope="module")
def engine():
    return TransformersEngine.load("smollm2-135m")


def loaded(directory, side="train"):
    return load_dataset(str(directory), split=side, cache_dir=str(directory.with_name("cache")))


@pytest.mark.parametrize("format", PROMPT_FORMATS)
def test_every_prompt_of_every_side_is_loaded_as_it_was_served(format, version, tmp_path):
    made = export(version, format, tmp_path / "out")
    for side, rows in made.rows.items():
        prompts = {json.dumps(list(row["prompt"])) for row in version.rows("prompts", side)}
        assert {json.dumps(chat) for chat in loaded(tmp_path / "out", side)["prompt"]} == prompts
        assert rows == len(loaded(tmp_path / "out", side))
    assert sum(made.rows.values()) == version.manifest.rows("prompts")


@pytest.mark.parametrize("format", PROMPT_FORMATS)
def test_the_truth_for_a_reward_comes_along(format, version, tmp_path):
    export(version, format, tmp_path / "out")
    for ours, theirs in zip(version.rows("prompts", "train"), loaded(tmp_path / "out"), strict=True):
        truth = {
            "trl": lambda row: {name: json.loads(row[name]) for name in ("tests", "judge")},
            "verl": lambda row: json.loads(row["reward_model"]["ground_truth"]),
            "verifiers": lambda row: json.loads(row["info"]),
        }.get(format, lambda row: json.loads(row["label"]))(theirs)
        assert truth["tests"] == json.loads(ours["tests"]) and truth["judge"] == json.loads(ours["judge"])


def test_trl_renders_the_very_tokens_that_cobalt_trains_on(version, engine, tmp_path):
    export(version, "trl", tmp_path / "out")
    for row in loaded(tmp_path / "out"):
        text = apply_chat_template({"prompt": row["prompt"]}, engine.tokenizer)["prompt"]
        assert engine.tokenizer(text, add_special_tokens=False)["input_ids"] == engine.render(row["prompt"])


def test_the_reference_format_comes_back_through_its_importer(version, tmp_path):
    export(version, "reference", tmp_path / "out")
    imported = import_problems(str(tmp_path / "out" / "train.jsonl"), "reference")
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "out" / "train.jsonl").open())}
    assert set(rows) == {"a/1", "a/2"}
    ours = {row["problem_id"]: json.loads(row["tests"]) for row in version.rows("problems", "train")}
    theirs = {
        row["problem_id"]: json.loads(row["tests"]) for row in imported.as_change("x").tables["problems"].to_pylist()
    }
    assert {f"reference/{name}": tests for name, tests in ours.items()} == theirs


def test_problems_that_a_format_cannot_hold_are_counted(tmp_path):
    problems = [make_problem("a"), make_problem("b", tests=[call_test([1], 2), call_test([2], 4, public=False)])]
    problems += [make_problem(checker, judge=Judge(checker)) for checker in ("lines", "exact", "multiset", "float:0")]
    problems.append(replace(make_problem("c"), starter_code="n = int(input())"))
    made = export(make_dataset(tmp_path / "d", problems), "reference", tmp_path / "out")
    assert made.rows == {"train": 3}
    assert made.dropped == {
        "a test that is not stdin": 1,
        "a checker that takes other outputs as well": 2,
        "starter code": 1,
    }


@pytest.mark.parametrize(
    ("format", "output", "said"),
    [
        ("trlx", "out", "format 'trlx' is unknown"),
        ("trl", "d", "is there already"),
        ("trl", "out", "has no prompts: make them with `cobalt data cut` first"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(format, output, said, tmp_path):
    version = make_dataset(tmp_path / "d", [make_problem("a")])
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        export(version, format, tmp_path / output)
    assert "\n" not in str(caught.value) and sorted(tmp_path.iterdir()) == before


def test_the_reward_of_the_manual_gives_pass_rates(version):
    manual = Path(__file__).parents[2] / "docs" / "export.md"
    code = re.search(r"```python\n(.*?)```", manual.read_text(encoding="utf-8"), re.DOTALL)[1]
    names = {}
    exec(code.replace("Pool()", "Pool(workers=1)"), names)
    row = next(open_version(version.reference).rows("prompts", "train"))
    answers = ["print(2 * int(input()))", "print(2)"]
    completions = [[{"role": "assistant", "content": f"```python\n{answer}\n```"}] for answer in answers]
    with names["pool"]:
        rates = names["pass_rate"](completions, tests=[row["tests"]] * 2, judge=[row["judge"]] * 2)
    assert rates == [1.0, pytest.approx(1 / 6)]
