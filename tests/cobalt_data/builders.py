"""Small problems, trajectories and datasets for the tests of the data layer."""

from cobalt_data.commit import Change, commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dataset import table_from_rows
from cobalt_data.judged_turns import public_outcome
from cobalt_data.rows import Problem, Prompt, PublicOutcome, Trajectory, Turn
from cobalt_data.templates import Template
from sandbox import Judge, Verdict

TEMPLATE = Template.load("paper")


def count_words(chat):
    return sum(len(message["content"].split()) for message in chat)


def stdin_test(text, output, public=True):
    return {"kind": "stdin", "public": public, "input": text, "output": output}


def call_test(args, expected, public=True):
    return {"kind": "call", "public": public, "args": args, "kwargs": {}, "expected": expected}


def make_problem(problem_id="p0", tests=None, judge=None, split="train", difficulty=None):
    """By default: double the number. Four public tests, two hidden ones. No two statements are nearly the same."""
    if tests is None:
        tests = [stdin_test(f"{n}\n", f"{2 * n}\n", public=n < 5) for n in range(1, 7)]
    return Problem(
        problem_id=problem_id,
        source="tests",
        title=problem_id,
        difficulty=difficulty,
        statement=f"Problem {problem_id}: read a number and print its double. {' '.join(f'{problem_id}_{n}' for n in range(24))}",
        starter_code="",
        tests=tuple(tests),
        judge=judge or Judge(time_limit_s=2.0),
        solutions=(),
        metadata={},
        split=split,
    )


def make_turn(program="print(1)", pass_rate=0.0, public=0.0, feedback="Your code fails a public test."):
    """A turn whose rates are given, not measured."""
    verdict = Verdict.PASSED if public == 1.0 else Verdict.WRONG_ANSWER
    outcomes = () if public is None else (PublicOutcome(verdict, "1\n", "", None),)
    return Turn(program, outcomes, public, pass_rate, pass_rate, feedback, "stop", 10, 5)


def make_trajectory(problem, turns, sample_index=0, model="m", seed=0):
    messages = list(TEMPLATE.first_turn(problem))
    for turn in turns:
        answer = "no code" if turn.program is None else f"```python\n{turn.program}\n```"
        messages.append({"role": "assistant", "content": answer})
        if turn.feedback:
            messages.append({"role": "user", "content": turn.feedback})
    return Trajectory(
        problem_id=problem.problem_id,
        sample_index=sample_index,
        model=model,
        model_revision="r",
        engine="tests",
        sampling={"temperature": 0.6, "template": TEMPLATE.name, "template_hash": TEMPLATE.hash},
        seed=seed,
        perturbation=None,
        messages=tuple(messages),
        turns=tuple(turns),
        split=problem.split,
    )


def rated(problem, rates, sample_index=0, public=None, programs=None):
    """A trajectory with these pass rates; its programs differ from those of every other sample unless given."""
    programs = programs or [f"print({sample_index}, {turn})" for turn in range(len(rates))]
    public = rates if public is None else public
    turns = [
        make_turn(program, rate, shown, "" if shown is None else f"feedback {sample_index} {turn}")
        for turn, (program, rate, shown) in enumerate(zip(programs, rates, public, strict=True))
    ]
    return make_trajectory(problem, turns, sample_index)


def make_dataset(path, problems, trajectories=(), prompts=()):
    """A committed version that holds these rows, typed or as dictionaries."""
    given = {"problems": problems, "trajectories": trajectories, "prompts": prompts}
    tables = {
        name: table_from_rows(name, [row if isinstance(row, dict) else row.to_row() for row in rows])
        for name, rows in given.items()
        if rows
    }
    return commit(Change("import", {}, None, tables, {}), dataset=path)


def make_all_tables(path):
    """A version of twelve problems on two sides, with a trajectory and a prompt for each."""
    problems = [make_problem(f"p{number}", split="train" if number % 3 else "test") for number in range(12)]
    trajectories = [rated(problem, [0.5, 1.0]) for problem in problems]
    prompts = [
        Prompt(made.trajectory_id, made.problem_id, 1, made.messages[:-2], (), Judge(), 0.5, None, 9, made.split)
        for made in trajectories
    ]
    return make_dataset(path, problems, trajectories, prompts)


def keep_first(version, rows):
    """A child of `version` that holds its first problems alone."""
    table = version.table("problems").slice(0, rows)
    return commit(Change("narrow", {"rows": rows}, None, {"problems": table}, {}), [version])


def prompts_of(change):
    """The prompts of the table that a change makes, or those that it adds to one."""
    made = {**change.tables, **change.added}.get("prompts")
    rows = [] if made is None else made.to_pylist()
    return sorted(map(Prompt.from_row, rows), key=lambda prompt: prompt.prompt_id)


def executed(problem, programs, pool, sample_index=0):
    """A trajectory of these programs as collection makes it: really judged, with the template's feedback."""
    turns = []
    for program in programs:
        result = pool.submit(program, problem.tests, problem.judge).result()
        told = [public_outcome(test) for test in result.tests]
        passed = [outcome.verdict is Verdict.PASSED for outcome in told]
        public = tuple(outcome for test, outcome in zip(problem.tests, told, strict=True) if test["public"])
        share = sum(outcome.verdict is Verdict.PASSED for outcome in public) / len(public) if public else None
        feedback = TEMPLATE.feedback(problem.public_tests, public, problem.judge)
        rate = sum(passed) / len(passed)
        turns.append(Turn(program, public, share, rate, rate, feedback, "stop", 10, 5))
    return make_trajectory(problem, turns, sample_index)


def executed_and_cut(directory, problems, programs, pool, **settings):
    """A version with one really executed trajectory per problem and list of programs, cut at every turn."""
    trajectories = [executed(each, turns, pool, index) for each in problems for index, turns in enumerate(programs)]
    version = make_dataset(directory, problems, trajectories)
    config = CutConfig("words", select="all", look_ahead=False, stop_when_passing=False, **settings)
    return commit(cut(version, config, count_words), [version])
