"""Programs in a normal form: two programs with the same form differ in nothing but how they are written.

What is levelled: formatting, comments, docstrings (statements of a module, function or class that are only a string) and
the names that a program gives to its own variables, parameters, functions and classes, which are numbered in the order of
their appearance, scope by scope. What is not, because the program would mean something else: attributes and whatever a class
body binds, parameters that some call names (`f(x=1)`, or whatever is in `f(**options)`), names that an import brings in as they
are, classes with a decorator or a base (a dataclass, an Enum or a NamedTuple shows its name when it is printed), the names in
`keep` (the entry point that tests call), and every name of a program that looks names up as text (`eval`, `getattr`,
`f.__name__`, ...); nor docstrings where `__doc__` occurs. A program that does not parse keeps its text, white space aside. The
form is compared, not run: `$0` is no Python name, so it meets no other.

Left out: reordered statements and expressions that compute the same. Those are near-duplicates.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

Source = tuple[str, tuple[str, ...]]  # a program and the names to keep

NAME_LOOKUPS = frozenset({
    "eval", "exec", "globals", "locals", "vars", "dir", "getattr", "setattr", "hasattr", "delattr", "__import__", "__main__",
    "__qualname__",
})  # fmt: skip
ATTRIBUTE_LOOKUPS = frozenset({"__name__", "__qualname__", "__dict__", "__code__", "__annotations__", "modules"})
DOCSTRING = "__doc__"
NOT_PARSED = "# not parsed:"  # begins the form of such a program: no other form has a comment

_LEAVES = (
    ast.expr_context,
    ast.operator,
    ast.cmpop,
    ast.unaryop,
    ast.boolop,
    ast.Constant,
)  # nodes without a name below them

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def normalise_program(source: str, keep: Collection[str] = ()) -> str:
    """The normal form of `source`; the names in `keep` stay as they are at the top level."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is the program's business
            tree = ast.parse(source)
        names = _Names(drops_strings=DOCSTRING not in source)
        names.visit(tree)
        names.rename(keep)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"{NOT_PARSED} {' '.join(source.split())}"


def normalise_programs(programs: Sequence[Source]) -> list[str]:
    """The normal form of each, made in a thread of its own: what nests too deeply must not depend on the caller's stack."""
    forms: list[str] = []
    thread = threading.Thread(target=lambda: forms.extend(normalise_program(source, keep) for source, keep in programs))
    thread.start()
    thread.join()
    return forms


def _is_only_a_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


@dataclass(eq=False, slots=True)
class _Scope:
    """The names that a module, function, class or comprehension binds, and those it takes from further out."""

    parent: _Scope | None
    is_class: bool = False
    is_comprehension: bool = False
    bound: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)  # bound, and not to be renamed
    module_names: set[str] = field(default_factory=set)  # declared `global`
    outer_names: set[str] = field(default_factory=set)  # declared `nonlocal`

    def where_bound(self, name: str) -> _Scope | None:
        """The scope whose `name` is meant here, as Python resolves it; None if only a builtin can be meant."""
        if name in self.module_names and self.parent is not None:
            return self._module().where_bound(name)
        if name in self.bound and name not in self.outer_names:
            return self
        scope = self.parent
        while scope is not None and scope.is_class:
            scope = scope.parent
        return scope.where_bound(name) if scope is not None else None

    def function(self) -> _Scope:
        """Where a walrus binds: the nearest scope that is no comprehension."""
        scope = self
        while scope.is_comprehension and scope.parent is not None:
            scope = scope.parent
        return scope

    def _module(self) -> _Scope:
        return self if self.parent is None else self.parent._module()


class _Occurrence(NamedTuple):
    """One place where a name is written: the attribute of a node, and the scope it stands in."""

    node: ast.AST
    attribute: str
    scope: _Scope
    name: str


class _Names(ast.NodeVisitor):
    """Collects every occurrence of a name with its scope, in the order of the text, then renames them all at once.

    Millions of programs pass through here: `visit` does what it does in the base class, in less time.
    """

    def __init__(self, drops_strings: bool) -> None:
        self.drops_strings = drops_strings
        self.module = self.scope = _Scope(parent=None)
        self.occurrences: list[_Occurrence] = []
        self.parameters: list[_Occurrence] = []
        self.imports: list[tuple[_Scope, str]] = []  # names that are brought in as they are
        self.class_names: set[str] = set()  # bound by a class body, hence attributes as well
        self.keywords: set[str] = set()
        self.names_any_parameter = False  # some call takes keywords that stand elsewhere
        self.reads: set[str] = set()
        self.attributes: set[str] = set()

    def rename(self, keep: Collection[str]) -> None:
        if self.reads & NAME_LOOKUPS or self.attributes & ATTRIBUTE_LOOKUPS:
            return
        self.module.fixed.update(keep)
        for scope, name in self.imports:
            (scope.where_bound(name) or scope).fixed.add(name)
        for parameter in self.parameters:
            if self.names_any_parameter or parameter.name in self.keywords:
                parameter.scope.fixed.add(parameter.name)
        homes: dict[tuple[_Scope, str], _Scope | None] = {}
        numbers: dict[tuple[_Scope, str], int] = {}
        for node, attribute, scope, name in self.occurrences:
            if (scope, name) not in homes:
                home = scope.where_bound(name)
                homes[scope, name] = None if home is None or name in home.fixed or name in self.class_names else home
            if (home := homes[scope, name]) is not None:
                setattr(node, attribute, f"${numbers.setdefault((home, name), len(numbers))}")

    def visit(self, node: ast.AST) -> None:
        _visitor(node.__class__.__name__)(self, node)

    def generic_visit(self, node: ast.AST) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not isinstance(child, _LEAVES):
                    self.visit(child)

    def visit_Module(self, node: ast.Module) -> None:
        self._drop_strings(node.body)
        self._visit_all(node.body)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads.add(node.id)
        else:
            self.scope.bound.add(node.id)
        self._occurs(node, "id")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.attributes.add(node.attr)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        target = self.scope.function()
        target.bound.add(node.target.id)
        self.occurrences.append(_Occurrence(node.target, "id", target, node.target.id))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all(node.decorator_list)
        self._bind(node, "name")
        self._drop_strings(node.body)
        self._visit_function(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_function(node, [node.body])

    def _visit_function(self, node: FunctionNode, body: Iterable[ast.AST]) -> None:
        arguments = node.args
        self._visit_all(default for default in (*arguments.defaults, *arguments.kw_defaults) if default is not None)
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
        self._visit_all(parameter.annotation for parameter in parameters if parameter.annotation is not None)
        if not isinstance(node, ast.Lambda) and node.returns is not None:
            self.visit(node.returns)
        self.scope = _Scope(parent=self.scope)
        for parameter in parameters:
            self.parameters.append(self._bind(parameter, "arg"))
        self._visit_all(body)
        self._leave()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        shows_its_name = [*node.decorator_list, *node.bases, *node.keywords]
        self._visit_all(shows_its_name)
        self._bind(node, "name")
        if shows_its_name:
            self.scope.fixed.add(node.name)
        self._drop_strings(node.body)
        self.scope = _Scope(parent=self.scope, is_class=True)
        self._visit_all(node.body)
        self.class_names |= self.scope.bound
        self._leave()

    def _visit_comprehension(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        self.scope = _Scope(parent=self.scope, is_comprehension=True)
        for index, generator in enumerate(node.generators):
            if index:
                self.visit(generator.iter)
            self.visit(generator.target)
            self._visit_all(generator.ifs)
        self._visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self._leave()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension  # noqa: N815

    def visit_Global(self, node: ast.Global) -> None:
        self.scope.module_names.update(node.names)
        self.module.bound.update(node.names)
        node.names = []  # the numbers of the occurrences say it already

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.scope.outer_names.update(node.names)
        node.names = []

    def visit_alias(self, node: ast.alias) -> None:
        if node.asname:
            self._bind(node, "asname")
        else:
            name = node.name.partition(".")[0]
            self.scope.bound.add(name)
            self.imports.append((self.scope, name))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self._bind(node, "name")
        self._visit_all(node.body)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.generic_visit(node)
        if node.name:
            self._bind(node, "name")

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._bind(node, "name")

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        if node.rest:
            self._bind(node, "rest")

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg:
            self.keywords.add(node.arg)
        else:
            self.names_any_parameter = True
        self.visit(node.value)

    def _drop_strings(self, body: list[ast.stmt]) -> None:
        """Takes the statements that are only a string off a body; one that has no other keeps a `pass`."""
        if self.drops_strings:
            body[:] = [statement for statement in body if not _is_only_a_string(statement)] or [ast.Pass()]

    def _bind(self, node: ast.AST, attribute: str) -> _Occurrence:
        occurrence = self._occurs(node, attribute)
        self.scope.bound.add(occurrence.name)
        return occurrence

    def _occurs(self, node: ast.AST, attribute: str) -> _Occurrence:
        occurrence = _Occurrence(node, attribute, self.scope, getattr(node, attribute))
        self.occurrences.append(occurrence)
        return occurrence

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _leave(self) -> None:
        assert self.scope.parent is not None
        self.scope = self.scope.parent


@cache
def _visitor(kind: str) -> Callable[[_Names, Any], None]:
    visitor: Callable[[_Names, Any], None] = getattr(_Names, f"visit_{kind}", _Names.generic_visit)
    return visitor


if __name__ == "__main__":  # a share of `cobalt_data.normal_forms`
    json.dump(normalise_programs(json.load(sys.stdin)), sys.stdout)
