"""Near-duplicates: a planted set, what keeps alike rows apart, which row is kept, and bounded cost."""

import json
from random import Random

import numpy as np
import pytest
from builders import call_test, make_dataset, make_problem, rated, stdin_test
from planted import planted_problems, planted_programs

from cobalt_data.commit import commit
from cobalt_data.dedup import DedupConfig, dedup, find_duplicates
from cobalt_data.duplicate_problems import alike_problems
from cobalt_data.duplicate_trajectories import near_form
from cobalt_data.errors import InputError
from cobalt_data.near import near_duplicates
from cobalt_data.normalise import normalise_program
from cobalt_data.reports import write_report
from cobalt_data.sketches import open_sketches
from sandbox import Judge

PROBLEMS = DedupConfig(("problems",), near=True)
TRAJECTORIES = DedupConfig(("trajectories",), near=True)
LOOP = "n = int(input())\ntotal = 0\nfor i in range(n):\n    total += i * i\n    if total > 100:\n        break\nprint(total)"


def pairs(clusters, part):
    return {frozenset((cluster.kept, row_id)) for cluster in clusters for row_id in getattr(cluster, part)}


def precision_and_recall(found, planted):
    return len(found & planted) / len(found), len(found & planted) / len(planted)


@pytest.mark.parametrize("seed", [0, 6])
def test_planted_problems_are_found_and_others_are_left(tmp_path, seed):
    problems, exact, near = planted_problems(seed)
    assert (len(problems), len(exact), len(near)) == (1000, 150, 150)
    clusters = find_duplicates(make_dataset(tmp_path / "d", problems), PROBLEMS)
    assert min(precision_and_recall(pairs(clusters, "exact"), exact)) >= 0.98
    assert min(precision_and_recall(pairs(clusters, "near"), near)) >= 0.95


@pytest.mark.parametrize("seed", [0, 6])
def test_planted_programs_are_found_and_others_are_left(tmp_path, seed):
    programs, exact, near = planted_programs(seed)
    assert (len(programs), len(exact), len(near)) == (1000, 150, 150)
    trajectories = [rated(make_problem(), [0.5], index, programs=[program]) for index, program in enumerate(programs)]
    place = {made.trajectory_id: index for index, made in enumerate(trajectories)}
    clusters = find_duplicates(make_dataset(tmp_path / "d", [make_problem()], trajectories), TRAJECTORIES)
    found = [{frozenset(map(place.get, pair)) for pair in pairs(clusters, part)} for part in ("exact", "near")]
    assert min(precision_and_recall(found[0], exact)) >= 0.98
    assert min(precision_and_recall(found[1], near)) >= 0.95


def alike(problem_id, tests, extra="", **fields):
    """A problem with one long statement; by default no other has its tests."""
    problem = make_problem(problem_id, tests, **fields)
    tale = " ".join(f"word_{n}" for n in range(60))
    return {**problem.to_row(), "statement": f"{tale} {extra}"}


@pytest.mark.parametrize(
    ("one", "other", "is_duplicate"),
    [
        ([stdin_test("1\n", "2\n")], [stdin_test("1", "3\n")], False),
        ([stdin_test("1\n", "2\n")], [stdin_test("1", " 2")], True),
        ([stdin_test("1\n", "2\n")], [stdin_test("2\n", "9\n")], True),
        ([call_test([1], [2, 3])], [call_test([1], [2, 4])], False),
        ([call_test([1], [2, 3])], [call_test([1], [2, 3])], True),
        ([{"kind": "assert", "public": True, "code": "assert f(1)"}], [stdin_test("1", "2")], True),
    ],
)
@pytest.mark.parametrize("extra", ["", "and one more"])
def test_two_answers_to_one_input_keep_problems_apart_however_alike_they_read(
    tmp_path, one, other, is_duplicate, extra
):
    version = make_dataset(tmp_path / "d", [alike("a", one), alike("b", other, extra)])
    assert bool(find_duplicates(version, PROBLEMS)) is is_duplicate


def test_the_problem_that_is_held_out_is_kept_and_all_that_was_made_from_the_other_goes(tmp_path):
    train, test = alike("a", None), alike("b", None, "and one more", split="test")
    version = make_dataset(tmp_path / "d", [train, test], [rated(make_problem("a"), [0.5, 1.0])])
    after = commit(dedup(version, PROBLEMS), [version])
    assert [row["problem_id"] for row in after.rows("problems")] == ["b"] and not after.has("trajectories")
    assert after.manifest.counts["problems"].dropped == {"nearly the same statement": 1}


def test_statements_without_a_word_are_nobodys_duplicates(tmp_path):
    problems = [
        {**make_problem(name).to_row(), "statement": text} for name, text in [("a", ""), ("b", ""), ("c", " \n")]
    ]
    assert find_duplicates(make_dataset(tmp_path / "d", problems), PROBLEMS) == []


def test_programs_that_score_differently_are_no_near_duplicates(tmp_path):
    fixed = LOOP.replace(">", ">=")
    problem = make_problem()
    apart = [rated(problem, [0.5], 0, programs=[LOOP]), rated(problem, [1.0], 1, programs=[fixed])]
    assert find_duplicates(make_dataset(tmp_path / "d", [problem], apart), DedupConfig(near=True, threshold=0.5)) == []
    same = [rated(problem, [0.5], 0, programs=[LOOP]), rated(problem, [0.5], 1, programs=[fixed])]
    (cluster,) = find_duplicates(make_dataset(tmp_path / "e", [problem], same), DedupConfig(near=True, threshold=0.5))
    assert 0.5 <= next(iter(cluster.near.values())) < 1


def test_programs_that_differ_in_all_of_one_function_are_no_near_duplicates_however_long_the_others(tmp_path):
    long = "def read():\n" + "".join(f"    a{n} = int(input()) * {n}\n" for n in range(40)) + "    return a3\n"
    small = [f"def last(x):\n    {body}\nprint(last(read()))" for body in ("return x", "print('no')", "return x + 0")]
    places = {}
    for index, end in enumerate(small):
        made = rated(make_problem(), [0.5], index, programs=[long + end])
        places[made.trajectory_id] = (index, made)
    version = make_dataset(tmp_path / "d", [make_problem()], [made for _, made in places.values()])
    (cluster,) = find_duplicates(version, TRAJECTORIES)
    assert {places[row_id][0] for row_id in (cluster.kept, *cluster.near)} == {0, 2}
    assert min(cluster.near.values()) > 0.9


@pytest.mark.parametrize(("shared", "is_duplicate"), [(0, True), (1, False), (5, False), (6, True), (10, True)])
def test_problems_that_share_a_few_of_their_tests_are_no_near_duplicates(tmp_path, shared, is_duplicate):
    one = [stdin_test(f"{n}\n", f"{n % 7}\n") for n in range(10)]
    other = [stdin_test(f"{n}\n", f"{n % 7}\n") for n in range(10 - shared, 25)]
    version = make_dataset(tmp_path / "d", [alike("a", one), alike("b", other, "and one more")])
    assert bool(find_duplicates(version, PROBLEMS)) is is_duplicate
    assert list(alike_problems(version, 0.8)) == [("a", "b")]  # which a split keeps on one side all the same


@pytest.mark.parametrize(
    ("names", "is_duplicate"),
    [
        (("first_of", "last_of"), False),
        (("first_of", "First_Of"), True),
        (("Solution().firstOf", "first_of"), True),
        (("first_of", None), True),
    ],
)
def test_functions_of_two_names_are_no_near_duplicates_but_stay_together(tmp_path, names, is_duplicate):
    problems = [
        alike(
            problem_id,
            [call_test([[n, n + 1, n + 2]], n % 3) for n in range(6)],
            problem_id,
            judge=Judge(entry_point=name),
        )
        for problem_id, name in zip("ab", names, strict=True)
    ]
    version = make_dataset(tmp_path / "d", problems)
    assert bool(find_duplicates(version, PROBLEMS)) is is_duplicate
    assert list(alike_problems(version, 0.8)) == [("a", "b")]


@pytest.mark.parametrize(
    ("names", "tests", "are_alike"),
    [
        (("is_even", "is_short_month"), [call_test([n], n == 2) for n in (1, 2, 3)], False),
        (("is_even", "is_Even"), [call_test([n], n == 2) for n in (1, 2, 3)], True),
        ((None, None), [stdin_test(f"{n}\n", f"{n == 2}\n") for n in (1, 2, 3)], False),
        ((None, None), [stdin_test(f"{n} {n + 1} {n + 2}\n", f"{n % 3}\n") for n in (1, 2, 3)], True),
    ],
)
def test_a_few_small_tests_vouch_for_a_copy_in_other_words_only_under_its_name(tmp_path, names, tests, are_alike):
    problems = [
        {
            **make_problem(problem_id, tests, Judge(entry_point=name)).to_row(),
            "statement": " ".join(f"word_{n}" for n in words),
        }
        for problem_id, name, words in zip("ab", names, (range(40), range(10, 50)), strict=True)
    ]
    version = make_dataset(tmp_path / "d", problems)
    assert bool(find_duplicates(version, PROBLEMS)) is are_alike
    assert bool(alike_problems(version, 0.8)) is are_alike


def test_programs_of_other_turns_and_other_problems_are_not_mixed_up(tmp_path):
    problems = [make_problem("p0"), make_problem("p1")]
    other = "print(sorted(input().split())[::-1])"
    trajectories = [
        rated(problems[0], [0.5, 0.5], 0, programs=[LOOP, other]),
        rated(problems[0], [0.5, 0.5], 1, programs=[other, LOOP]),
        rated(problems[1], [0.5, 0.5], 0, programs=[LOOP, other]),
    ]
    assert find_duplicates(make_dataset(tmp_path / "d", problems, trajectories), TRAJECTORIES) == []


def test_exact_copies_of_a_near_duplicate_go_with_it_and_the_report_lists_all(tmp_path):
    near = LOOP + "\nprint()"
    trajectories = [rated(make_problem(), [0.5], n, programs=[each]) for n, each in enumerate([LOOP, LOOP, near, near])]
    config = DedupConfig(("trajectories",), near=True, threshold=0.6)
    clusters = find_duplicates(make_dataset(tmp_path / "d", [make_problem()], trajectories), config)
    write_report(tmp_path / "report.jsonl", (cluster.to_json() for cluster in clusters))
    (line,) = (tmp_path / "report.jsonl").read_text().splitlines()
    fields = json.loads(line)
    listed = [fields["kept"], *fields["exact"], *fields["near"]]
    assert sorted(listed) == sorted(made.trajectory_id for made in trajectories)
    assert len(fields["exact"]) == 1 and set(fields["near"].values()) == {round(clusters[0].near[listed[-1]], 4)}


@pytest.mark.parametrize("threshold", [0.0, 0.29, 1.1, float("nan")])
def test_a_threshold_that_is_no_similarity_is_refused(threshold):
    with pytest.raises(InputError, match="threshold"):
        DedupConfig(threshold=threshold)


def test_names_and_the_order_of_functions_make_no_difference_to_the_near_form():
    one = "def f(x):\n    return x + 1\n\ndef g(y):\n    return f(y) * 2\nprint(g(int(input())))"
    other = "def b(u):\n    return a(u) * 2\ndef a(v):\n    return v + 1\nprint(b(int(input())))"
    parts = [sorted(map(str.split, near_form(normalise_program(program)))) for program in (one, other)]
    assert parts[0] == parts[1] and len(parts[0]) == 3


def test_a_chain_of_small_differences_does_not_join_its_ends():
    words = [f"w{n}" for n in range(100)]
    rows = [" ".join(words[start : start + 40]) for start in range(0, 40, 4)]
    with open_sketches(1, 0.8) as sketches:
        sketches.add(rows)
        found, kept, similarity = near_duplicates(sketches, np.arange(len(rows)), lambda _l, _r, alike: alike >= 0.8)
    assert [(row, leader) for row, leader in zip(found, kept, strict=True)] == [(1, 0), (3, 2), (5, 4), (7, 6), (9, 8)]
    assert similarity == pytest.approx(36 / 44)


def test_a_huge_cluster_costs_one_comparison_per_row_and_any_portions_give_the_same():
    draw = Random(0)
    base = [f"w{n}" for n in range(80)]
    rows = [" ".join([*base, f"x{draw.randrange(9)}"]) for _ in range(10_000)]
    outcomes = []
    for portion in (10_000, 700):
        compared = []
        with open_sketches(2, 0.8) as sketches:
            for first in range(0, len(rows), portion):
                sketches.add(rows[first : first + portion])

            def accept(left, right, similarity, compared=compared):
                compared.append(len(left))
                return similarity >= 0.8

            outcomes.append([part.tolist() for part in near_duplicates(sketches, np.arange(len(rows)), accept)])
        assert sum(compared) < 1.1 * len(rows)
    assert outcomes[0] == outcomes[1] and len(outcomes[0][0]) == 9_999
