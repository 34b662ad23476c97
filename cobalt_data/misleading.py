"""Feedback that is no lie about a test but is told about the wrong program, or with the wrong verdict.

- `stale`: what another program of the same problem was told, at another turn or in another trajectory with the same template,
  as if a cache had answered. It is the truth about that program.
- `misreport`: a program that passes all public tests is told that it fails one of them, with a wrong answer or beyond its time.
  Input, output and expectation are shown as they are: only the verdict lies.

Neither contradicts an expectation that the conversation has shown. Nothing is executed. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cobalt_data.ids import derive_seed
from cobalt_data.perturbation import public_tests
from cobalt_data.rows import Prompt, PublicOutcome, Turn
from cobalt_data.shown import EXPECTED_FIELD, Feedback, expected
from sandbox import Verdict

STALE, MISREPORT = "stale", "misreport"

NO_OTHER_FEEDBACK = "no other program of its problem was told anything else"
NOT_PASSING = "its last program does not pass all public tests"

FALSE_VERDICTS = (Verdict.WRONG_ANSWER, Verdict.TIME_LIMIT)


@dataclass(frozen=True, slots=True)
class Told:
    """A feedback, and what is recorded of it besides kind, seed and original."""

    feedback: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Said:
    """What a program of a trajectory was told, in the words of the template of that hash."""

    trajectory_id: str
    turn: int
    program: str | None
    feedback: str
    template_hash: str


def stale(prompt: Prompt, turns: Sequence[Turn], said: Sequence[Said], template_hash: str, seed: int) -> Told | str:
    """Another program's feedback, or why there is none. `said` is all that was said on the prompt's problem."""
    program, original = turns[prompt.turn - 1].program, prompt.prompt[-1]["content"]
    others: dict[str, Said] = {}
    for each in said:
        differs = each.program not in (None, program) and each.feedback not in ("", original)
        if differs and each.template_hash == template_hash:
            others.setdefault(each.feedback, each)
    if not others:
        return NO_OTHER_FEEDBACK
    chosen = others[sorted(others)[derive_seed(seed, STALE, "feedback", prompt.prompt_id) % len(others)]]
    told_to = {"trajectory_id": chosen.trajectory_id, "turn": chosen.turn}
    return Told(chosen.feedback, {"tests": [], "true_outputs": [], "told_to": told_to})


def misreport(prompt: Prompt, turns: Sequence[Turn], feedback: Feedback, seed: int) -> Told | str:
    """The report of a failure that there was not, or why there is none."""
    outcomes, tests = turns[prompt.turn - 1].public, public_tests(prompt)
    if not outcomes or any(outcome.verdict is not Verdict.PASSED for outcome in outcomes):
        return NOT_PASSING
    draw = derive_seed(seed, MISREPORT, "test", prompt.prompt_id)
    position, verdict = draw % len(outcomes), FALSE_VERDICTS[draw // len(outcomes) % len(FALSE_VERDICTS)]
    reported = [_reported(outcome, verdict, place == position) for place, outcome in enumerate(outcomes)]
    test = tests[position]
    true_outputs = [expected(test)] if test["kind"] in EXPECTED_FIELD else []
    facts = {"tests": [position], "true_outputs": true_outputs, "false_verdict": verdict.value}
    return Told(feedback(tests, reported, prompt.judge), facts)


def _reported(outcome: PublicOutcome, verdict: Verdict, is_chosen: bool) -> PublicOutcome:
    return replace(outcome, verdict=verdict) if is_chosen else outcome
