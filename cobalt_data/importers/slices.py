"""Which earlier statements a test statement needs: a backward slice by names.

Python has no cheap exact answer, so the slice errs on the side of keeping: statements that may change what a needed name
refers to are kept, and so are bare expressions (`random.seed(0)`) unless they call the candidate.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence


def needed_statements(statement: ast.stmt, before: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of `before`, in their order, that `statement` depends on."""
    needed = _mentioned(statement)
    kept: list[ast.stmt] = []
    for earlier in reversed(before):
        mentioned = _mentioned(earlier)
        runs_for_effect = isinstance(earlier, ast.Expr) and "candidate" not in mentioned and not _is_idle(earlier)
        if runs_for_effect or _changed(earlier) & needed:
            kept.append(earlier)
            needed |= mentioned
    return kept[::-1]


def _mentioned(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _changed(statement: ast.stmt) -> set[str]:
    """The names that the statement binds, or may otherwise give another content."""
    match statement:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return set().union(*map(_mentioned, targets))
    return _mentioned(statement)


def _is_idle(statement: ast.Expr) -> bool:
    """A docstring, a constant or a lone name."""
    return isinstance(statement.value, ast.Constant | ast.Name)
