"""The normal form levels how a program is written and nothing that it means."""

import re

import pytest

from cobalt_data.normalise import NOT_PARSED, normalise_program, normalise_programs

ORIGINAL = '''
import sys
from math import gcd as divisor

def solve(numbers, start=0):
    """Sums what matters."""
    total = start  # running
    for value in numbers:
        if (half := value // 2) > 1:
            total += half
    return [total + item for item in numbers if item]

class Counter:
    limit = 3
    def count(self, values):
        return [v for v in values if v < self.limit]

try:
    print(solve([int(part) for part in sys.stdin.read().split()]), divisor(4, 6))
except ValueError as problem:
    print(problem)
'''

REWRITTEN = '''
import sys
from math import gcd as g
def f(xs, s = 0):
  t = s
  for x in xs:
    if (h := x//2)>1: t += h
  return [(t + y) for y in xs if y]
class C:
  """Counts."""
  limit = 3
  def count(this, vs): return [x for x in vs if x < this.limit]
try: print(f([int(p) for p in sys.stdin.read().split()]), g(4, 6))
except ValueError as e: print(e)
'''


def test_formatting_comments_docstrings_and_own_names_are_levelled():
    assert normalise_program(ORIGINAL) == normalise_program(REWRITTEN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("print(1)", "print(2)"),
        ("a = 1\nb = 2\nprint(a)", "a = 1\nb = 2\nprint(b)"),
        ("def f(x): return x\nprint(f(1))", "def f(x): return x\nprint(g(1))"),
        ("print(sum([1]))", "print(max([1]))"),
        ("import os\nprint(os)", "import re\nprint(re)"),
        ("from math import pi\nprint(pi)", "from math import e\nprint(e)"),
        ("def f(a, b): return a - b\nprint(f(a=1, b=2))", "def f(b, a): return b - a\nprint(f(a=1, b=2))"),
        ("class A:\n x = 1\nprint(A.x)", "class A:\n y = 1\nprint(A.x)"),
        ("x = 1\nclass A:\n y = x\nprint(A.y)", "x = 1\nclass A:\n y = y\nprint(A.y)"),
        ("def f():\n sum = 0\ndef g(): return sum([1])", "def f():\n s = 0\ndef g(): return s([1])"),
        ("x = 1\ndef f():\n global x\n x = 2\nf()\nprint(x)", "x = 1\ndef f():\n x = 2\nf()\nprint(x)"),
        ("x = 1\ndef f():\n global x\n x = 2\nf()\nprint(x)", "x = 1\ndef f():\n global y\n y = 2\nf()\nprint(x)"),
        ("a = 1\nprint(eval('a'))", "b = 1\nprint(eval('a'))"),
        ("v = 1\nprint(f'{v=}')", "w = 1\nprint(f'{w=}')"),
        ("'a'\nprint(__doc__)", "'b'\nprint(__doc__)"),
        ("def f(): 'a'\nprint(f.__doc__)", "def f(): 'b'\nprint(f.__doc__)"),
        ("def f(): pass\nprint(f.__name__)", "def g(): pass\nprint(g.__name__)"),
        ("class A: pass\nprint(type(A()).__name__)", "class B: pass\nprint(type(B()).__name__)"),
        ("class A: print(__qualname__)", "class B: print(__qualname__)"),
        ("def f(x): print(x)\nf(**{'x': 1})", "def f(y): print(y)\nf(**{'x': 1})"),
        ("def f(x): print(x)\nf(**eval_input())", "def f(y): print(y)\nf(**eval_input())"),
        ("import sys\nfoo = 1\nprint(getattr(sys, 'foo', 0))", "import sys\nbar = 1\nprint(getattr(sys, 'foo', 0))"),
        ("import sys\nfoo = 1\nsys.modules['m'].foo", "import sys\nbar = 1\nsys.modules['m'].foo"),
        ("@dataclass\nclass A: x: int\nprint(A(1))", "@dataclass\nclass B: x: int\nprint(B(1))"),
        ("class A(Enum): x = 1\nprint(A.x)", "class B(Enum): x = 1\nprint(B.x)"),
        ("print('a')", "print('b')"),
        ("if a:\n b()\n c()", "if a:\n b()\nc()"),
    ],
)
def test_programs_that_mean_different_things_stay_different(one, other):
    assert normalise_program(one) != normalise_program(other)


def test_running_as_the_main_module_is_no_way_to_look_names_up():
    one = "def f(a):\n 'Doubles.'\n return a * 2\nif __name__ == '__main__': print(f(1))"
    other = "def g(b): return b * 2\nif __name__ == '__main__': print(g(1))"
    assert normalise_program(one) == normalise_program(other)


def test_names_are_told_apart_scope_by_scope():
    one = "def f(a):\n return a\ndef g(a):\n return a"
    other = "def f(x):\n return x\ndef g(y):\n return y"
    assert normalise_program(one) == normalise_program(other)


def test_nonlocal_and_match_names_are_the_programs_own():
    one = "def f():\n n = 0\n def g():\n  nonlocal n\n  n += 1\n return g\nmatch [1]:\n case [first, *rest]: print(first, rest)"
    other = re.sub(r"\b(first|rest|n)\b", lambda name: f"other_{name[0]}", one)
    assert normalise_program(one) == normalise_program(other)


@pytest.mark.parametrize(
    "program",
    [
        "global n\nn = 1\nprint(n)",
        "def f():\n def g():\n  nonlocal n\n  import n\n n = 1\n",
        "def f():\n nonlocal n\n import n\n",
    ],
)
def test_a_name_that_is_declared_where_it_cannot_be_or_bound_only_later_is_no_obstacle(program):
    assert not normalise_program(program).startswith(NOT_PARSED)
    assert normalise_programs([(program, ())]) == [normalise_program(program)]


def test_the_entry_point_keeps_its_name():
    one, other = "def add(a, b): return a + b", "def plus(a, b): return a + b"
    assert normalise_program(one) == normalise_program(other)
    assert normalise_program(one, keep=["add"]) != normalise_program(other, keep=["add"])


@pytest.mark.parametrize(
    "hostile", ["def f(:  x", "(" * 5000, "-" * 50_000 + "x", "x" + "+1" * 50_000, "\0", "\ud800", "x = 0777"]
)
def test_what_does_not_parse_keeps_its_text_white_space_aside(hostile):
    form = normalise_program(hostile)
    assert form == normalise_program(f"  {hostile}\n\n") and " ".join(hostile.split()) in form
    assert form != normalise_program(hostile + "x")


def test_a_program_that_does_not_parse_is_no_duplicate_of_one_that_does():
    assert normalise_program(" print(1)") != normalise_program("print(1)")


def test_an_empty_program_and_one_of_comments_are_the_same():
    assert normalise_program("") == normalise_program("# nothing") == normalise_program("'''text'''")
