"""Problems and programs among which duplicates are hidden, made from the embedded ones: what dedup must find, and must not."""

import ast
import re
import textwrap
from random import Random

from cobalt_data.embedded import embedded_problems
from cobalt_data.rows import Problem

EXACT, NEAR, TWISTED = 150, 150, 100
OTHER_WORDS = {
    "print": "output", "integers": "whole numbers", "largest": "greatest", "smallest": "least", "letters": "characters",
    "first": "initial", "otherwise": "or else", "how many": "the number", "contains": "has", "has": "holds",
}  # fmt: skip


def planted_problems(seed=0):
    """(1,000 problems, pairs that are exact, pairs that are near): 600 tasks, 100 of them once more with other answers to the same
    inputs, 150 copies with other white space, 150 in other words. Tasks of one family share most of their words as well."""
    draw = Random(seed)
    tasks = [Problem.from_row(row) for row in draw.sample(embedded_problems(), 600)]
    originals = draw.sample(tasks, EXACT + NEAR)
    twisted = [twist(problem) for problem in tasks if _numbers_only(problem)][:TWISTED]
    exact = [_again(problem, f"copy/{n}", _respaced(problem.statement)) for n, problem in enumerate(originals[:EXACT])]
    near = [reworded(problem, f"near/{n}", draw) for n, problem in enumerate(originals[EXACT:])]
    pairs = [
        {frozenset((one.problem_id, other.problem_id)) for one, other in zip(some, copies, strict=True)}
        for some, copies in ((originals[:EXACT], exact), (originals[EXACT:], near))
    ]
    return [*tasks, *twisted, *exact, *near], *pairs


def twist(problem):
    """Another task in nearly the same words: every number of the answer doubled, and one added."""
    statement = problem.statement.replace("\n\nInput", " Print twice each number and one more.\n\nInput")
    tests = [
        {**test, "output": re.sub(r"-?\d+", lambda number: str(2 * int(number[0]) + 1), test["output"])}
        for test in problem.tests
    ]
    return _again(problem, f"twisted/{problem.problem_id}", statement, tests)


def reworded(problem, problem_id, draw):
    """Half of the words that have a synonym replaced, another sentence in front, output before input, a third of the tests gone."""
    statement = problem.statement
    for word, other in OTHER_WORDS.items():
        if draw.random() < 0.5:
            statement = re.sub(rf"\b{word}\b", other, statement, flags=re.IGNORECASE)
    task, _, form = statement.partition("\n\nInput: ")
    given, _, wanted = form.partition("\nOutput: ")
    tests = draw.sample(problem.tests, len(problem.tests) * 2 // 3)
    return _again(problem, problem_id, f"Solve this. {task}\n\nOutput: {wanted}\nInput: {given}", tests)


def planted_programs(seed=0):
    """(1,000 programs, pairs of places that are exact, pairs that are near): 500 of four functions each, 200 that share two
    of them with one of these, 150 copies with other names, 150 with other names, functions in another order and one line more."""
    draw = Random(seed)
    longest: dict[str, str] = {}  # of each family
    for problem in map(Problem.from_row, embedded_problems()):
        longest[problem.metadata["family"]] = max(
            longest.get(problem.metadata["family"], ""), *problem.solutions, key=len
        )
    chosen = [draw.sample(sorted(longest.values()), 6) for _ in range(500)]
    programs = [_of_functions(some[:4]) for some in chosen]
    programs += [_of_functions(some[2:]) for some in chosen[:200]]
    exact = {frozenset((place, len(programs) + place - 200)) for place in range(200, 200 + EXACT)}
    near = {frozenset((place, len(programs) + place - 200)) for place in range(200 + EXACT, 200 + EXACT + NEAR)}
    programs += [renamed(program, draw) for program in programs[200 : 200 + EXACT]]
    programs += [
        renamed(program, draw, in_order=False) + "\nprint('done')"
        for program in programs[200 + EXACT : 200 + EXACT + NEAR]
    ]
    return programs, exact, near


def renamed(program, draw, in_order=True):
    """The program with other names for its variables and functions, and, if told so, its functions in another order."""
    tree = ast.parse(program)
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = {name: f"v{number}" for number, name in enumerate(draw.sample(sorted(bound), len(bound)))}
    for node in ast.walk(tree):
        for field in ("id", "name", "arg"):
            if getattr(node, field, None) in names and not isinstance(node, ast.keyword):
                setattr(node, field, names[getattr(node, field)])
    if not in_order:
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        tree.body = [*reversed(functions), *(node for node in tree.body if node not in functions)]
    return ast.unparse(tree)


def _of_functions(bodies):
    """A program that calls a function for each body."""
    functions = [f"def part_{n}():\n{textwrap.indent(body, '    ')}" for n, body in enumerate(bodies)]
    return "\n".join([*functions, *(f"part_{n}()" for n in range(len(bodies)))])


def _respaced(statement):
    return "  " + statement.replace("\n", " \n ") + "\n"


def _numbers_only(problem):
    return all(re.fullmatch(r"[-\d\s]+", test["output"]) for test in problem.tests)


def _again(problem, problem_id, statement, tests=None):
    return Problem(
        problem_id=problem_id,
        source="elsewhere",
        title=problem_id,
        difficulty=problem.difficulty,
        statement=statement,
        starter_code=problem.starter_code,
        tests=tuple(problem.tests if tests is None else tests),
        judge=problem.judge,
        solutions=problem.solutions,
        metadata={},
        split=problem.split,
    )
