"""Splits the prompt of a function problem, Python source that ends in a function without a body, into its parts."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass

from cobalt_data.importers.asserts import parse_source
from cobalt_data.importers.fields import BadRow


@dataclass(frozen=True, slots=True)
class FunctionPrompt:
    """`header`: imports and helper functions before the function; `signature`: the function up to its docstring."""

    header: str
    signature: str
    docstring: str

    @property
    def starter_code(self) -> str:
        return f"{self.header}\n\n\n{self.signature}" if self.header else self.signature


def split_prompt(prompt: str, entry_point: str, name: str = "prompt") -> FunctionPrompt:
    """Raises BadRow, naming the field `name`, where there is no such function or it has no docstring."""
    try:
        module = parse_source(prompt, name)
    except BadRow:  # MBPP has a docstring at the margin
        prompt = re.sub(r'^(?=""")', "    ", prompt, flags=re.MULTILINE)
        module = parse_source(prompt, name)
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            break
    else:
        raise BadRow("no function", f"field '{name}' does not define {entry_point}, the function of 'entry_point'")
    docstring = next(filter(None, map(_text, node.body)), None)
    task = inspect.cleandoc(str(docstring.value)) if docstring else ""
    if docstring is None or not task:
        raise BadRow("no statement", f"field '{name}': {entry_point} has no docstring that states the task")
    lines = prompt.encode().splitlines(keepends=True)  # the tree counts columns in bytes
    start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
    signature = b"".join(lines[start : docstring.lineno - 1]) + lines[docstring.lineno - 1][: docstring.col_offset]
    header = b"".join(lines[:start])
    return FunctionPrompt(header.decode().strip(), signature.decode().rstrip(), task)


def _text(statement: ast.stmt) -> ast.Constant | None:
    match statement:
        case ast.Expr(value=ast.Constant(value=str()) as constant):
            return constant
    return None
