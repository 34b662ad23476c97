"""TACO, APPS and LiveCodeBench on small rows of our own in their published schemas."""

import base64
import datetime
import gzip
import json
import pickle
import pickletools
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cobalt_data.errors import InputError
from cobalt_data.importers import import_problems, pickled
from sandbox import Pool, Verdict
from sandbox.values import decode

TACO = {
    "question": "Read two numbers and print their sum. The numbers stand on one line, and so does the answer.\n" * 2,
    "solutions": json.dumps(["print(sum(map(int, input().split())))"]),
    "starter_code": "",
    "input_output": json.dumps(
        {"inputs": [f"1 {n}\r\n" for n in range(12)], "outputs": [f"{n + 1}\n" for n in range(12)]}
    ),
    "difficulty": "MEDIUM_HARD",
    "raw_tags": "['math']",
    "name": "A + B",
    "source": "codeforces",
    "tags": "['Mathematics']",
    "skill_types": "[]",
    "url": "https://codeforces.com/problemset/problem/1/A",
    "Expected Auxiliary Space": None,
    "time_limit": "12.5 seconds",
    "date": "2019-12-31",
    "picture_num": "0",
    "memory_limit": "1024.0 megabytes",
    "Expected Time Complexity": None,
}
STARTER = "class Solution:\n    def twice(self, nums: List[int]) -> List[int]:\n        "
APPS = {
    "problem_id": 7,
    "question": "Double every number.",
    "solutions": json.dumps([f"{STARTER}return [2 * n for n in nums]"]),
    "input_output": json.dumps({"fn_name": "twice", "inputs": [[[1, 2]], [[3]], [[]]], "outputs": [[2, 4], [6], []]}),
    "difficulty": "introductory",
    "url": "https://leetcode.com/problems/twice/",
    "starter_code": STARTER,
}


def packed(tests):
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def lcb(**changes):
    functional = [{"input": '[3, 1]\n"asc"', "output": "[1, 3]", "testtype": "functional"}]
    return {
        "question_title": "Sort it",
        "question_content": "Sort the numbers.",
        "platform": "leetcode",
        "question_id": "2777",
        "contest_id": "weekly-353",
        "contest_date": "2023-07-09T00:00:00",
        "starter_code": "class Solution:\n    def arrange(self, nums: List[int], order: str) -> List[int]:\n        ",
        "difficulty": "easy",
        "public_test_cases": json.dumps(functional),
        "private_test_cases": packed([{"input": '[]\n"asc"', "output": "[]", "testtype": "functional"}]),
        "metadata": json.dumps({"func_name": "arrange"}),
        **changes,
    }


def imported(tmp_path, format, *rows, **settings):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return import_problems(file, format, **settings)


def refusal(tmp_path, format, row):
    with pytest.raises(InputError) as caught:
        imported(tmp_path, format, row)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_taco_takes_stdin_tests_labels_limits_and_the_date_of_the_contest(tmp_path):
    (problem,) = imported(tmp_path, "taco", TACO).problems
    assert (problem.title, problem.difficulty, problem.source) == ("A + B", "medium_hard", "taco")
    assert problem.tests[0] == {"kind": "stdin", "public": True, "input": "1 0\n", "output": "1\n"}
    assert len(problem.public_tests) == 3 and len(problem.tests) == 12
    assert (problem.judge.time_limit_s, problem.judge.memory_mb, problem.judge.checker) == (12.5, 1024, "tokens")
    assert problem.metadata["contest_date"] == "2019-12-31" and problem.metadata["platform"] == "codeforces"
    verified = {**TACO, "id": 4, "solutions": ["x"], "date": "some day", "difficulty": "UNKNOWN_DIFFICULTY"}
    (problem,) = imported(tmp_path, "taco", verified).problems
    assert (problem.problem_id, problem.difficulty, problem.solutions) == ("taco/4", None, ("x",))
    assert problem.metadata["contest_date"] is None


def test_a_problem_without_an_id_has_one_from_its_content_and_may_stand_twice(tmp_path):
    found = imported(tmp_path, "taco", TACO, TACO, {**TACO, "question": "Another.\n"})
    assert len(found.problems) == 2 and found.dropped == {"repeated row": 1}


def test_apps_calls_the_method_of_a_class_and_keeps_lists_that_are_answers(tmp_path):
    (problem,) = imported(tmp_path, "apps", APPS).problems
    assert problem.problem_id.startswith("apps/7-") and problem.metadata["platform"] == "leetcode"
    assert problem.judge.entry_point == "Solution().twice"
    assert [(test["kind"], test["args"], test["expected"]) for test in problem.tests[:2]] == [
        ("call", [[1, 2]], [2, 4]),
        ("call", [[3]], [6]),
    ]
    with Pool(backend="process", workers=1) as pool:
        assert pool.submit(problem.solutions[0], problem.tests, problem.judge).result().verdict is Verdict.PASSED


def test_outputs_in_lists_of_their_own_are_taken_out(tmp_path):
    def expected(outputs, starter="", inputs=((1,), (2,))):
        tests = {"fn_name": "f", "inputs": inputs, "outputs": outputs}
        row = {**APPS, "input_output": json.dumps(tests), "starter_code": starter, "solutions": ""}
        (problem,) = imported(tmp_path, "apps", row).problems
        return [decode(test["expected"]) for test in problem.tests]

    assert expected([[5], [6]]) == [5, 6]
    assert expected([[5], [6, 7]]) == [[5], [6, 7]]
    assert expected([[5], [6]], "def f(x: int) -> List[int]:") == [[5], [6]]
    assert expected([[[5]], [[6]]], "def f(x: int) -> List[int]:") == [[5], [6]]
    assert expected([{"1": 2}, {"-3": 4}]) == [{1: 2}, {-3: 4}]


def test_lines_of_stdin_may_be_a_list_and_floats_make_a_tolerance(tmp_path):
    tests = {"inputs": [["2", "1 2"], "3"], "outputs": [["0.5"], "1"]}
    (problem,) = imported(tmp_path, "apps", {**APPS, "input_output": json.dumps(tests)}).problems
    assert (problem.tests[0]["input"], problem.judge.checker) == ("2\n1 2", "float:1e-05")


def test_problems_without_tests_are_left_out_and_counted(tmp_path):
    found = imported(tmp_path, "apps", APPS, {**APPS, "problem_id": 8, "input_output": ""})
    assert len(found.problems) == 1 and found.dropped == {"no tests": 1}


@pytest.mark.parametrize(
    ("format", "row", "said"),
    [
        ("taco", {**TACO, "input_output": "[]"}, "field 'input_output' is []: it must be an object"),
        ("taco", {**TACO, "input_output": '{"inputs": ["1"], "outputs": []}'}, "has 1 inputs and 0 outputs"),
        ("taco", {**TACO, "input_output": '{"inputs": [3], "outputs": ["1"]}'}, "'input_output.inputs[0]' is 3"),
        ("taco", {**TACO, "question": None}, "field 'question' is null"),
        ("taco", {**TACO, "picture_num": 10**400}, "field 'picture_num' is 1000"),
        (
            "taco",
            {**TACO, "input_output": {"fn_name": "f", "inputs": [[float("nan")]], "outputs": [1]}},
            "field 'input_output' holds a value that JSON lacks",
        ),
        ("taco", {**TACO, "solutions": '{"a": 1}'}, "field 'solutions' is"),
        ("apps", {**APPS, "input_output": '{"fn_name": "f(", "inputs": [[1]], "outputs": [1]}'}, "name of a function"),
        ("apps", {**APPS, "input_output": '{"fn_name": "f", "inputs": [1], "outputs": [1]}'}, "the array of a call's"),
        ("apps", {**APPS, "input_output": '{"fn_name": "f", "inputs": [[' + "[" * 300 + "]" * 300 + ']], "outputs": [1]}'}, "200 deep"),
        ("livecodebench", lcb(contest_date="soon"), "field 'contest_date' is 'soon'"),
        ("livecodebench", lcb(metadata="{}"), "field 'metadata.func_name' is missing"),
        ("livecodebench", lcb(public_test_cases='[{"input": "[1", "output": "1", "testtype": "functional"}]'), "is no JSON"),
        ("livecodebench", lcb(public_test_cases='[{"input": "1", "output": "1", "testtype": "stdin"}]'), "both kinds"),
        ("livecodebench", lcb(private_test_cases="&&&"), "neither JSON nor base64"),
        ("livecodebench", lcb(private_test_cases="AAAA"), "damaged zlib"),
        ("livecodebench", lcb(private_test_cases=base64.b64encode(zlib.compress(b"x" * 99)[:-4]).decode()), "does not end"),
        ("livecodebench", lcb(private_test_cases=base64.b64encode(zlib.compress(b"junk")).decode()), "is no pickle"),
    ],
)  # fmt: skip
def test_a_bad_row_is_told_by_field(tmp_path, format, row, said):
    assert said in refusal(tmp_path, format, row)


def test_livecodebench_decodes_private_tests_and_calls_with_one_value_per_line(tmp_path):
    (problem,) = imported(tmp_path, "livecodebench", lcb()).problems
    assert (problem.problem_id, problem.title, problem.difficulty) == ("livecodebench/2777", "Sort it", "easy")
    assert problem.judge.entry_point == "Solution().arrange"
    assert [(test["public"], test["args"], test["expected"]) for test in problem.tests] == [
        (True, [[3, 1], "asc"], [1, 3]),
        (False, [[], "asc"], []),
    ]
    assert problem.metadata["contest_date"] == "2023-07-09" and problem.metadata["platform"] == "leetcode"
    program = f"{problem.starter_code}\n        return sorted(nums)"
    with Pool(backend="process", workers=1) as pool:
        assert pool.submit(program, problem.tests, problem.judge).result().verdict is Verdict.PASSED


def test_livecodebench_takes_stdin_tests_and_plain_private_ones(tmp_path):
    def stdin(*outputs):
        return json.dumps([{"input": "1\n", "output": output, "testtype": "stdin"} for output in outputs])

    row = lcb(platform="atcoder", public_test_cases=stdin("0.50\n"), private_test_cases=stdin("1\n", "2\n"))
    (problem,) = imported(tmp_path, "livecodebench", row).problems
    assert [test["public"] for test in problem.tests] == [True, False, False]
    assert problem.judge.checker == "float:0" and problem.judge.entry_point is None


def test_parquet_with_a_timestamp_and_gzip_give_the_same_problems(tmp_path):
    wanted = imported(tmp_path, "livecodebench", lcb()).problems
    table = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([lcb(contest_date=datetime.datetime(2023, 7, 9))]), table)
    gz = tmp_path / "a.gz"
    gz.write_bytes(gzip.compress(json.dumps(lcb()).encode()))
    assert import_problems(table, "livecodebench").problems == import_problems(gz, "livecodebench").problems == wanted


def test_a_year_has_four_digits_however_early(tmp_path):
    (written,) = imported(tmp_path, "livecodebench", lcb(contest_date="0099-01-01")).problems
    pq.write_table(pa.Table.from_pylist([lcb(contest_date=datetime.date(99, 1, 1))]), tmp_path / "a.parquet")
    (stored,) = import_problems(tmp_path / "a.parquet", "livecodebench").problems
    assert written.metadata["contest_date"] == stored.metadata["contest_date"] == "0099-01-01"


class Trap:
    def __reduce__(self):
        return (exec, ("open('ran', 'w')",))


MALICIOUS = {
    "a call": pickle.dumps(Trap()),
    "a call of an old protocol": pickle.dumps(Trap(), protocol=0),
    "a class": pickle.dumps(json.JSONDecodeError),
    "a list": pickle.dumps(["[]"]),
    "a number": pickle.dumps(5),
    "bytes": pickle.dumps(b"[]"),
    "two texts": pickle.dumps("[]")[:-1] + pickle.dumps("[]")[2:],
    "text and what comes after it": pickle.dumps("[]") + b"cos\nsystem\n.",
    "a persistent id": b"Pfile\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "nothing": pickle.dumps("")[:2] + b".",
}


@pytest.mark.parametrize("kind", MALICIOUS)
def test_a_pickle_that_is_not_one_text_is_refused_and_never_run(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    hidden = base64.b64encode(zlib.compress(MALICIOUS[kind])).decode()
    message = refusal(tmp_path, "livecodebench", lcb(private_test_cases=hidden))
    assert "refused, not run" in message and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_text_comes_back_from_a_pickle_of_any_protocol(protocol):
    for text in ("", "[1]", "ä\n\u2603\U0001f600", "x" * 100_000):
        made = pickle.dumps(text, protocol)
        for form in (made, pickletools.optimize(made)):
            assert pickled.pickled_text(base64.b64encode(zlib.compress(form)).decode(), "f") == text


def test_a_field_that_would_burst_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pickled, "MAX_UNPACKED_BYTES", 2**20)
    bomb = base64.b64encode(zlib.compress(bytes(50 * 2**20), 9)).decode()
    assert "unpacks to more than 1 MiB" in refusal(tmp_path, "livecodebench", lcb(private_test_cases=bomb))


def test_the_papers_preparation_keeps_short_and_long_tests_and_counts_the_rest(tmp_path):
    many = {"inputs": ["x" * n for n in range(1, 41)][::-1], "outputs": ["1"] * 40}
    rows = [
        {**TACO, "id": 1, "input_output": json.dumps(many)},
        {**TACO, "id": 2, "input_output": json.dumps({"inputs": ["1"] * 7, "outputs": ["1"] * 7})},
        {**TACO, "id": 3, "question": TACO["question"] + "See the image."},
        {**TACO, "id": 4, "question": "Too short."},
        {**TACO, "id": 5, "input_output": APPS["input_output"]},
        {**TACO, "id": 6},
    ]
    found = imported(tmp_path, "taco", *rows, prepare="paper")
    first, last = found.problems
    assert [len(test["input"]) for test in first.tests] == [*range(1, 6), *range(26, 41)]
    assert len(first.public_tests) == len(last.public_tests) == 4 and len(first.hidden_tests) == 16
    assert found.dropped == {"too few tests": 1, "picture": 1, "short statement": 1, "is a function": 1}


def test_a_side_given_with_the_import_is_that_of_its_problems(tmp_path):
    (problem,) = imported(tmp_path, "apps", APPS, side="test").problems
    assert problem.split == "test"
    for settings, said in (({"side": "../x"}, "side is '../x'"), ({"prepare": "x"}, "there is 'paper' alone")):
        with pytest.raises(InputError, match=said):
            imported(tmp_path, "apps", APPS, **settings)
