"""Decontamination: planted leaks of every kind are found, look-alikes are not, and what was made from a leak goes with it."""

import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from builders import call_test, keep_first, make_dataset, make_problem, rated, stdin_test

from cobalt_data.against import Against, load_against
from cobalt_data.commit import commit
from cobalt_data.dataset import open_version
from cobalt_data.decontaminate import DecontaminateConfig, decontaminate, find_leaks, leak_line
from cobalt_data.embedded import embedded_problems
from cobalt_data.errors import CobaltError, InputError
from cobalt_data.replay import replay
from cobalt_data.reports import write_report
from cobalt_data.rows import Problem

DATA = Path(__file__).parents[2].parent / "shared" / "data"
WORDS = [
    "harbour",
    "lantern",
    "mosaic",
    "gravel",
    "whistle",
    "orchard",
    "pendulum",
    "velvet",
    "compass",
    "thicket",
    "marble",
    "saddle",
    "beacon",
    "copper",
    "feather",
    "glacier",
    "hammock",
    "kettle",
    "meadow",
    "needle",
    "oyster",
    "pebble",
    "quarry",
    "ribbon",
    "spiral",
    "tunnel",
    "umbrella",
    "walnut",
    "yonder",
    "zephyr",
    "anchor",
    "basket",
    "candle",
    "dagger",
    "ember",
    "falcon",
    "garland",
    "hollow",
    "ivory",
    "jungle",
]


def task(number, words=60):
    """A statement that shares nothing but boilerplate with the others."""
    drawn = random.Random(number)
    told = " ".join(drawn.choice(WORDS) for _ in range(words))
    return f"You are given a list of integers. {told}. The first line contains a single integer n. Print one integer."


def samples_for(number, size=30):
    drawn = random.Random(f"tests {number}")
    return [
        stdin_test(" ".join(str(drawn.randrange(1000)) for _ in range(size)) + "\n", f"{number}\n") for _ in range(3)
    ]


def known(problem_id, number, **changes):
    made = make_problem(f"{problem_id}{number}", tests=samples_for(f"{problem_id}{number}"))
    return replace(
        made, **{"statement": task(f"{problem_id}{number}"), "title": f"the {number} of {problem_id}", **changes}
    )


BENCHMARK = [known("b", number, source="judge", metadata={"origin_id": str(number)}) for number in range(40)]
INNOCENT = [known("p", number) for number in range(200)]


def leaks_of(tmp_path, problems, benchmark=BENCHMARK, coverage=0.3):
    version = make_dataset(tmp_path / "d", [*INNOCENT, *problems])
    return find_leaks(version, Against("made", [problem.to_row() for problem in benchmark]), coverage)


def found(leaks):
    return {leak.problem_id: (leak.against, leak.evidence) for leak in leaks}


def test_a_statement_that_is_copied_is_found_however_it_is_spaced_titled_and_tested(tmp_path):
    text = BENCHMARK[3].statement
    copies = [make_problem(name) for name in ("verbatim", "shouted", "within")]
    texts = (text, text.upper().replace(" ", "\n  "), f"{task('other')} {text} {task('another')}")
    copies = [replace(copy, statement=each) for copy, each in zip(copies, texts, strict=True)]
    leaks = leaks_of(tmp_path, copies)
    assert found(leaks) == {copy.problem_id: ("b3", ("statement",)) for copy in copies}
    assert all(leak.coverage == 1 for leak in leaks)


def test_a_statement_reworded_around_long_spans_is_found_with_the_spans(tmp_path):
    words = BENCHMARK[7].statement.split()
    for place in range(9, len(words), 12):
        words[place] = "otherwise"
    copy = replace(make_problem("reworded"), statement=" ".join(words))
    (leak,) = leaks_of(tmp_path, [copy])
    assert leak.against == "b7" and 0.3 <= leak.coverage < 0.8
    for span in leak.spans:
        assert copy.statement[span.start : span.end] == span.text
        assert BENCHMARK[7].statement[span.against_start : span.against_end].split() == span.text.split()
    assert sum(len(span.text.split()) for span in leak.spans) > 40


def test_a_leak_of_which_the_dataset_holds_many_variants_is_found_in_each(tmp_path):
    told = f"Variant {{}} of this one. {BENCHMARK[3].statement} It ends with {{}}."
    variants = [
        replace(make_problem(f"variant{number}"), statement=told.format(number, number)) for number in range(30)
    ]
    leaks = leaks_of(tmp_path, variants)
    assert found(leaks) == {variant.problem_id: ("b3", ("statement",)) for variant in variants}
    retested = [known("q", number, tests=tuple(samples_for("b9")[:2])) for number in range(5)]
    assert found(leaks_of(tmp_path / "s", retested)) == {each.problem_id: ("b9", ("samples",)) for each in retested}


def test_a_frame_around_all_statements_and_a_test_that_many_tasks_have_are_no_leak(tmp_path):
    frame = task("frame", 80)
    framed = [
        [replace(known(side, n), statement=f"{frame} {task(f'{side}{n}', 9)}") for n in range(number)]
        for side, number in (("q", 40), ("c", 5))
    ]
    natural = [stdin_test(" ".join(map(str, range(30))), "435\n")]
    retested = [known("r", number, tests=tuple(natural)) for number in range(5)]
    benchmark = [*framed[1], known("c", 9, tests=tuple(natural))]
    assert leaks_of(tmp_path, [*framed[0], *retested], benchmark) == []


def test_boilerplate_and_a_few_shared_words_are_no_leak(tmp_path):
    drawn = random.Random(0)
    near = [
        replace(make_problem(f"near{number}"), statement=task(f"near{number}"), title=BENCHMARK[number].title)
        for number in range(40)
    ]
    shuffled = BENCHMARK[1].statement.split()
    drawn.shuffle(shuffled)
    glimpse = f"{task('glimpse')} {' '.join(BENCHMARK[2].statement.split()[8:18])}"
    others = [replace(make_problem(name), statement=text) for name, text in (("s", " ".join(shuffled)), ("g", glimpse))]
    assert leaks_of(tmp_path, [*near, *others]) == []


def test_where_a_problem_comes_from_gives_it_away(tmp_path):
    url = {"url": "https://www.judge.org/p/7/"}
    benchmark = [*BENCHMARK, known("c", 0, metadata={"platform": "Judge", **url}, title="A. Seven Bridges")]
    copies = [
        known("q", 1, source="judge", metadata={"origin_id": "5"}),
        known("q", 2, metadata={"url": "http://judge.org/p/7"}),
        known("q", 3, metadata={"platform": "judge"}, title="Seven bridges"),
        known("q", 4, metadata={"origin_id": "5"}),  # of another platform
        known("q", 5, metadata={"platform": "elsewhere"}, title="Seven bridges"),
    ]
    leaks = found(leaks_of(tmp_path, copies, benchmark))
    assert leaks == {"q1": ("b5", ("identity",)), "q2": ("c0", ("identity",)), "q3": ("c0", ("identity",))}


def test_titles_of_one_word_or_of_several_problems_give_nothing_away(tmp_path):
    benchmark = [
        known("c", number, source="judge", title=title) for number, title in enumerate(("Game", "Big sum", "Big sum"))
    ]
    copies = [known("q", number, source="judge", title=title) for number, title in enumerate(("Game", "Big sum"))]
    assert leaks_of(tmp_path, copies, benchmark) == []


def test_the_same_samples_are_found_whatever_else_differs(tmp_path):
    copy = known("q", 0, tests=tuple(samples_for("b9")[:1] + samples_for("q")))
    (leak,) = leaks_of(tmp_path, [copy])
    assert (leak.against, leak.evidence, leak.samples) == ("b9", ("samples",), 1)


def test_samples_that_meet_by_chance_are_no_leak(tmp_path):
    trivial = [
        stdin_test("5\n", "120\n"),
        stdin_test("1 2\n", "3\n"),
        call_test([[1, 2, 3]], 6),
        call_test(["a"], True),
    ]
    common = samples_for("common")
    benchmark = [known("c", number, tests=(*trivial, *common[:1], *samples_for(number, 3)[:1])) for number in range(5)]
    copies = [known("q", number, tests=(*trivial, *common[:1])) for number in range(2)]
    single = known("q", 9, tests=tuple(samples_for(0, 8)[:1]))
    benchmark[0] = replace(benchmark[0], tests=(*benchmark[0].tests, *single.tests))
    assert leaks_of(tmp_path, [*copies, single], benchmark) == []


def test_what_was_made_from_a_leak_goes_with_it_and_the_counts_say_so(tmp_path):
    copy = replace(make_problem("copy"), statement=BENCHMARK[0].statement)
    version = make_dataset(tmp_path / "d", [*INNOCENT, copy], [rated(copy, [0.5, 1.0]), rated(INNOCENT[0], [0.5, 1.0])])
    against = Against("made", [problem.to_row() for problem in BENCHMARK])
    made = decontaminate(version, DecontaminateConfig(against.hash), against)
    clean = commit(made.change, [version])
    assert clean.manifest.counts["problems"].dropped == {"in what it was compared with": 1}
    assert clean.manifest.counts["trajectories"].dropped == {"its problem was removed": 1}
    assert clean.manifest.recorded["evidence"] == {"statement": 1}
    write_report(tmp_path / "report", map(asdict, made.leaks))
    (line,) = (tmp_path / "report").read_text().splitlines()
    assert json.loads(line)["spans"][0]["text"] == BENCHMARK[0].statement.rstrip(".")
    assert leak_line(made.leaks[0]).startswith("copy is b0 by statement")


def test_the_outcome_does_not_depend_on_order_and_can_be_replayed(tmp_path):
    copies = [replace(make_problem(f"copy{number}"), statement=BENCHMARK[number].statement) for number in range(4)]
    make_dataset(tmp_path / "bench", BENCHMARK)
    against, ids = load_against(str(tmp_path / "bench")), set()
    for name, step in (("a", 1), ("b", -1)):
        version = make_dataset(tmp_path / name, [*INNOCENT, *copies][::step])
        clean = commit(decontaminate(version, DecontaminateConfig(against.hash), against).change, [version])
        assert replay(clean).id == clean.id
        ids.add(clean.id)
    assert len(ids) == 1 and open_version(tmp_path / "a").manifest.rows("problems") == 200


def test_it_is_replayed_wherever_one_stands_when_the_other_dataset_has_moved_on(tmp_path, monkeypatch):
    leaking = [*INNOCENT, replace(make_problem("copy"), statement=BENCHMARK[0].statement)]
    bench, version = make_dataset(tmp_path / "bench", BENCHMARK), make_dataset(tmp_path / "d", leaking)
    monkeypatch.chdir(tmp_path)
    against = load_against("bench")
    clean = commit(decontaminate(version, DecontaminateConfig(against.hash), against).change, [version])
    assert clean.manifest.recorded["against"] == f"bench@{bench.id}"
    keep_first(bench, 3)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert replay(clean, tmp_path / "far" / "again").id == clean.id
    assert replay(open_version(tmp_path / "far" / "again")).id == clean.id
    (tmp_path / "bench").rename(tmp_path / "moved")
    with pytest.raises(
        InputError, match=f"compared with version {bench.id}, which is not in .*: say with --source where"
    ):
        replay(clean)
    assert replay(clean, source=f"{tmp_path / 'moved'}@{bench.id}").id == clean.id
    with pytest.raises(InputError, match=r"is not what .* was compared with: say with --source where"):
        replay(clean, source=str(tmp_path / "moved"))


def test_the_id_is_that_of_what_was_compared_with_wherever_it_lies(tmp_path, monkeypatch):
    bench, file = make_dataset(tmp_path / "bench", BENCHMARK), tmp_path / "bench.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in bench.rows("problems")))
    other, version = make_dataset(tmp_path / "far" / "other", BENCHMARK[::-1]), make_dataset(tmp_path / "d", INNOCENT)
    given = [load_against(name) for name in (str(file), bench.reference, other.reference)]
    made = [commit(decontaminate(version, DecontaminateConfig(each.hash), each).change, [version]) for each in given]
    assert len({each.id for each in made}) == 1
    file.unlink()
    with pytest.raises(InputError, match=r"was compared with .* or say with --source where it is"):
        replay(made[0])
    assert replay(made[0], source=other.reference).id == made[0].id


def dated(day, number):
    return known("d", number, metadata={"contest_date": day} if day else {})


@pytest.mark.parametrize(
    ("window", "left"),
    [
        ({"after": "2024-01-01"}, {"d1", "d2", "d3"}),
        ({"before": "2024-01-01"}, {"d0", "d3"}),
        ({"after": "2023-12-31", "before": "2024-06-01"}, {"d0", "d1", "d3"}),
        ({"after": "2024-01-01", "drop_undated": True}, {"d1", "d2"}),
    ],
)
def test_a_window_keeps_the_contests_within_it(tmp_path, window, left):
    problems = [dated(day, number) for number, day in enumerate(("2023-12-31", "2024-01-01", "2024-06-01", None))]
    version = make_dataset(tmp_path / "d", problems)
    clean = commit(decontaminate(version, DecontaminateConfig(**window)).change, [version])
    assert {row["problem_id"] for row in clean.rows("problems")} == left
    assert clean.manifest.recorded["undated"] == ("d3" in left)


def test_what_is_no_day_is_no_date(tmp_path):
    problems = [dated(day, number) for number, day in enumerate(("99-01-01", "Jan 5, 2024", "2024-1-5", "0099-01-01"))]
    version = make_dataset(tmp_path / "d", [*problems, dated("2024-01-05T00:00:00", 4)])
    made = decontaminate(version, DecontaminateConfig(after="2024-01-01"))
    assert made.change.removed == {"problems": ["d3"]} and made.change.recorded == {"undated": 3}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"coverage": 0.0, "against": "x"}, "coverage"),
        ({"after": "January"}, "after"),
        ({"after": "2024-02-30"}, "after"),
        ({"after": "2024-2-3"}, "after"),
        ({"before": "20240203"}, "before"),
        ({"after": "2024-01-02", "before": "2024-01-02"}, "empty"),
        ({"against": "x", "drop_undated": True}, "drop_undated"),
        ({}, "nothing to do"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        DecontaminateConfig(**wrong)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")
def test_the_embedded_problems_are_not_in_humaneval_and_planted_copies_are_found(tmp_path):
    against = load_against(str(DATA / "humaneval.jsonl.gz"))
    embedded = [Problem.from_row(row) for row in embedded_problems()]
    planted = [
        replace(embedded[number], problem_id=f"planted/{number}", statement=row["statement"])
        for number, row in enumerate(against.rows)
    ]
    version = make_dataset(tmp_path / "d", [*embedded, *planted])
    leaks = find_leaks(version, against, 0.3)
    assert {leak.problem_id for leak in leaks} == {problem.problem_id for problem in planted}


def test_what_cannot_be_compared_with_is_one_clear_line(tmp_path):
    strange = tmp_path / "strange.jsonl"
    strange.write_text('{"a": 1}\n')
    blank = tmp_path / "blank.jsonl"
    blank.write_text("\n")
    for name, words in (
        (str(strange), "no format that cobalt knows"),
        (f"{strange}@x", "a file has no versions"),
        (str(blank), "does not begin with a row"),
        (str(tmp_path / "none"), "no file, no dataset"),
    ):
        with pytest.raises(InputError, match=words):
            load_against(name)


def test_a_benchmark_out_of_reach_says_which_file_to_give(hub):
    with pytest.raises(CobaltError, match=r"give a file instead: --against HumanEval\.jsonl\.gz"):
        load_against("humaneval")
