"""The commands that the README shows are commands that there are, and settings may be spelled in two ways."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli import app
from cobalt_data.errors import InputError
from cobalt_train.commands import RUN
from cobalt_train.config import parse_settings

README = Path(__file__).parents[1] / "README.md"
COMMANDS = re.findall(r"^(cobalt .*?)(?:\s*#.*)?$", README.read_text(encoding="utf-8"), re.MULTILINE)
UsageError = typer.BadParameter.__mro__[1]


def parse(line: str) -> None:
    """Parses a command line to its end, and runs nothing. Raises KeyError for a verb, UsageError for the rest."""
    command, words = typer.main.get_command(app), shlex.split(line)[1:]
    while hasattr(command, "commands"):
        is_the_run = RUN in command.commands and words[0] not in command.commands  # as in `cobalt train my-data`
        command = command.commands[RUN if is_the_run else words.pop(0)]
    command.make_context("cobalt", words)


def test_the_readme_shows_commands() -> None:
    assert len(COMMANDS) > 5


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_readme_is_understood(line: str) -> None:
    parse(line)


def test_an_option_that_there_is_not_is_not_understood() -> None:
    with pytest.raises(UsageError):
        parse("cobalt data split my-data --no-such-option")


def test_a_setting_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="no_such_setting"):
        parse_settings(["no_such_setting=1"])


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and group of commands, as the words that call it."""
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, words if name == RUN and "train" in words else (*words, name))


@pytest.mark.parametrize("words", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_every_command_says_how_it_is_used(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    app([*words, "--help"], standalone_mode=False)
    assert "Usage:" in capsys.readouterr().out
