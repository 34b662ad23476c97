"""The rows of a dataset in typed form: `Problem`, `Trajectory` with its `Turn`s, and `Prompt`.

`to_row` and `from_row` are the only places that know how a field is spelled in the tables of `cobalt_data.schemas`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cobalt_data.errors import InputError
from cobalt_data.field_checks import (
    check_chat,
    check_counts,
    check_object,
    check_share,
    check_texts,
    parsed_perturbation,
)
from cobalt_data.ids import canonical_json, row_id
from sandbox import Judge, Test, Verdict

Message = Mapping[str, str]  # exactly {"role", "content"}
Chat = Sequence[Message]
Row = Mapping[str, Any]

UNSPLIT = "unsplit"  # the side of a problem that neither its source nor `cobalt data split` has placed


@dataclass(frozen=True, slots=True)
class Problem:
    problem_id: str
    source: str
    title: str
    difficulty: str | None
    statement: str
    starter_code: str
    tests: tuple[Test, ...]
    judge: Judge
    solutions: tuple[str, ...]
    metadata: Mapping[str, Any]
    split: str = UNSPLIT

    def __post_init__(self) -> None:
        if not self.problem_id:
            raise InputError("problem_id is empty")
        if not self.tests:
            raise InputError(f"problem {self.problem_id} has no tests: nothing could judge a program")
        check_object("metadata", self.metadata)
        check_texts("a solution", *self.solutions)

    @property
    def public_tests(self) -> tuple[Test, ...]:
        return tuple(test for test in self.tests if test["public"])

    @property
    def hidden_tests(self) -> tuple[Test, ...]:
        return tuple(test for test in self.tests if not test["public"])

    def to_row(self) -> dict[str, Any]:
        return {
            "problem_id": self.problem_id,
            "source": self.source,
            "title": self.title,
            "difficulty": self.difficulty,
            "statement": self.statement,
            "starter_code": self.starter_code,
            "tests": canonical_json(self.tests),
            "judge": self.judge.to_json(),
            "solutions": canonical_json(self.solutions),
            "metadata": canonical_json(self.metadata),
            "split": self.split,
        }

    @classmethod
    def from_row(cls, row: Row) -> Problem:
        return cls(
            problem_id=row["problem_id"],
            source=row["source"],
            title=row["title"],
            difficulty=row["difficulty"],
            statement=row["statement"],
            starter_code=row["starter_code"],
            tests=tuple(json.loads(row["tests"])),
            judge=Judge.from_json(row["judge"]),
            solutions=tuple(json.loads(row["solutions"])),
            metadata=json.loads(row["metadata"]),
            split=row["split"],
        )


@dataclass(frozen=True, slots=True)
class PublicOutcome:
    """What one public test said about one program; `stdout` and `stderr` are cut off, `returned` is tagged JSON text."""

    verdict: Verdict
    stdout: str
    stderr: str
    returned: str | None

    def __post_init__(self) -> None:
        if type(self.stdout) is not str or type(self.stderr) is not str or type(self.returned or "") is not str:
            raise InputError(f"{repr(self)[:80]} has an output that is no text")


@dataclass(frozen=True, slots=True)
class Turn:
    """One program of a trajectory and what its execution said.

    `program` is None where the completion held no code; a pass rate is None where there are no tests of its kind.
    """

    program: str | None
    public: tuple[PublicOutcome, ...]
    public_pass_rate: float | None
    hidden_pass_rate: float | None
    pass_rate: float
    feedback: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int

    def __post_init__(self) -> None:
        for rate in (self.public_pass_rate, self.hidden_pass_rate, self.pass_rate):
            if rate is not None:
                check_share("a pass rate of a turn", rate)
        if type(self.program or "") is not str or type(self.feedback) is not str or type(self.finish_reason) is not str:
            raise InputError("a program, feedback or finish_reason of a turn is no text")
        check_counts("a number of tokens of a turn", self.prompt_tokens, self.completion_tokens)

    def to_json(self) -> dict[str, Any]:
        return {**_fields(self), "public": [_fields(outcome) for outcome in self.public]}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Turn:
        public = tuple(
            PublicOutcome(**{**outcome, "verdict": Verdict(outcome["verdict"])}) for outcome in fields["public"]
        )
        return cls(**{**fields, "public": public})


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One conversation of the reference model with the sandbox; `messages` ends with the feedback to the last program."""

    problem_id: str
    sample_index: int
    model: str
    model_revision: str
    engine: str
    sampling: Mapping[str, Any]  # temperature, top_p, max_tokens, template and its hash
    seed: int
    perturbation: Mapping[str, Any] | None
    messages: Chat
    turns: tuple[Turn, ...]
    split: str

    def __post_init__(self) -> None:
        check_object("sampling", self.sampling)
        check_chat(f"trajectory {self.sample_index} of problem {self.problem_id}", self.messages, len(self.turns))

    @property
    def trajectory_id(self) -> str:
        return row_id(
            "trajectory",
            self.problem_id,
            self.model,
            self.model_revision,
            self.engine,
            self.sampling,
            self.seed,
            self.sample_index,
            self.perturbation,
        )

    @property
    def pass_rates(self) -> tuple[float, ...]:
        """Over all tests, per turn."""
        return tuple(turn.pass_rate for turn in self.turns)

    def to_row(self) -> dict[str, Any]:
        return {
            "trajectory_id": self.trajectory_id,
            "problem_id": self.problem_id,
            "sample_index": self.sample_index,
            "model": self.model,
            "model_revision": self.model_revision,
            "engine": self.engine,
            "sampling": canonical_json(self.sampling),
            "seed": self.seed,
            "perturbation": None if self.perturbation is None else canonical_json(self.perturbation),
            "messages": [dict(message) for message in self.messages],
            "turns": canonical_json([turn.to_json() for turn in self.turns]),
            "num_turns": len(self.turns),
            "best_pass_rate": max(self.pass_rates),
            "final_pass_rate": self.pass_rates[-1],
            "solved": max(self.pass_rates) == 1.0,
            "split": self.split,
        }

    @classmethod
    def from_row(cls, row: Row) -> Trajectory:
        return cls(
            problem_id=row["problem_id"],
            sample_index=row["sample_index"],
            model=row["model"],
            model_revision=row["model_revision"],
            engine=row["engine"],
            sampling=json.loads(row["sampling"]),
            seed=row["seed"],
            perturbation=parsed_perturbation(row["perturbation"], row["trajectory_id"]),
            messages=tuple(row["messages"]),
            turns=tuple(Turn.from_json(fields) for fields in json.loads(row["turns"])),
            split=row["split"],
        )


@dataclass(frozen=True, slots=True)
class Prompt:
    """A partial trajectory ready to be completed with one program: all that generation and reward need."""

    trajectory_id: str | None
    problem_id: str
    turn: int
    prompt: Chat
    tests: tuple[Test, ...]
    judge: Judge
    prev_best_pass_rate: float
    perturbation: Mapping[str, Any] | None
    prompt_tokens: int
    split: str

    def __post_init__(self) -> None:
        where = f"prompt of problem {self.problem_id}, turn {self.turn}"
        check_counts("turn", self.turn)
        check_counts("prompt_tokens", self.prompt_tokens)
        check_share("prev_best_pass_rate", self.prev_best_pass_rate)
        check_chat(where, self.prompt, self.turn)
        if not self.prompt or self.prompt[-1]["role"] != "user":
            raise InputError(f"{where} does not end in a user message")

    @property
    def prompt_id(self) -> str:
        chat = [dict(message) for message in self.prompt]
        return row_id("prompt", self.problem_id, self.trajectory_id, self.turn, chat, self.perturbation)

    def with_last_message(self, content: str, perturbation: Mapping[str, Any]) -> Prompt:
        """The same prompt with another last feedback, marked as perturbed."""
        return replace(
            self, prompt=(*self.prompt[:-1], {"role": "user", "content": content}), perturbation=perturbation
        )

    def to_row(self) -> dict[str, Any]:
        return {
            "prompt_id": self.prompt_id,
            "trajectory_id": self.trajectory_id,
            "problem_id": self.problem_id,
            "turn": self.turn,
            "prompt": [dict(message) for message in self.prompt],
            "tests": canonical_json(self.tests),
            "judge": self.judge.to_json(),
            "prev_best_pass_rate": self.prev_best_pass_rate,
            "perturbation": None if self.perturbation is None else canonical_json(self.perturbation),
            "prompt_tokens": self.prompt_tokens,
            "split": self.split,
        }

    @classmethod
    def from_row(cls, row: Row) -> Prompt:
        return cls(
            trajectory_id=row["trajectory_id"],
            problem_id=row["problem_id"],
            turn=row["turn"],
            prompt=tuple(row["prompt"]),
            tests=tuple(json.loads(row["tests"])),
            judge=Judge.from_json(row["judge"]),
            prev_best_pass_rate=row["prev_best_pass_rate"],
            perturbation=parsed_perturbation(row["perturbation"], row["prompt_id"]),
            prompt_tokens=row["prompt_tokens"],
            split=row["split"],
        )


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a slotted record as they are; `dataclasses.asdict`, which copies each value, takes five times as long."""
    return {name: getattr(record, name) for name in record.__slots__}


def opening_of(chat: Chat, programs: int) -> Chat:
    """What stood before the first of the last `programs` programs of a chat: all of it where there are none.

    Counted from the end, since a template may show answers of its own as examples.
    """
    answers = [index for index, message in enumerate(chat) if message["role"] == "assistant"]
    return chat[: answers[-programs]] if programs else chat
