"""Bad input to an import: one clear line with its place, field and remedy; never a half-read result."""

import gzip
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cobalt_data.errors import InputError
from cobalt_data.importers import FORMATS, import_problems, reader

GOOD = {
    "humaneval": {
        "task_id": "HumanEval/0",
        "prompt": 'def f(x):\n    """Add one."""\n',
        "entry_point": "f",
        "canonical_solution": "    return x + 1\n",
        "test": "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(5) == 6\n",
    },
    "kickstart_codejam": {
        "id": "a",
        "title": "A",
        "source": "Code Jam",
        "question": "Echo.",
        "float_tolerance": 1e-6,
        "tests": [
            {"input": "1\n", "output": "1\n", "public": True},
            {"input": "2\n", "output": "2\n", "public": False},
        ],
    },
    "reference": {"id": 7, "question": "Echo.", "test_cases": {"inputs": ["1", "2", "3"], "outputs": ["1", "2", "3"]}},
}


def write_lines(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def message_of(source, format="humaneval", **options):
    with pytest.raises(InputError) as caught:
        import_problems(source, format, **options)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 500
    return message


@pytest.mark.parametrize("format", GOOD)
def test_plain_gzip_and_parquet_give_the_same_problems(tmp_path, format):
    plain = write_lines(tmp_path / "a.jsonl", GOOD[format])
    packed = tmp_path / "a.anything"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    table = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([GOOD[format]]), table)
    wanted = import_problems(plain, format).problems
    assert len(wanted) == 1
    assert import_problems(packed, format).problems == import_problems(table, format).problems == wanted


def test_a_missing_file_a_directory_and_an_empty_file_are_named(tmp_path):
    assert "nothing.jsonl does not exist" in message_of(tmp_path / "nothing.jsonl")
    assert "is a directory" in message_of(tmp_path)
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    assert "is empty" in message_of(empty)
    empty.write_bytes(b"\n \n")
    assert "holds no rows" in message_of(empty)
    empty.write_bytes(gzip.compress(b""))
    assert "holds no rows" in message_of(empty)


def test_damaged_gzip_says_where_and_is_never_skipped(tmp_path):
    rows = "".join(json.dumps({**GOOD["humaneval"], "task_id": f"HumanEval/{i}"}) + "\n" for i in range(2000))
    packed = gzip.compress(rows.encode())
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(packed[: len(packed) // 2])
    message = message_of(file, skip_bad_rows=True)
    assert "truncated" in message and f"{file}:" in message
    file.write_bytes(packed[:200] + bytes(50) + packed[250:])
    assert "damaged" in message_of(file, skip_bad_rows=True)
    file.write_text(rows)
    assert "is not gzip data although its name ends in .gz" in message_of(file)


def test_files_of_other_kinds_are_named_for_what_they_are(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.jsonl", "w") as archive:
        archive.writestr("a.jsonl", "{}")
    assert "is a zip archive" in message_of(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "Git LFS pointer" in message_of(tmp_path / "b.jsonl")
    (tmp_path / "c.parquet").write_bytes(b"PAR1" + bytes(100))
    assert "Parquet data is damaged" in message_of(tmp_path / "c.parquet")


@pytest.mark.parametrize(
    ("line", "reason", "said"),
    [
        ("{'a': 1}", "not JSON", "the line is no JSON"),
        ('{"a": 1', "not JSON", "the line is no JSON"),
        ("[" * 100_000, "not JSON", "the line cannot be decoded"),
        ('{"task_id": ' + "9" * 5000 + "}", "not JSON", "the line cannot be decoded"),
        ("[1, 2]", "not an object", "'whole line' is [1, 2]: it must be an object"),
        ("null", "not an object", "'whole line' is null: it must be an object"),
        ("NaN", "not an object", "'whole line' is NaN: it must be an object"),
    ],
)
def test_a_line_that_is_no_object_is_told_by_its_number(tmp_path, line, reason, said):
    file = write_lines(tmp_path / "a.jsonl", GOOD["humaneval"], "", line)
    message = message_of(file)
    assert message.startswith(f"{file}:3: ") and said in message and "--skip-bad-rows" in message
    imported = import_problems(file, "humaneval", skip_bad_rows=True)
    assert (len(imported.problems), imported.rows_in, imported.dropped) == (1, 2, {reason: 1})
    assert len(imported.bad_rows) == 1 and said in imported.bad_rows[0]


def test_a_json_array_and_invalid_utf8_come_with_the_remedy(tmp_path):
    file = write_lines(tmp_path / "a.json", [GOOD["humaneval"]])
    assert "JSON array: write one object per line" in message_of(file)
    file.write_bytes(json.dumps(GOOD["humaneval"]).encode() + b'\n{"a": "\xff"}\n')
    assert f"{file}:2: the line is not UTF-8 (byte 0xff at column 8)" in message_of(file)
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD["humaneval"]).encode())  # a byte order mark is harmless
    assert len(import_problems(file, "humaneval").problems) == 1


@pytest.mark.parametrize(
    ("format", "changes", "said"),
    [
        ("humaneval", {"prompt": None}, "field 'prompt' is null: it must be text"),
        ("humaneval", {"prompt": 3}, "field 'prompt' is 3: it must be text"),
        ("humaneval", {"prompt": float("nan")}, "field 'prompt' is NaN: it must be text"),
        ("humaneval", {"prompt": " "}, "field 'prompt' is empty"),
        ("humaneval", {"prompt": "def f(x):\n    pass\n"}, "field 'prompt': f has no docstring"),
        ("humaneval", {"prompt": "def g(x):\n    'Go.'\n"}, "field 'prompt' does not define f"),
        ("humaneval", {"prompt": "def f(x:\n    'Go.'\n"}, "field 'prompt' is no Python source"),
        ("humaneval", {"prompt": "def f(x):\n    '''\ud800'''\n"}, "field 'prompt' holds half a surrogate pair"),
        ("humaneval", {"entry_point": ["f"]}, "field 'entry_point' is [\"f\"]: it must be text"),
        ("humaneval", {"task_id": "a\nb"}, "field 'task_id' is 'a\\nb'"),
        ("humaneval", {"task_id": "MBPP/3"}, "import it with --format mbpp"),
        ("humaneval", {"test": "def check(candidate):\n    pass\n"}, "field 'test' has no assert"),
        ("humaneval", {"test": "assert f(1) == '\\ud800'"}, "field 'test' holds a value that cannot be stored"),
        ("humaneval", {"canonical_solution": 1}, "field 'canonical_solution' is 1: it must be text"),
        (
            "kickstart_codejam",
            {"float_tolerance": float("nan")},
            "'float_tolerance' is NaN: it must be a finite number",
        ),
        ("kickstart_codejam", {"float_tolerance": 10**400}, "it must be a finite number"),
        ("kickstart_codejam", {"float_tolerance": True}, "'float_tolerance' is true: it must be a finite number"),
        ("kickstart_codejam", {"float_tolerance": 5}, "field 'float_tolerance' is 5: it must lie in [0, 1)"),
        ("kickstart_codejam", {"tests": []}, "field 'tests' is empty"),
        ("kickstart_codejam", {"tests": "1"}, "field 'tests' is \"1\": it must be an array"),
        ("kickstart_codejam", {"tests": [1]}, "field 'tests[0]' is 1: it must be an object"),
        ("kickstart_codejam", {"tests": [{"input": "1", "public": True}]}, "field 'tests[0].output' is missing"),
        (
            "kickstart_codejam",
            {"tests": [{"input": "1", "output": None, "public": True}]},
            "field 'tests[0].output' is null: it must be text",
        ),
        (
            "kickstart_codejam",
            {"tests": [{"input": "1", "output": "1", "public": "yes"}]},
            "field 'tests[0].public' is \"yes\": it must be true or false",
        ),
        ("reference", {"test_cases": "{"}, "field 'test_cases' holds text that is no JSON"),
        ("reference", {"test_cases": {"inputs": ["1"]}}, "field 'test_cases.outputs' is missing"),
        (
            "reference",
            {"test_cases": {"inputs": ["1", "2"], "outputs": ["1"]}},
            "field 'test_cases' has 2 inputs and 1 outputs",
        ),
        (
            "reference",
            {"test_cases": {"inputs": ["1", "2"], "outputs": ["1", float("nan")]}},
            "field 'test_cases.outputs[1]' is NaN: it must be text",
        ),
        ("reference", {"test_cases": None}, "field 'test_cases' is missing or empty"),
        ("reference", {"id": None}, "field 'id' is null"),
        ("reference", {"id": 1.5}, "field 'id' is 1.5"),
        ("reference", {"difficulty": -(10**400)}, "field 'difficulty' is -1000"),
        ("reference", {"question": None}, "field 'question' is missing, and so is 'instruction'"),
    ],
)
def test_a_bad_field_is_told_by_line_and_name(tmp_path, format, changes, said):
    file = write_lines(tmp_path / "a.jsonl", {**GOOD[format], **changes})
    message = message_of(file, format)
    assert message.startswith(f"{file}:1: ") and said in message


@pytest.mark.parametrize("depth", [600, 900, 1500, 50_000])
def test_deeply_nested_source_is_a_bad_row(tmp_path, depth):
    file = write_lines(tmp_path / "a.jsonl", {**GOOD["humaneval"], "test": "assert f(1) == 1" + " + 1" * depth})
    message = message_of(file)
    assert message.startswith(f"{file}:1: ") and ("nested too deeply" in message or "no Python source" in message)


def test_a_file_of_another_format_is_recognised(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", GOOD["humaneval"])
    assert "looks like humaneval" in message_of(file, "kickstart_codejam")
    assert "field 'description' is missing; the row looks like humaneval" in message_of(file, "mbpp")
    write_lines(file, GOOD["kickstart_codejam"])
    assert "field 'task_id' is missing; the row looks like kickstart_codejam" in message_of(file)
    write_lines(file, {"text": "", "code": "", "test_list": []})
    assert "MBPP's original release" in message_of(file, "mbpp")
    write_lines(file, {"hello": 1})
    assert "field 'task_id' is missing" in message_of(file, "mbpp")


def test_a_row_that_no_sandbox_can_judge_is_left_out_and_counted(tmp_path):
    unusable = {**GOOD["humaneval"], "task_id": "HumanEval/1", "test": "assert f(int) == 1"}
    file = write_lines(tmp_path / "a.jsonl", GOOD["humaneval"], unusable)
    imported = import_problems(file, "humaneval")
    assert (len(imported.problems), imported.rows_in, imported.dropped) == (1, 2, {"unusable tests": 1})
    assert imported.bad_rows[0].startswith(f"{file}:2: field 'test' hands functions or types to f")


def test_duplicate_ids_stop_the_import_or_one_row_is_kept_whatever_their_order(tmp_path):
    other = {**GOOD["humaneval"], "canonical_solution": "    return 0\n"}
    file = write_lines(tmp_path / "a.jsonl", GOOD["humaneval"], other)
    message = message_of(file)
    assert message.startswith(f"{file}:2: id 'HumanEval/0' was used before, at {file}:1")
    imported = import_problems(file, "humaneval", skip_bad_rows=True)
    assert imported.dropped == {"duplicate id": 1} and imported.rows_out == 1
    turned = import_problems(
        write_lines(tmp_path / "b.jsonl", other, GOOD["humaneval"]), "humaneval", skip_bad_rows=True
    )
    assert turned.problems == imported.problems and turned.dropped == imported.dropped


def test_a_file_of_nothing_but_bad_rows_is_an_error(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", "{}", "[]")
    assert "none of its 2 rows could be imported; the first: " in message_of(file, skip_bad_rows=True)


def test_a_gigantic_line_is_refused_without_reading_it_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 2**20)
    huge = {**GOOD["humaneval"], "task_id": "HumanEval/1", "prompt": "x" * 5_000_000}
    last = {**GOOD["humaneval"], "task_id": "HumanEval/2"}
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, (GOOD["humaneval"], huge, last))).encode()))
    assert message_of(file).startswith(f"{file}:2: the line is longer than 1 MiB")
    imported = import_problems(file, "humaneval", skip_bad_rows=True)
    assert [problem.problem_id for problem in imported.problems] == ["humaneval/0", "humaneval/2"]
    assert imported.dropped == {"too long": 1}


def test_unknown_formats_are_refused_with_the_list(tmp_path):
    for format in ("humanevil", "", "HUMANEVAL"):
        assert "is unknown; formats: embedded, humaneval" in message_of(None, format)
    assert "needs a source" in message_of(None, "mbpp")
    assert "takes no source" in message_of(tmp_path, "embedded")
    assert "is an address: download the file" in message_of("https://example.org/a.jsonl", "mbpp")
    assert "public is -1" in message_of(tmp_path, "mbpp", public=-1)
    assert len(FORMATS) == len(set(FORMATS)) == 11


def test_the_order_of_the_rows_does_not_matter_and_a_limit_counts_rows(tmp_path):
    rows = [{**GOOD["humaneval"], "task_id": f"HumanEval/{i}"} for i in range(5)]
    forwards = import_problems(write_lines(tmp_path / "a.jsonl", *rows), "humaneval")
    backwards = import_problems(write_lines(tmp_path / "b.jsonl", *rows[::-1]), "humaneval")
    assert forwards == backwards
    limited = import_problems(tmp_path / "b.jsonl", "humaneval", limit=2)
    assert (limited.rows_in, [problem.problem_id for problem in limited.problems]) == (
        2,
        ["humaneval/3", "humaneval/4"],
    )
