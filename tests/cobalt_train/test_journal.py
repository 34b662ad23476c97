import json

from cobalt_train.journal import Journal


def read(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def test_lines_of_steps_that_will_be_done_again_are_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    journal = Journal(path, last_step=0)
    records = [
        {"step": step, "text": text} for step, text in [(1, "a"), (1, "b\u2028\r\n"), (2, "\x85é"), (3, "\ud800")]
    ]
    for record in records:
        journal.append(record)
    Journal(path, last_step=3)
    assert read(path) == records
    Journal(path, last_step=1)
    assert read(path) == records[:2]


def test_a_line_that_a_kill_tore_is_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    Journal(path, last_step=0).append({"step": 1})
    with path.open("ab") as file:
        file.write('{"step": 1, "text": "é'.encode()[:-1])
    Journal(path, last_step=1).append({"step": 2})
    assert read(path) == [{"step": 1}, {"step": 2}]
