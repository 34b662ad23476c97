"""The input shapes that the families share: integers, lists of numbers, words, text and grids.

Draws use only `randrange`, `randint`, `choice` and `shuffle`, which give the same values in every supported Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from cobalt_data.embedded.family import Shape

WORDS = (
    "apple", "banana", "book", "cat", "car", "dog", "door", "egg", "fish", "good", "green", "hello", "house", "ice",
    "king", "kayak", "lemon", "level", "milk", "moon", "noon", "orange", "paper", "pizza", "queen", "radar", "river",
    "sky", "sleeping", "summer", "sun", "table", "tree", "umbrella", "under", "water", "window", "yellow", "zebra",
)  # fmt: skip
NAMES = ("Ann", "Ben", "Carla", "Dan", "Eve", "Finn", "Gina", "Hugo", "Ida", "Jack", "Kim", "Leo", "Mia", "Noah")
COUNT_WORDS = {2: "two", 3: "three", 4: "four"}


def listed(names: Sequence[str]) -> str:
    """`a and b`, `a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}"


def spaced(items: Sequence[object]) -> str:
    return " ".join(map(str, items))


# --- integers


def draw_integer(random: Random, low: int, high: int) -> int:
    """Uniform where the range is small; else every number of digits is as likely."""
    if high < 1000:
        return random.randint(low, high)
    return random.randint(low, max(low, 10 ** random.randint(1, len(str(high)) - 1)))


def integer(low: int, high: int) -> Shape:
    edges = {low, low + 1, high - 1, high} | ({0, 1, 10} & set(range(low, high)))
    return Shape(
        text=f"One integer n ({low} to {high}).",
        read="n = int(input())",
        draw=lambda random, size: str(draw_integer(random, low, high)),
        edges=tuple(map(str, sorted(edges))),
        near=lambda threshold: [str(n) for n in (threshold - 1, threshold, threshold + 1) if low <= n <= high],
    )


def count(high: int) -> Shape:
    """A number of things to print: small in public tests, so that prompts stay short."""
    return Shape(
        text=f"One integer n (1 to {high}).",
        read="n = int(input())",
        draw=lambda random, size: str(random.randint(1, min(high, 2 * size))),
        edges=("1", "2", "3", str(high - 1), str(high)),
    )


def integers(names: str, low: int, high: int, *, ordered: bool = False, lines: bool = False) -> Shape:
    """Integers of the given space-separated names; `ordered` ones never decrease, `lines` puts each on its own."""
    each = names.split()
    count = len(each)
    glue = "\n" if lines else " "

    def write(values: Sequence[int]) -> str:
        return glue.join(map(str, sorted(values) if ordered else values))

    def near(threshold: int) -> list[str]:
        zero = max(low, 0)
        ends = ((low, low + threshold), (zero, threshold), (zero, threshold + 1), (max(low, 1), threshold))
        return [write([*[first] * (count - 1), last]) for first, last in ends if last <= high]

    place = f"{COUNT_WORDS[count].capitalize()} lines with the" if lines else f"One line with {COUNT_WORDS[count]}"
    order = ", " + " <= ".join(each) if ordered else ""
    read = "\n".join(f"{name} = int(input())" for name in each)
    alternating = [low, high] * count
    edges = (
        [low] * count,
        [high] * count,
        alternating[:count],
        alternating[1 : count + 1],
        range(low + 1, low + 1 + count),
        range(1, count + 1),
        [max(low, 0)] * (count - 1) + [high],
        [high] + [max(low, 0)] * (count - 1),
    )
    return Shape(
        text=f"{place} integers {listed(each)} ({low} to {high}{order}).",
        read=read if lines else f"{', '.join(each)} = map(int, input().split())",
        draw=lambda random, size: write([random.randint(low, high) for _ in each]),
        edges=tuple(map(write, edges)),
        near=near,
    )


# --- lists of numbers, always read into `numbers`


def numbers_as(
    write: Callable[[Sequence[int]], str], text: str, read: str, low: int, high: int, least: int = 1
) -> Shape:
    """A list of numbers in the form that `write` gives it."""

    def draw(random: Random, size: int) -> str:
        return write([random.randint(low, high) for _ in range(random.randint(2, size))])

    def near(threshold: int) -> list[str]:
        lists = (
            [threshold - 1, threshold, threshold + 1],
            [1, threshold - 1],
            [1, threshold],
            [threshold // 2, threshold - threshold // 2],
        )
        return [write(numbers) for numbers in lists if low <= min(numbers) and max(numbers) <= high]

    ramp = list(range(low, high + 1, max(1, (high - low) // 5)))
    middle = (low + high) // 2
    several = ([low, high, low], [high] * 3, ramp, ramp[::-1], [middle, high, low, low, high])
    edges = several if least > 1 else ([low], [high], [middle], *several)
    return Shape(text=text, read=read, draw=draw, edges=tuple(map(write, edges)), near=near)


def row(low: int = -9, high: int = 20, *, least: int = 1) -> Shape:
    return numbers_as(
        spaced,
        text=f"One line with {'some' if least == 1 else f'at least {COUNT_WORDS[least]}'} integers ({low} to {high}).",
        read="numbers = list(map(int, input().split()))",
        low=low,
        high=high,
        least=least,
    )


def counted_row(low: int = -9, high: int = 20) -> Shape:
    return numbers_as(
        lambda numbers: f"{len(numbers)}\n{spaced(numbers)}",
        text=f"The first line has n. The second line has n integers ({low} to {high}).",
        read="n = int(input())\nnumbers = list(map(int, input().split()))",
        low=low,
        high=high,
    )


def counted_lines(low: int = -9, high: int = 20) -> Shape:
    return numbers_as(
        lambda numbers: "\n".join(map(str, [len(numbers), *numbers])),
        text=f"The first line has n. Each of the next n lines has one integer ({low} to {high}).",
        read="n = int(input())\nnumbers = [int(input()) for _ in range(n)]",
        low=low,
        high=high,
    )


def key_and_row(low: int = 0, high: int = 9) -> Shape:
    """A number k that is also a valid position (1 to the length of the list)."""

    def draw(random: Random, size: int) -> str:
        numbers = [random.randint(low, high) for _ in range(random.randint(3, size))]
        return f"{random.randint(1, len(numbers))}\n{spaced(numbers)}"

    return Shape(
        text=f"The first line has k. The second line has at least k integers ({low} to {high}).",
        read="k = int(input())\nnumbers = list(map(int, input().split()))",
        draw=draw,
        edges=("1\n1", f"1\n{low}", "3\n3 3 3", "2\n9 8 7 6 5 4 3 2 1", "4\n1 2 3 4", "1\n5 1 1 1 0 2"),
    )


# --- words and text


def draw_word(random: Random) -> str:
    kind = random.randrange(4)
    if kind == 0:
        return "".join(random.choice("abcde") for _ in range(random.randint(2, 6)))
    if kind == 1:
        half = "".join(random.choice("aelnst") for _ in range(random.randint(1, 3)))
        return half + half[::-1][random.randrange(2) :]
    return random.choice(WORDS)


WORD = Shape(
    text="One word of lowercase letters.",
    read="word = input()",
    draw=lambda random, size: draw_word(random),
    edges=("a", "z", "bb", "aeiou", "rhythm", "abcxyz", "that"),
)
TWO_WORDS = Shape(
    text="Two lines, each with one word of lowercase letters.",
    read="first = input()\nsecond = input()",
    draw=lambda random, size: f"{draw_word(random)}\n{draw_word(random)}",
    edges=("a\na", "a\nb", "ab\nba", "abc\nab", "on\nmoon", "water\nwater", "listen\nsilent"),
)
WORD_AND_COUNT = Shape(
    text="The first line has a word. The second line has an integer n (1 to 9).",
    read="word = input()\nn = int(input())",
    draw=lambda random, size: f"{random.choice(WORDS)}\n{random.randint(1, 9)}",
    edges=("a\n1", "ok\n1", "sun\n2", "a\n9"),
)


def draw_text(random: Random, size: int) -> str:
    """Words of mixed case and a few numbers, one space between them."""
    forms = (str, str, str.capitalize, str.upper, lambda word: str(len(word) * random.randint(1, 9)))
    return spaced([random.choice(forms)(draw_word(random)) for _ in range(random.randint(2, max(3, size // 2)))])


LINE = Shape(
    text="One line of text.",
    read="line = input()",
    draw=draw_text,
    edges=("a", "Z", "hello", "HELLO WORLD", "2 cats and 10 dogs", "e e e", "Rhythm 7"),
)
LINE_OF_WORDS = Shape(
    text="One line with lowercase words.",
    read="words = input().split()",
    draw=lambda random, size: spaced([draw_word(random) for _ in range(random.randint(2, max(4, size // 2)))]),
    edges=("a", "egg", "to be or not to be", "b a", "sun sun sun", "noon radar cat", "one three five seven"),
)


def draw_word_lines(random: Random, size: int) -> str:
    words = [draw_word(random) for _ in range(random.randint(2, max(4, size // 2)))]
    return "\n".join([str(len(words)), *words])


WORD_LINES = Shape(
    text="The first line has n. Each of the next n lines has one lowercase word.",
    read="n = int(input())\nwords = [input() for _ in range(n)]",
    draw=draw_word_lines,
    edges=("1\na", "1\nbanana", "2\nb\na", "3\nsun\nsun\nsun", "4\nab\nba\nabc\nc", "3\napple\nare\nend"),
)
