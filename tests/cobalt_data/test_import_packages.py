"""Problem packages of our own: what becomes of their parts, and what is refused."""

import io
import shutil
import stat
import zipfile

import pytest

from cobalt_data.errors import InputError
from cobalt_data.importers import archives, import_problems
from sandbox import Pool, Verdict

FILES = {
    "problem.yaml": "name:\n  sv: Summa\n  en: A Sum\nsource: Small Contest\nlicense: cc by-sa\n"
    "validator_flags: case_sensitive float_tolerance 1e-4\nlimits:\n  time_limit: 15\n  memory: 512\n",
    "problem_statement/problem.sv.tex": "Skriv summan.",
    "problem_statement/problem.en.tex": "\\problemname{A Sum}\r\nPrint the sum.",
    "data/sample/1.in": "1 2\r\n",
    "data/sample/1.ans": "3.0\n",
    "data/secret/group1/02.in": "5 5\n",
    "data/secret/group1/02.ans": "10\n",
    "data/secret/group1/01.in": "1 1\n",
    "data/secret/group1/01.ans": "2\n",
    "data/secret/group1/01.desc": "small",
    "submissions/accepted/good.py": "print(float(sum(map(int, input().split()))))",
    "submissions/accepted/good.cpp": "int main() {}",
    "submissions/wrong_answer/bad.py": "print(1)",
}


def write_package(root, changes=None):
    for name, content in {**FILES, **(changes or {})}.items():
        if content is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def write_zip(path, files=FILES, top="", **attributes):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(top + name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = attributes.get("mode", stat.S_IFREG | 0o644) << 16
            archive.writestr(info, content)
    return path


def only(source, **settings):
    (problem,) = import_problems(source, "package", **settings).problems
    return problem


def refusal(source, **options):
    with pytest.raises(InputError) as caught:
        import_problems(source, "package", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_package_becomes_a_problem_that_its_accepted_submission_solves(tmp_path):
    problem = only(write_package(tmp_path / "sum"))
    assert (problem.problem_id, problem.title, problem.source) == ("package/sum", "A Sum", "package")
    assert problem.statement == "Print the sum.\n\nSample Input 1\n1 2\n\nSample Output 1\n3.0"
    assert [(test["public"], test["input"]) for test in problem.tests] == [
        (True, "1 2\n"),
        (False, "1 1\n"),
        (False, "5 5\n"),
    ]
    assert (problem.judge.checker, problem.judge.time_limit_s, problem.judge.memory_mb) == ("float:0.0001", 15.0, 512)
    assert problem.solutions == (FILES["submissions/accepted/good.py"],)
    assert problem.metadata == {
        "origin_id": "sum", "contest": "Small Contest", "license": "cc by-sa", "author": None,
    }  # fmt: skip
    with Pool(backend="process", workers=1) as pool:
        assert pool.submit(problem.solutions[0], problem.tests, problem.judge).result().verdict is Verdict.PASSED


def test_a_directory_a_zip_and_a_zip_with_a_folder_at_its_top_are_the_same(tmp_path):
    wanted = only(write_package(tmp_path / "sum"))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    assert only(write_zip(tmp_path / "a" / "sum.zip")) == wanted
    assert only(write_zip(tmp_path / "b" / "sum.zip", top="sum-main/")) == wanted


def test_a_directory_of_packages_is_imported_whole(tmp_path):
    for name in ("one", "round/two"):
        write_package(tmp_path / name)
    write_zip(tmp_path / "three.zip")
    (tmp_path / "notes").mkdir()
    write_package(tmp_path / "own", {"problem.yaml": "validation: custom"})
    found = import_problems(tmp_path, "package")
    assert [problem.problem_id for problem in found.problems] == ["package/one", "package/three", "package/two"]
    assert found.dropped == {"validator of its own": 1} and found.rows_in == 4


@pytest.mark.parametrize(
    ("changes", "checker"),
    [
        ({"problem.yaml": "name: x"}, "tokens"),
        ({"problem.yaml": "output_validator_flags: float_tolerance 1e-6\ntype: scoring"}, "float:1e-06"),
        ({"problem.yaml": "validator_flags: space_change_sensitive"}, "exact"),
        ({"problem.yaml": "", "data/testdata.yaml": "output_validator_flags: float_absolute_tolerance 1e-6"}, "float:1e-06"),
        ({"problem.yaml": "", "data/secret/test_group.yaml": "output_validator_args: [float_tolerance, 0.01]"}, "float:0.01"),
    ],
)  # fmt: skip
def test_validator_flags_become_a_checker(tmp_path, changes, checker):
    assert only(write_package(tmp_path / "p", changes)).judge.checker == checker


def test_a_statement_in_html_becomes_text_and_markdown_goes_first(tmp_path):
    html = "<html><head><title>T</title><style>p {}</style></head><body><h1>Sum</h1>\n<p>\n n &le; 10<sup>5</sup>,\nok"
    html += "</p><ul><li>one</li><li>two</li></ul><pre>1 2\n 3</pre><script>x</script></body></html>"
    changes = {
        "problem_statement/problem.en.tex": None,
        "problem_statement/problem.sv.tex": None,
        "problem_statement/problem.html": html,
    }
    package = write_package(tmp_path / "p", changes)
    assert only(package).statement == "Sum\n\nn ≤ 10^5, ok\n\n- one\n- two\n\n1 2\n 3"
    (package / "problem_statement" / "problem.md").write_text("In *Markdown*: 1 2")
    assert only(package).statement == "In *Markdown*: 1 2"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"problem.yaml": None}, "holds no problem.yaml"),
        ({"problem.yaml": "a: [1"}, "problem.yaml is no YAML"),
        ({"problem.yaml": "- 1"}, "problem.yaml' is [1]: it must be a mapping"),
        ({"problem.yaml": "a: &a [x, x]\nb: &b [*a, *a]\nname: *b"}, "it uses aliases"),
        ({"problem.yaml": "!!python/object/apply:os.system ['true']"}, "problem.yaml is no YAML"),
        ({"problem.yaml": "[" * 5000}, "it is no configuration"),
        ({"problem.yaml": "name: " + "x" * 200_000}, "it is no configuration"),
        ({"problem.yaml": "validator_flags: float_tolerance"}, "no number"),
        ({"problem.yaml": "validator_flags: float_tolerance nan"}, "must lie in [0, 1)"),
        ({"problem.yaml": "limits: {memory: -3}"}, "limits.memory"),
        ({"problem.yaml": "limits: {time_limit: soon}"}, "the time limit is 'soon'"),
        ({"problem.yaml": f"limits: {{time_limit: {10**400}}}"}, "the time limit is '1000"),
        ({"data/sample/1.ans": None}, "1.in has no 1.ans beside it"),
        ({"data/sample/1.in": b"\xff"}, "is not UTF-8 (byte 0)"),
        ({name: None for name in FILES if name.startswith("problem_statement")}, "has no statement"),
        ({"problem_statement/problem.en.tex": " \n"}, "is empty"),
    ],
)  # fmt: skip
def test_a_bad_part_of_a_package_is_named(tmp_path, changes, said):
    message = refusal(write_package(tmp_path / "p", changes))
    assert said in message and str(tmp_path / "p") in message


@pytest.mark.parametrize("name", ["../x.in", "/etc/x.in", "data/../../x.in", "data\\..\\x.in", "C:/x.in", "a\nb"])
def test_a_name_that_leads_out_of_an_archive_is_refused(tmp_path, name):
    assert "leads out of it: refused" in refusal(write_zip(tmp_path / "p.zip", {**FILES, name: "x"}))
    assert [path.name for path in tmp_path.iterdir()] == ["p.zip"]


def test_links_are_refused_in_archives_and_where_they_leave_a_directory(tmp_path):
    assert "is a symbolic link" in refusal(write_zip(tmp_path / "p.zip", FILES, mode=stat.S_IFLNK | 0o777))
    package = write_package(tmp_path / "q")
    inside, outside = package / "data/secret/9.in", package / "data/secret/9.ans"
    inside.symlink_to("group1/01.in")
    outside.symlink_to("group1/01.ans")
    assert len(only(package).tests) == 4
    outside.unlink()
    outside.symlink_to("/etc/hostname")
    assert "9.ans is a link that leads out of the package: refused" in refusal(package)


def test_a_folder_that_is_a_link_is_refused_whether_a_package_or_a_directory_of_packages_holds_it(tmp_path):
    package = write_package(tmp_path / "round/one")
    outside = (package / "data/secret").rename(tmp_path / "secret")
    (package / "data/secret").symlink_to(outside)
    assert "data/secret is a link to a folder" in refusal(package)
    assert "data/secret is a link to a folder" in refusal(tmp_path / "round")
    (package / "data/secret").unlink()
    outside.rename(package / "data/secret")
    assert len(only(tmp_path / "round").tests) == 3
    (tmp_path / "round/two").symlink_to(write_package(tmp_path / "two"))
    assert "two is a link to a folder" in refusal(tmp_path / "round")
    found = import_problems(tmp_path / "round", "package", skip_bad_rows=True)
    assert found.dropped == {"link": 1} and [problem.title for problem in found.problems] == ["A Sum"]
    (tmp_path / "link").symlink_to(package)
    assert only(tmp_path / "link") == only(package)  # a package that is named may be one


def test_entries_without_a_name_are_refused_and_the_root_as_an_entry_is_not(tmp_path):
    for name in ("", "."):
        assert "which is no name" in refusal(write_zip(tmp_path / "p.zip", {**FILES, name: "x"}))
        with pytest.raises(InputError, match="none of its 1 rows"):
            import_problems(tmp_path / "p.zip", "package", skip_bad_rows=True)
    wanted = only(write_zip(tmp_path / "p.zip"))
    assert (
        only(write_zip(tmp_path / "p.zip", {"./": "", **{f"./{name}": text for name, text in FILES.items()}})) == wanted
    )


def test_an_archive_that_would_burst_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 2**20)
    bomb = {**FILES, "data/secret/z.in": bytes(30 * 2**20), "data/secret/z.ans": "1"}
    assert "holds more than 1 MiB" in refusal(write_zip(tmp_path / "p.zip", bomb))
    monkeypatch.setattr(archives, "MAX_ARCHIVE_BYTES", 2**20)
    assert "unpacks to more than" in refusal(tmp_path / "p.zip")
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    assert "more than 3 files" in refusal(write_package(tmp_path / "q"))


def test_damaged_archives_are_told_in_one_line(tmp_path):
    whole = write_zip(tmp_path / "p.zip").read_bytes()
    for content in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"x" * 100, bytes(1000)):
        (tmp_path / "p.zip").write_bytes(content)
        assert "is no zip archive" in refusal(tmp_path / "p.zip")
    damaged = bytearray(whole)
    damaged[40:60] = bytes(20)
    (tmp_path / "p.zip").write_bytes(damaged)
    assert "cannot be unpacked" in refusal(tmp_path / "p.zip")
    twice = io.BytesIO(whole)
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("problem.yaml", "name: again")
    (tmp_path / "p.zip").write_bytes(twice.getvalue())
    assert "names a file twice" in refusal(tmp_path / "p.zip")
    shutil.rmtree(tmp_path)
    assert "does not exist" in refusal(tmp_path)
