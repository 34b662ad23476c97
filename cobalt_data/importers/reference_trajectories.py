"""The conversations that a row of the reference code carries, as trajectories.

A row has `conversations` (one chat per sample: system, user, then program and feedback in turn), `public_exec_results` and
`public_pass_rates` (by turn, then by sample) and, once it was evaluated, `all_pass_rates` (by sample, then by turn), which in
spite of its name is the share of the *hidden* tests. What the rows do not say is left open or comes from the user: the
model, its sampling and its tokens. Where they could be read in two ways, this is how they are read:

- `public_pass_rates` is by turn first, as that code writes it, unless only the other order fits.
- A failed test's verdict is told from its feedback: a time-out, a traceback, else a wrong answer.
- Conversations of a row with `modified_test_cases` were led under those tests, and record that.
- A turn without public results has them where its pass rate leaves no doubt, else it has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cobalt_data.importers.fields import BadRow, Fields, as_text, parsed, record, wrong_type
from cobalt_data.programs import extract_program
from cobalt_data.rows import Message, Problem, PublicOutcome, Trajectory, Turn
from sandbox import Test, Verdict

ENGINE = "reference"
UNKNOWN = "unknown"
SWAPPED = "swap"


def to_trajectories(row: Fields, problem: Problem, model: str) -> list[Trajectory]:
    """Raises BadRow where the parts of the row do not fit each other."""
    conversations = parsed(row.get("conversations"), "conversations")
    if conversations is None:
        return []
    chats = [_chat(chat, f"conversations[{index}]") for index, chat in enumerate(_list(conversations, "conversations"))]
    turns = [sum(message["role"] == "assistant" for message in chat) for chat in chats]
    hidden = _rates(row, "all_pass_rates", turns)
    public = _by_sample(parsed(row.get("public_pass_rates"), "public_pass_rates"), turns)
    results = _by_sample(parsed(row.get("public_exec_results"), "public_exec_results"), turns)
    if problem.hidden_tests and hidden is None:
        raise BadRow(
            "not evaluated", "field 'all_pass_rates' is missing: run the hidden tests of the conversations first"
        )
    perturbation = problem.metadata.get("perturbation")
    return [
        Trajectory(
            problem_id=problem.problem_id,
            sample_index=index,
            model=model,
            model_revision=UNKNOWN,
            engine=ENGINE,
            sampling={"turns": turns[index]},
            seed=0,
            perturbation=perturbation,
            messages=tuple(chat),
            turns=tuple(
                _turn(
                    chat,
                    turn,
                    problem,
                    None if hidden is None else hidden[index][turn],
                    None if public is None else _share(public[index][turn], f"public_pass_rates[{turn}][{index}]"),
                    None if results is None else results[index][turn],
                )
                for turn in range(turns[index])
            ),
            split=problem.split,
        )
        for index, chat in enumerate(chats)
    ]


def _turn(
    chat: Sequence[Message], turn: int, problem: Problem, hidden: float | None, public: float | None, result: Any
) -> Turn:
    position = [index for index, message in enumerate(chat) if message["role"] == "assistant"][turn]
    tests = problem.public_tests
    outcomes = _outcomes(result, public, len(tests)) if tests else ()
    if public is None and outcomes:
        public = sum(outcome.verdict is Verdict.PASSED for outcome in outcomes) / len(outcomes)
    rates = [(public, len(tests)), (hidden, len(problem.hidden_tests))]
    known = [(rate, count) for rate, count in rates if rate is not None and count]
    if not known:
        raise BadRow(
            "no pass rates", f"turn {turn} of a conversation has no pass rate: evaluate the conversations first"
        )
    return Turn(
        program=extract_program(chat[position]["content"]),
        public=outcomes,
        public_pass_rate=public if tests else None,
        hidden_pass_rate=hidden if problem.hidden_tests else None,
        pass_rate=min(sum(rate * count for rate, count in known) / sum(count for _, count in known), 1.0),
        feedback=chat[position + 1]["content"] if position + 1 < len(chat) else "",
        finish_reason=UNKNOWN,
        prompt_tokens=0,
        completion_tokens=0,
    )


def _outcomes(result: Any, rate: float | None, count: int) -> tuple[PublicOutcome, ...]:
    if isinstance(result, Mapping):
        passing = _list(result.get("passing"), "public_exec_results.passing")
        told = _list(result.get("feedback", []), "public_exec_results.feedback")
        if len(passing) < count and not any(passing):  # one word for all: no code, or a time-out of the whole
            passing, told = [False] * count, [*told[:1]] * count
        if len(passing) == count:
            texts = [as_text(text or "", "public_exec_results.feedback") for text in told] + [""] * count
            return tuple(_outcome(bool(passed), text) for passed, text in zip(passing, texts, strict=False))
    if rate in (0.0, 1.0):
        return tuple(_outcome(rate == 1.0, "") for _ in range(count))
    return ()


def _outcome(passed: bool, told: str) -> PublicOutcome:
    if passed:
        return PublicOutcome(Verdict.PASSED, "", "", None)
    head = told[:200].lower()
    if "timeout" in head or "time limit" in head:
        return PublicOutcome(Verdict.TIME_LIMIT, "", "", None)
    if "failed to extract code" in head:
        return PublicOutcome(Verdict.NO_CODE, "", "", None)
    if "Traceback (most recent call last)" in told:
        return PublicOutcome(Verdict.RUNTIME_ERROR, "", told[-1000:], None)
    return PublicOutcome(Verdict.WRONG_ANSWER, "", "", None)


def _chat(value: Any, name: str) -> list[Message]:
    messages: list[Message] = []
    for index, given in enumerate(_list(value, name)):
        fields = record(given, f"{name}[{index}]")
        role, content = (as_text(fields.get(key), f"{name}[{index}].{key}") for key in ("role", "content"))
        messages.append({"role": role, "content": content})
    roles = [message["role"] for message in messages]
    opening = roles[: roles.index("assistant")] if "assistant" in roles else roles
    expected = [*opening, *(["assistant", "user"] * len(roles))][: len(roles)]
    if roles != expected or opening not in (["user"], ["system", "user"]) or len(roles) == len(opening):
        raise BadRow("bad conversation", f"field '{name}' is no task followed by programs and feedback in turn")
    return messages


def _rates(row: Fields, name: str, turns: Sequence[int]) -> list[list[float]] | None:
    """By sample, then by turn."""
    value = parsed(row.get(name), name)
    if value is None:
        return None
    rates = [_list(line, name) for line in _list(value, name)]
    if list(map(len, rates)) != list(turns):
        raise BadRow("unpaired rates", f"field '{name}' does not have one rate for each program of each conversation")
    return [[_share(rate, name) for rate in line] for line in rates]


def _by_sample(value: Any, turns: Sequence[int]) -> list[list[Any]] | None:
    """What is kept by turn and then by sample, the other way round. None where it is missing."""
    if value is None:
        return None
    rows = [_list(line, "public results") for line in _list(value, "public results")]
    if len(rows) == max(turns, default=0) and all(len(line) == len(turns) for line in rows):
        return [[rows[turn][sample] for turn in range(turns[sample])] for sample in range(len(turns))]
    if list(map(len, rows)) == list(turns):
        return rows
    raise BadRow("unpaired rates", "the public results do not have one entry for each program of each conversation")


def _share(value: Any, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise wrong_type(name, value, "a share in [0, 1]")
    return float(value)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type(name, value, "an array")
    return value


def perturbation_of(row: Fields, shown: Sequence[Test], modified: Sequence[Test] | None) -> Mapping[str, Any] | None:
    """How the row's `modified_test_cases` lie: which of the public tests, and what these truly expect."""
    if not modified:
        return None
    inputs = [test["input"] for test in shown]
    missing = [test for test in modified if test["input"] not in inputs]
    if missing:
        raise BadRow("unpaired tests", "field 'modified_test_cases' holds an input that no public test has: correct it")
    places = [inputs.index(test["input"]) for test in modified]
    return {
        "kind": SWAPPED,
        "tests": places,
        "true_outputs": [shown[place]["output"] for place in places],
        "told_outputs": [test["output"] for test in modified],
    }
