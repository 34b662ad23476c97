"""Sides of problems: stable, by problem, declared ones respected."""

import pytest
from builders import make_dataset, make_problem, rated, stdin_test
from hypothesis import given
from hypothesis import strategies as st

from cli import main
from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.errors import InputError
from cobalt_data.rows import UNSPLIT
from cobalt_data.split import LEFT_OUT, SplitConfig, place, side_of, side_sizes, split

IDS = [f"problem-{number}" for number in range(3000)]


def sides(version):
    return {row["problem_id"]: row["split"] for row in version.rows("problems")}


def test_a_problem_keeps_its_side_when_others_come_and_go(tmp_path):
    problems = [make_problem(problem_id, split=UNSPLIT) for problem_id in IDS[:60]]
    few, many = make_dataset(tmp_path / "few", problems[:20]), make_dataset(tmp_path / "many", problems[::-1])
    in_few = sides(commit(split(few, SplitConfig(seed=5)), [few]))
    in_many = sides(commit(split(many, SplitConfig(seed=5)), [many]))
    assert in_few.items() <= in_many.items()


@given(st.sampled_from(IDS), st.integers(0, 9), st.floats(0, 0.9), st.floats(0, 0.1))
def test_shares_that_trade_between_train_and_validation_leave_the_test_side_alone(problem_id, seed, validation, test):
    some = SplitConfig(train=1 - validation - test, validation=validation, test=test, seed=seed)
    none = SplitConfig(train=1 - test, validation=0, test=test, seed=seed)
    assert (side_of(problem_id, some) == "test") == (side_of(problem_id, none) == "test")


def test_shares_are_met_on_average_and_a_share_of_nothing_is_empty():
    config = SplitConfig(train=0.7, validation=0.3, test=0)
    placed = [side_of(problem_id, config) for problem_id in IDS]
    assert placed.count("test") == 0
    assert abs(placed.count("train") / len(IDS) - 0.7) < 0.03


def test_every_difficulty_sees_the_shares(tmp_path):
    problems = [
        make_problem(one, split=UNSPLIT, difficulty=["easy", "hard"][number % 2]) for number, one in enumerate(IDS)
    ]
    version = make_dataset(tmp_path / "d", problems)
    table = split(version, SplitConfig()).tables["problems"].to_pylist()
    for difficulty in ("easy", "hard"):
        held_out = [row["split"] != "train" for row in table if row["difficulty"] == difficulty]
        assert abs(sum(held_out) / len(held_out) - 0.2) < 0.04


def test_declared_sides_stay_unless_told_to_reassign(tmp_path):
    problems = [make_problem(problem_id, split="test_families") for problem_id in IDS[:50]]
    version = make_dataset(tmp_path / "d", problems)
    assert split(version, SplitConfig()).tables["problems"].equals(version.table("problems"))
    reassigned = side_sizes(split(version, SplitConfig(reassign=True)).tables["problems"])
    assert reassigned["train"] > 0 and "test_families" not in reassigned


def test_another_seed_gives_another_split():
    one, other = SplitConfig(train=0.5, validation=0.25, test=0.25), SplitConfig(0.5, 0.25, 0.25, seed=1)
    assert [side_of(each, one) for each in IDS[:100]] != [side_of(each, other) for each in IDS[:100]]


def test_trajectories_and_prompts_follow_their_problem(tmp_path):
    problems = [make_problem(problem_id, split=UNSPLIT) for problem_id in IDS[:40]]
    version = make_dataset(tmp_path / "d", problems, [rated(problem, [0.0, 1.0]) for problem in problems])
    version = commit(cut(version, CutConfig("words"), len), [version])
    version = commit(split(version, SplitConfig()), [version])
    side = sides(version)
    for table in ("trajectories", "prompts"):
        assert version.manifest.rows(table) >= 40
        assert all(row["split"] == side[row["problem_id"]] for row in version.rows(table))
    assert set(side.values()) == {"train", "validation", "test"}


def test_the_same_split_of_shuffled_rows_is_the_same_version(tmp_path):
    problems = [make_problem(problem_id, split=UNSPLIT) for problem_id in IDS[:30]]
    ids = set()
    for name, rows in (("a", problems), ("b", problems[::-1])):
        version = make_dataset(tmp_path / name, rows)
        ids.add(commit(split(version, SplitConfig()), [version]).id)
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("shares", "field"), [((0.8, 0.1, 0.2), "add up"), ((1.1, -0.1, 0), "train"), ((float("nan"), 0, 1), "train")]
)
def test_impossible_shares_are_refused(shares, field):
    with pytest.raises(InputError, match=field):
        SplitConfig(*shares)


HALVES = SplitConfig(train=0.5, validation=0.25, test=0.25)


def telling(problem_id, words, split=UNSPLIT, inputs=None, answer=1):
    """A problem whose statement is these numbered words; by default no other has its inputs."""
    tests = [stdin_test(f"{inputs or problem_id} {n}\n", f"{answer}{n}\n") for n in range(4)]
    return {
        **make_problem(problem_id, tests, split=split).to_row(),
        "statement": " ".join(f"word_{number}" for number in words),
    }


def test_what_reads_alike_stays_together_even_where_the_tests_want_other_answers(tmp_path):
    groups = [range(100 * group, 100 * group + 40) for group in range(30)]
    problems = [
        telling(f"{copy}-{words[0]}", [*words, copy], inputs="all") for words in groups for copy in (9001, 9002, 9003)
    ]
    problems += [telling(f"other-{words[0]}", words, inputs="all", answer=2) for words in groups]
    version = make_dataset(tmp_path / "d", problems)
    side = sides(commit(split(version, HALVES), [version]))
    for words in groups:
        assert len({side[f"{copy}-{words[0]}"] for copy in (9001, 9002, 9003, "other")}) == 1
    assert set(side.values()) == {"train", "validation", "test"}


def test_a_newcomer_joins_what_it_is_like_and_is_left_out_between_two_sides(tmp_path):
    words = list(range(60))
    problems = [
        telling("old-train", words[:40], "train"),
        telling("old-test", words[8:48], "test"),
        telling("joins", [*words[:40], 98], UNSPLIT),
        telling("bridges", words[4:44], UNSPLIT),
        telling("alone", range(200, 240), UNSPLIT),
    ]
    version = make_dataset(tmp_path / "d", problems)
    change = split(version, SplitConfig(threshold=0.8))
    after = commit(change, [version])
    assert change.recorded["left_out"] == after.manifest.recorded["left_out"] == {"bridges": ["test", "train"]}
    assert after.manifest.counts["problems"].dropped == {LEFT_OUT: 1}
    assert sides(after) == {
        "old-train": "train", "old-test": "test", "joins": "train", "alone": side_of("alone", SplitConfig())
    }  # fmt: skip


def test_copies_across_sides_do_not_move_and_are_counted_and_other_tasks_in_nearly_the_same_words_are_none(tmp_path):
    statements = [range(100 * number, 100 * number + 40) for number in range(4)]
    sides = ("train", "test")
    problems = [telling(f"{side}-{words[0]}", words, side, "all", side) for words in statements[:2] for side in sides]
    problems += [telling(f"near-{n}", [*statements[2], n], side, "all") for n, side in enumerate(sides)]
    problems += [telling(f"other-{n}", [*statements[3], n], side, "all", n) for n, side in enumerate(sides)]
    version = make_dataset(tmp_path / "d", problems)
    stays, moves = split(version, SplitConfig()), split(version, SplitConfig(reassign=True))
    assert stays.tables["problems"].equals(version.table("problems"))
    assert commit(stays, [version]).manifest.recorded["copies_across_sides"] == 3
    assert moves.recorded["copies_across_sides"] == 0


def test_the_command_says_what_to_do_about_copies_across_sides(tmp_path, monkeypatch, capsys):
    make_dataset(tmp_path / "d", [telling(side, range(40), side) for side in ("train", "test")])
    monkeypatch.setattr("sys.argv", ["cobalt", "data", "split", str(tmp_path / "d")])
    with pytest.raises(SystemExit):
        main()
    said = " ".join(capsys.readouterr().err.split())
    assert "copies on two sides, pair by pair: 1." in said and "dedup --near" in said and "--reassign" in said


PROBLEMS = st.sampled_from("abcdefghij")


@given(st.sets(st.tuples(PROBLEMS, PROBLEMS)), st.dictionaries(PROBLEMS, st.sampled_from(["train", "test"])))
def test_whatever_is_alike_no_newcomer_ties_two_sides_and_no_placed_problem_moves(pairs, placed):
    before = {problem: placed.get(problem) for problem in "abcdefghij"}
    pairs = [(one, other) for one, other in pairs if one != other]
    after, left_out = place(before, pairs, HALVES)
    assert placed.items() <= after.items() and after.keys() | left_out.keys() == before.keys()
    assert not after.keys() & left_out.keys() and all(len(found) > 1 for found in left_out.values())
    for one, other in pairs:
        if one in after and other in after and not (one in placed and other in placed):
            assert after[one] == after[other]
    assert place(before, [(other, one) for one, other in pairs[::-1]], HALVES) == (after, left_out)


@given(st.sets(st.tuples(PROBLEMS, PROBLEMS)), st.sets(PROBLEMS))
def test_a_problem_keeps_its_side_when_the_dataset_grows(pairs, first):
    known = [(one, other) for one, other in pairs if {one, other} <= first and one != other]
    early, _ = place(dict.fromkeys(first), known, HALVES)
    grown = {problem: early.get(problem) for problem in "abcdefghij"}
    later, _ = place(grown, [pair for pair in pairs if pair[0] != pair[1]], HALVES)
    assert early.items() <= later.items()
