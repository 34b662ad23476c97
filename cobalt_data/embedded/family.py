"""What a family of embedded problems is made of.

A `Shape` says how an input looks, a `Task` what to print about it, a `Family` groups the tasks that exercise one skill.
The reference program of a task is the lines that read its shape followed by the lines that answer, so text, inputs and
program cannot drift apart. `printing` and `deciding` build the many tasks whose answer is one expression.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from textwrap import dedent

EASY, MEDIUM, HARD = "easy", "medium", "hard"
INTEGER = "One integer."
INTEGERS = "The integers on one line."
TEXT = "One line of text."


@dataclass(frozen=True, slots=True)
class Shape:
    """How an input looks: the sentence that describes it, the code that reads it, and how to draw one.

    `draw(random, size)` returns an input without its last newline, of about `size` items where it holds a list. `edges`
    are inputs that every task of this shape is tested on, `near(threshold)` those that tell `<` from `<=` there.
    """

    text: str
    read: str
    draw: Callable[[Random, int], str]
    edges: tuple[str, ...] = ()
    near: Callable[[int], Sequence[str]] = lambda threshold: ()


@dataclass(frozen=True, slots=True)
class Task:
    """One problem before its tests are drawn: a sentence that asks, and the program lines that answer."""

    name: str
    ask: str
    body: str
    shape: Shape
    output: str
    difficulty: str
    checker: str = "tokens"

    @property
    def program(self) -> str:
        return f"{self.shape.read}\n{self.body}\n"

    @property
    def edges(self) -> list[str]:
        """The inputs at the edges of the shape, and around each number that the answer compares or computes with."""
        constants = {node.value for node in ast.walk(ast.parse(self.body)) if isinstance(node, ast.Constant)}
        thresholds = sorted(value for value in constants if type(value) is int and value > 1)
        return [*self.shape.edges, *(text for threshold in thresholds for text in self.shape.near(threshold))]


@dataclass(frozen=True, slots=True)
class Family:
    """Tasks that exercise one skill, easiest first where they differ. A held-out family is never trained on."""

    name: str
    tasks: tuple[Task, ...]
    held_out: bool = False

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        if len(set(names)) < len(names):
            raise ValueError(f"family {self.name}: two tasks have one name in {names}")


Rows = Mapping[str, tuple[str, str]]  # name -> (what to print, how)


def tasks(
    shape: Shape, rows: Rows, *, output: str = INTEGER, difficulty: str = EASY, checker: str = "tokens"
) -> tuple[Task, ...]:
    """Tasks whose rows give the whole sentence and the whole body."""
    return tuple(
        Task(name, ask, dedent(body).strip(), shape, output, difficulty, checker) for name, (ask, body) in rows.items()
    )


def printing(
    shape: Shape, rows: Rows, *, output: str = INTEGER, difficulty: str = EASY, checker: str = "tokens"
) -> tuple[Task, ...]:
    """Tasks whose rows give what to print and the arguments of one `print`."""
    whole = {name: (f"Print {what}.", f"print({how})") for name, (what, how) in rows.items()}
    return tasks(shape, whole, output=output, difficulty=difficulty, checker=checker)


def deciding(shape: Shape, rows: Rows, *, difficulty: str = EASY) -> tuple[Task, ...]:
    """Tasks whose rows give a condition in words and in Python; the answer is YES or NO."""
    whole = {
        name: (f"Print YES if {condition}, otherwise print NO.", f'print("YES" if {test} else "NO")')
        for name, (condition, test) in rows.items()
    }
    return tasks(shape, whole, output="YES or NO.", difficulty=difficulty)
