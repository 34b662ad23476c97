"""Prompt templates: every word that a model is told, in one readable file per template.

A template is a TOML file in `prompt_templates/`, or a user's own. It has the text `system` (empty: no system message), two
tables of texts, in which `$name` stands for what this module fills in, and worked examples if it likes:

- `first_turn`: `statement` ($statement), `starter_code` ($starter_code; left out where the problem has none), then `program`
  for problems judged by their output or `function` ($function) or `method` ($class, $function) for those that are called,
  then `answer`, how to answer. They are joined by blank lines.
- `feedback`: `passed` where all public tests pass, else the text of the first failing test's verdict, then `answer`.
  `$test` is what `test_input` ($input), `test_call` ($call) or `test_assert` ($code) says of the test; `wrong_answer` also takes
  $output and $expected, `runtime_error` and `syntax_error` $traceback, `time_limit` $seconds, `memory_limit` $megabytes.
  `nothing` stands where a part is empty.
- `examples`: a list of small problems (`statement`, `starter_code`, `entry_point` where they are called) with their `program`.
  They stand before the problem as earlier turns of the chat, worded as it is; only those that are judged as it is.

Filled-in text is never searched for `$` again. The hash of a template covers its texts, not its file's name or comments;
trajectories record both name and hash.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template as Text
from typing import Any

from cobalt_data.errors import InputError
from cobalt_data.feedback import elide, first_failure, shown_call, shown_output, shown_traceback, shown_value
from cobalt_data.ids import row_id
from cobalt_data.models import checkpoint_directory
from cobalt_data.rows import Chat, Problem, PublicOutcome
from sandbox import Judge, Test, Verdict

FOLDER = Path(__file__).parent / "prompt_templates"
AUTO = "auto"

FIRST_TURN_NAMES = {
    "statement": {"statement"},
    "starter_code": {"starter_code"},
    "program": set(),
    "function": {"function"},
    "method": {"class", "function"},
    "answer": set(),
}
FEEDBACK_NAMES = {
    "passed": set(),
    "wrong_answer": {"test", "output", "expected"},
    "wrong_assert": {"test"},
    "runtime_error": {"test", "traceback"},
    "time_limit": {"test", "seconds"},
    "memory_limit": {"test", "megabytes"},
    "output_limit": {"test"},
    "syntax_error": {"traceback"},
    "no_code": set(),
    "test_input": {"input"},
    "test_call": {"call"},
    "test_assert": {"code"},
    "nothing": set(),
    "answer": set(),
}


@dataclass(frozen=True, slots=True)
class Example:
    """A problem and the program that solves it; `entry_point` as in a judge."""

    statement: str
    starter_code: str
    program: str
    entry_point: str | None = None

    def __post_init__(self) -> None:
        for name, text in asdict(self).items():
            if not isinstance(text, str) and (name, text) != ("entry_point", None):
                raise TypeError(f"{name} is {text!r}, which is no text")


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    system: str
    first_turn_texts: Mapping[str, str]
    feedback_texts: Mapping[str, str]
    examples: tuple[Example, ...] = ()

    def __post_init__(self) -> None:
        _check_texts(self.name, "first_turn", self.first_turn_texts, FIRST_TURN_NAMES)
        _check_texts(self.name, "feedback", self.feedback_texts, FEEDBACK_NAMES)

    @classmethod
    def load(cls, name: str) -> Template:
        """A template of this project by its name, or a user's by the path of its `.toml` file. Raises InputError."""
        path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml")))
            raise InputError(f"there is no template {name!r}: use {known}, or the path of a .toml file") from None
        except (OSError, ValueError) as error:
            raise InputError(f"template {path} cannot be read: {error}") from None
        return cls._from_content(path.stem, content)

    @classmethod
    def _from_content(cls, name: str, content: Mapping[str, Any]) -> Template:
        texts = {"system", "first_turn", "feedback"}
        if set(content) - {"examples"} != texts or not isinstance(content["system"], str):
            raise InputError(
                f"template {name}: give the text system and the tables first_turn and feedback; only examples may follow"
            )
        return cls(
            name,
            content["system"].strip(),
            _stripped(content["first_turn"]),
            _stripped(content["feedback"]),
            _examples(name, content.get("examples", [])),
        )

    @property
    def hash(self) -> str:
        return row_id(
            "template",
            self.system,
            self.first_turn_texts,
            self.feedback_texts,
            [asdict(example) for example in self.examples],
        )

    def first_turn(self, problem: Problem) -> Chat:
        """The chat that asks for the first program: a system message and examples, if there are any, and the problem."""
        is_called = problem.judge.entry_point is not None
        system = [{"role": "system", "content": self.system}] if self.system else []
        examples = [
            message
            for example in self.examples
            if (example.entry_point is not None) == is_called
            for message in self._shown_example(example)
        ]
        asked = self._asked(problem.statement, problem.starter_code, problem.judge.entry_point)
        return (*system, *examples, {"role": "user", "content": asked})

    def _shown_example(self, example: Example) -> Chat:
        asked = self._asked(example.statement, example.starter_code, example.entry_point)
        answer = f"```python\n{example.program.strip()}\n```"
        return ({"role": "user", "content": asked}, {"role": "assistant", "content": answer})

    def _asked(self, statement: str, starter_code: str, entry_point: str | None) -> str:
        parts = [self._first_turn("statement", statement=statement.strip())]
        if starter_code.strip():
            parts.append(self._first_turn("starter_code", starter_code=starter_code.strip("\n")))
        parts += [self._task(entry_point), self._first_turn("answer")]
        return "\n\n".join(filter(None, parts))

    def feedback(self, tests: Sequence[Test], outcomes: Sequence[PublicOutcome], judge: Judge) -> str:
        """What the model is told about its last program, given the public tests and what each said about it.

        Empty where there are no public tests: there is nothing to tell, and no further turn.
        """
        if not tests or not outcomes:
            return ""
        failure = first_failure(tests, outcomes)
        said = self.feedback_texts["passed"] if failure is None else self._failure(*failure, judge)
        return "\n\n".join(filter(None, (said, self.feedback_texts["answer"])))

    def _task(self, entry_point: str | None) -> str:
        if entry_point is None:
            return self._first_turn("program")
        owner, _, function = entry_point.rpartition(".")
        if not owner:
            return self._first_turn("function", function=function)
        return self._first_turn("method", **{"class": owner.removesuffix("()"), "function": function})

    def _failure(self, test: Test, outcome: PublicOutcome, judge: Judge) -> str:
        verdict = outcome.verdict
        key = "wrong_assert" if verdict is Verdict.WRONG_ANSWER and test["kind"] == "assert" else verdict.value
        parts = {
            "test": self._test(test, judge),
            "output": self._shown(shown_output(test, outcome)),
            "expected": self._shown(_expected(test)),
            "traceback": self._shown(shown_traceback(outcome.stderr)),
            "seconds": f"{judge.time_limit_s:g}",
            "megabytes": f"{judge.memory_mb}",
        }
        return Text(self.feedback_texts[key]).substitute(parts)

    def _test(self, test: Test, judge: Judge) -> str:
        if test["kind"] == "stdin":
            return Text(self.feedback_texts["test_input"]).substitute(input=self._shown(test["input"]))
        if test["kind"] == "call":
            return Text(self.feedback_texts["test_call"]).substitute(call=self._shown(shown_call(test, judge)))
        return Text(self.feedback_texts["test_assert"]).substitute(code=self._shown(test["code"]))

    def _shown(self, text: str) -> str:
        return elide(text.strip("\n")) if text.strip() else self.feedback_texts["nothing"]

    def _first_turn(self, key: str, **parts: str) -> str:
        return Text(self.first_turn_texts[key]).substitute(parts)


def template_for(name: str, model: str) -> Template:
    """`Template.load(name)`, where `auto` is the one that suits a model.

    For a checkpoint of `cobalt train` that is the template its prompts were worded with; for SmolLM2-135M it is
    `worked_examples`, for every other model `paper`.
    """
    if name != AUTO:
        return Template.load(name)
    suited = _template_of_checkpoint(checkpoint_directory(Path(model).expanduser()))
    return Template.load(suited or ("worked_examples" if "smollm2-135m" in model.lower() else "paper"))


def _template_of_checkpoint(directory: Path) -> str | None:
    """What `cobalt.json` beside a trained model's weights says; None for any other model."""
    try:
        facts = json.loads((directory / "cobalt.json").read_text(encoding="utf-8"))
        return str(facts["template"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _expected(test: Test) -> str:
    if test["kind"] == "stdin":
        return str(test["output"])
    return shown_value(test["expected"]) if test["kind"] == "call" else ""


def _stripped(texts: Any) -> dict[str, str]:
    """The texts of a table without the line breaks that a TOML string of several lines begins or ends with."""
    if not isinstance(texts, Mapping):
        return {}
    return {key: text.strip("\n") if isinstance(text, str) else text for key, text in texts.items()}


def _examples(template: str, entries: Any) -> tuple[Example, ...]:
    try:
        return tuple(Example(**_stripped(entry)) for entry in entries)
    except TypeError as error:
        raise InputError(f"template {template}: an entry of examples is no example: {error}") from None


def _check_texts(template: str, table: str, texts: Mapping[str, str], names: Mapping[str, set[str]]) -> None:
    for key in names.keys() | texts.keys():
        where = f"template {template}: {table}.{key}"
        if key not in names:
            raise InputError(f"{where} is not a text of a template: remove it")
        text = texts.get(key)
        if not isinstance(text, str):
            raise InputError(f"{where} is missing or no text")
        if not Text(text).is_valid():
            raise InputError(f"{where} has a $ that begins no name: write $$ for a dollar sign")
        if unknown := set(Text(text).get_identifiers()) - names[key]:
            allowed = ", ".join(f"${name}" for name in sorted(names[key])) or "no names"
            raise InputError(f"{where} uses ${min(unknown)}: it may use {allowed}")
