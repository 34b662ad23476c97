"""Reports of verbs: whole or not at all, and never in the place of what belongs to a dataset."""

import subprocess
import sys

import pytest
from builders import make_dataset, make_problem

from cobalt_data.dataset import open_version
from cobalt_data.errors import InputError
from cobalt_data.reports import write_report


def test_a_report_that_cannot_be_written_is_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="cannot write there"):
        write_report(tmp_path / "nowhere" / "report.jsonl", [])


def test_a_report_is_written_as_a_whole_or_not_at_all(tmp_path):
    report = tmp_path / "report.jsonl"
    write_report(report, [{"kept": "a"}])
    with pytest.raises(ZeroDivisionError):
        write_report(report, ({"kept": 1 // (2 - n)} for n in range(3)))
    assert [path.name for path in tmp_path.iterdir()] == [report.name]
    assert report.read_text() == '{"kept": "a"}\n'


def test_a_report_takes_no_place_of_a_datasets_own_files(tmp_path):
    version = make_dataset(tmp_path / "d", [make_problem()])
    for path in (tmp_path / "d" / "latest" / "manifest.json", version.path / "problems" / "report"):
        with pytest.raises(InputError, match="among the versions"):
            write_report(path, [{}])
    assert open_version(tmp_path / "d").id == version.id


def test_a_report_goes_down_a_pipe(tmp_path):
    command = [sys.executable, "-c", "from cobalt_data.reports import write_report; write_report('/dev/stdout', [{}])"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "{}\n"
