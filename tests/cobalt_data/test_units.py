"""Units are fixed by what is to be done, and threads work through them: each once, errors and interrupts included."""

import threading

import pytest

from cobalt_data.progress import Meter
from cobalt_data.rows import Problem
from cobalt_data.units import Abandoned, make_units, work_through
from sandbox import Judge


def problems(count):
    test = {"kind": "stdin", "public": True, "input": "", "output": ""}
    return [Problem(f"p{index:03}", "s", "t", None, "s", "", (test,), Judge(), (), {}) for index in range(count)]


def test_units_hold_every_conversation_once_and_no_problem_without_any():
    units = make_units(problems(10), [[0, 1], [], [1]] * 3 + [[0]], problems_per_unit=3)
    pairs = [
        (problem.problem_id, sample)
        for unit in units
        for problem, samples in zip(unit.problems, unit.samples, strict=True)
        for sample in samples
    ]
    assert len(pairs) == len(set(pairs)) == 10 == sum(unit.conversations for unit in units)
    assert max(len(unit.problems) for unit in units) == 3
    assert len({unit.name for unit in units}) == len(units)


def test_the_name_of_a_unit_is_its_content():
    first, second = (make_units(problems(4), [range(2)] * 4, 2) for _ in range(2))
    assert [unit.name for unit in first] == [unit.name for unit in second]
    assert first[0].name != make_units(problems(4), [range(3)] * 4, 2)[0].name


@pytest.mark.parametrize("threads", [1, 3, 50])
def test_every_unit_is_worked_on_once(threads):
    units = make_units(problems(40), [range(1)] * 40, 2)
    results = list(work_through(units, lambda unit, _: unit.name, threads))
    assert all(unit.name == result for unit, result in results)
    assert sorted(result for _, result in results) == sorted(unit.name for unit in units)


def test_as_many_units_as_asked_for_are_worked_on_at_once():
    meeting = threading.Barrier(3, timeout=30)
    units = make_units(problems(3), [range(1)] * 3, 1)
    assert len(list(work_through(units, lambda unit, _: meeting.wait(), threads=3))) == 3


def test_the_error_of_one_unit_is_raised_and_the_others_leave():
    units = make_units(problems(3), [range(1)] * 3, 1)
    left = []

    def work(unit, abandoned):
        if unit is units[1]:
            raise ValueError("broken")
        if not abandoned.wait(30):
            return
        left.append(unit.name)
        raise Abandoned

    with pytest.raises(ValueError, match="broken"):
        list(work_through(units, work, threads=3))
    assert set(left) == {units[0].name, units[2].name}


def test_a_caller_that_leaves_abandons_the_rest():
    units = make_units(problems(30), [range(1)] * 30, 1)
    started = []

    def work(unit, abandoned):
        started.append(unit.name)
        if len(started) > 1 and abandoned.wait(30):
            raise Abandoned

    finished = work_through(units, work, threads=1)
    assert next(finished)[0] is units[0]
    finished.close()
    assert set(started) <= {units[0].name, units[1].name}


def test_no_units_are_no_work():
    assert list(work_through([], lambda unit, _: None, threads=4)) == []


def test_a_meter_counts_calls_that_overlap_once_and_knows_when_it_ends():
    seen = []
    meter = Meter(problems=4, steps=4, report=seen.append)
    with meter.generating(), meter.generating():
        pass
    meter.turn_done(programs=8, completion_tokens=100)
    meter.unit_done(problems=2, solved=1)
    meter.turns_left_out(3)
    last = meter.snapshot()
    assert (last.problems_done, last.problems_solved, last.programs, last.completion_tokens) == (2, 1, 8, 100)
    assert 0 <= last.model_share <= 1 and last.tokens_per_second > 0
    assert seen[0].seconds_left > 0 and last.seconds_left == 0
    assert Meter(1, 1).snapshot().seconds_left is None


def test_a_meter_counts_the_same_from_many_threads():
    meter = Meter(problems=800, steps=800)
    threads = [threading.Thread(target=lambda: [meter.turn_done(1, 3) for _ in range(100)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (meter.snapshot().programs, meter.snapshot().completion_tokens) == (800, 2400)
