"""One turn of a conversation: a program goes to the sandbox, and what comes of it is verdicts, pass rates and feedback.

All tests are run, public and hidden. Where the public tests of a problem lie (`cobalt_data.perturbation`), feedback and stored
verdicts are what a second run, against these, says; all pass rates are those of the true tests.

Left out: a sandbox that fails. Its exception reaches whoever asks a run for its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from cobalt_data.engines.base import Completion
from cobalt_data.feedback import elide, without_addresses
from cobalt_data.perturbation import Lie
from cobalt_data.rows import Problem, PublicOutcome, Turn
from cobalt_data.templates import Template
from sandbox import Pool, ProgramResult, TestResult, Verdict

STORED_CHARS = 1000  # of each output of a public test; feedback shows less


def judge(program: str | None, problem: Problem, lie: Lie | None, pool: Pool) -> list[Future[ProgramResult]]:
    """The run against all tests and, where tests lie, the one against these."""
    runs = [pool.submit(program, problem.tests, problem.judge)]
    if lie is not None:
        runs.append(pool.submit(program, lie.told(problem.public_tests)[: len(lie.tests)], problem.judge))
    return runs


def judged_turn(
    problem: Problem,
    lie: Lie | None,
    completion: Completion,
    program: str | None,
    results: Sequence[ProgramResult],
    template: Template,
) -> Turn:
    """The turn of a completion whose program gave these `results`, in the order of `judge`."""
    outcomes = [public_outcome(test) for test in results[0].tests]
    public = [outcome for test, outcome in zip(problem.tests, outcomes, strict=True) if test["public"]]
    hidden = [outcome for test, outcome in zip(problem.tests, outcomes, strict=True) if not test["public"]]
    told, feedback = _tell(problem, lie, public, results[1:], template)
    return Turn(
        program=program,
        public=told,
        public_pass_rate=_pass_rate(public) if public else None,
        hidden_pass_rate=_pass_rate(hidden) if hidden else None,
        pass_rate=_pass_rate(outcomes),
        feedback=feedback,
        finish_reason=completion.finish_reason,
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
    )


def public_outcome(result: TestResult) -> PublicOutcome:
    """What may be stored and shown of one test's result."""
    return PublicOutcome(
        verdict=result.verdict,
        stdout=_stored(result.stdout),
        stderr=_stored(result.stderr),
        returned=None if result.returned is None else _stored(result.returned),
    )


def _tell(
    problem: Problem,
    lie: Lie | None,
    public: Sequence[PublicOutcome],
    against_lies: Sequence[ProgramResult],
    template: Template,
) -> tuple[tuple[PublicOutcome, ...], str]:
    """What each public test is said to have said, in their true order, and the feedback."""
    tests = problem.public_tests
    if lie is None:
        return tuple(public), template.feedback(tests, public, problem.judge)
    told = list(public)
    for position, result in zip(lie.tests, against_lies[0].tests, strict=True):
        told[position] = public_outcome(result)
    return tuple(told), template.feedback(
        lie.told(tests), [told[position] for position in lie.order(len(tests))], problem.judge
    )


def _stored(text: str) -> str:
    return elide(without_addresses(text), STORED_CHARS)


def _pass_rate(outcomes: Sequence[PublicOutcome]) -> float:
    return sum(outcome.verdict is Verdict.PASSED for outcome in outcomes) / len(outcomes)
