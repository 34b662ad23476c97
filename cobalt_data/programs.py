"""Finding the program in what a model wrote.

The answer of a completion is what follows its thinking. The program is the content of the last complete ```python block
of the answer, else of the last complete block without a label; blocks in other languages never count.

- A fence is a line of its own: at least three backticks after any indentation, then a label or nothing. Backticks within
  a line of code are code. The indentation of the opening fence is taken off the block's lines.
- A block ends at a line of at least as many backticks as opened it. One that never ends, because the model ran out of
  tokens, holds no program; one interrupted by a new ```python line was given up for the new one.
- A block of nothing but white space holds no program.

Everything here takes time linear in the text, whatever the text. Whether the program is valid Python is for the sandbox to
say, whether the answer is well formed for the reward.
"""

from __future__ import annotations

from collections.abc import Iterator

ANSWER_CHARS = 6000  # of an answer that later turns see (the reference code's bound)
THINK_START = "<think>"
THINK_END = "</think>"
PYTHON_LABELS = frozenset({"python", "python3", "py"})


def strip_thinking(text: str, max_chars: int | None = ANSWER_CHARS) -> str:
    """The answer: what follows the last `</think>`, cut to `max_chars`; empty where an opened thinking never ended.

    Idempotent, and unchanged text for models that do not think.
    """
    _, end, answer = text.rpartition(THINK_END)
    if answer.lstrip().startswith(THINK_START):
        return ""
    if end:
        answer = answer.lstrip("\n")
    return answer if max_chars is None else answer[:max_chars]


def extract_program(text: str) -> str | None:
    """The program in a completion (with or without its thinking), None where there is none."""
    labelled, unlabelled = None, None
    for label, code in _blocks(strip_thinking(text, max_chars=None)):
        if not code.strip():
            continue
        if label in PYTHON_LABELS:
            labelled = code
        elif not label:
            unlabelled = code
    return labelled if labelled is not None else unlabelled


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The (label, content) of every complete block, in order."""
    fence, label, indent = 0, "", 0
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        ticks, info = _fence(line)
        if not fence:
            if ticks:
                fence, label, indent, lines = ticks, info, _indentation(line), []
        elif ticks >= fence and not info:
            yield label, "\n".join(lines)
            fence = 0
        elif ticks >= fence and info in PYTHON_LABELS:
            fence, label, indent, lines = ticks, info, _indentation(line), []
        else:
            lines.append(line[min(indent, _indentation(line)) :])


def _fence(line: str) -> tuple[int, str]:
    """How many backticks open the line (0 if it is no fence) and the label behind them, in lower case."""
    stripped = line.strip()
    info = stripped.lstrip("`")
    ticks = len(stripped) - len(info)
    if ticks < 3 or "`" in info:
        return 0, ""
    words = info.split(maxsplit=1)
    return ticks, words[0].lower() if words else ""


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
