"""Families about how the numbers of one list relate to each other: neighbours, runs, pairs, frequencies."""

from cobalt_data.embedded.family import HARD, INTEGERS, MEDIUM, Family, deciding, printing, tasks
from cobalt_data.embedded.shapes import row

SEVERAL = row(least=2)
DIGIT_ROW = row(1, 5)
NEIGHBOURS = Family(
    "neighbours",
    (
        *printing(
            SEVERAL,
            {
                "differences": (
                    "each integer minus the one before it, from the second on",
                    "*[b - a for a, b in zip(numbers, numbers[1:])]",
                ),
                "sums": ("the sum of each two neighbours", "*[a + b for a, b in zip(numbers, numbers[1:])]"),
                "running": (
                    "for each integer the sum of all integers up to it",
                    "*[sum(numbers[: i + 1]) for i in range(len(numbers))]",
                ),
                "highest-so-far": (
                    "for each integer the largest one up to it",
                    "*[max(numbers[: i + 1]) for i in range(len(numbers))]",
                ),
                "larger-of-two": (
                    "the larger one of each two neighbours",
                    "*[max(a, b) for a, b in zip(numbers, numbers[1:])]",
                ),
            },
            output=INTEGERS,
            difficulty=MEDIUM,
        ),
        *printing(
            SEVERAL,
            {
                "rises": (
                    "how many integers are greater than the one before",
                    "sum(a < b for a, b in zip(numbers, numbers[1:]))",
                ),
                "small-rises": (
                    "how many integers are equal to the one before or one more",
                    "sum(b - a in (0, 1) for a, b in zip(numbers, numbers[1:]))",
                ),
                "largest-step": (
                    "the largest absolute difference of two neighbours",
                    "max(abs(a - b) for a, b in zip(numbers, numbers[1:]))",
                ),
                "peaks": (
                    "how many integers are greater than both of their neighbours (those at the ends do not count)",
                    "sum(a < b > c for a, b, c in zip(numbers, numbers[1:], numbers[2:]))",
                ),
                "path": (
                    "the sum of the absolute differences of all neighbours",
                    "sum(abs(a - b) for a, b in zip(numbers, numbers[1:]))",
                ),
            },
            difficulty=MEDIUM,
        ),
        *deciding(
            SEVERAL,
            {
                "rising": (
                    "each integer is greater than the one before",
                    "all(a < b for a, b in zip(numbers, numbers[1:]))",
                )
            },
            difficulty=MEDIUM,
        ),
    ),
    held_out=True,
)


def longest_run(goes_on: str) -> str:
    """A program for the longest stretch in which every number `b` goes on from the one before it, `a`."""
    return f"""
    best = length = 1
    for a, b in zip(numbers, numbers[1:]):
        length = length + 1 if {goes_on} else 1
        best = max(best, length)
    print(best)
    """


RUNS = Family(
    "runs",
    (
        *tasks(
            DIGIT_ROW,
            {
                "equal": (
                    "Print the length of the longest run of equal integers next to each other.",
                    longest_run("a == b"),
                ),
                "rising": (
                    "Print the length of the longest stretch in which every integer is greater than the one before.",
                    longest_run("a < b"),
                ),
                "not-falling": (
                    "Print the length of the longest stretch in which no integer is smaller than the one before.",
                    longest_run("a <= b"),
                ),
                "alternating": (
                    "Print the length of the longest stretch in which even and odd integers alternate.",
                    longest_run("(a + b) % 2 == 1"),
                ),
                "small-steps": (
                    "Print the length of the longest stretch in which neighbours differ by at most 1.",
                    longest_run("abs(a - b) <= 1"),
                ),
            },
            difficulty=HARD,
        ),
        *printing(
            DIGIT_ROW,
            {
                "count": (
                    "the number of runs of equal integers; 1 1 2 1 has 3 runs",
                    "1 + sum(a != b for a, b in zip(numbers, numbers[1:]))",
                ),
                "squeezed": (
                    "one integer for each run of equal integers; 1 1 2 1 becomes 1 2 1",
                    "*[b for a, b in zip([0, *numbers], numbers) if a != b]",
                ),
            },
            output=INTEGERS,
            difficulty=MEDIUM,
        ),
        *tasks(
            DIGIT_ROW,
            {
                "best-sum": (
                    "Print the largest sum of integers next to each other after 3 is subtracted from each. Choose at least one.",
                    """
                    best = total = numbers[0] - 3
                    for number in numbers[1:]:
                        total = max(total, 0) + number - 3
                        best = max(best, total)
                    print(best)
                    """,
                ),
            },
            difficulty=HARD,
        ),
    ),
)
PAIRS = Family(
    "pairs",
    tasks(
        row(1, 9, least=2),
        {
            name: (
                f"Count the pairs of integers (at two different positions) {words}.",
                f"from itertools import combinations\n\nprint(sum({test} for a, b in combinations(numbers, 2)))",
            )
            for name, (words, test) in {
                "sum-ten": ("whose sum is 10", "a + b == 10"),
                "equal": ("that are equal", "a == b"),
                "different": ("that are different", "a != b"),
                "even-sum": ("whose sum is even", "(a + b) % 2 == 0"),
                "falling": ("where the first one is greater than the second", "a > b"),
                "dividing": ("where the first one divides the second", "b % a == 0"),
                "close": ("that differ by at most 2", "abs(a - b) <= 2"),
                "large-product": ("whose product is greater than 20", "a * b > 20"),
            }.items()
        },
        difficulty=HARD,
    ),
)
FREQUENCIES = Family(
    "frequencies",
    (
        *printing(
            DIGIT_ROW,
            {
                "of-largest": ("how often the largest integer appears", "numbers.count(max(numbers))"),
                "of-first": ("how often the first integer appears", "numbers.count(numbers[0])"),
                "highest": ("how often the most frequent integer appears", "max(map(numbers.count, numbers))"),
                "mode": (
                    "the most frequent integer, the smallest if there are several",
                    "max(sorted(set(numbers)), key=numbers.count)",
                ),
                "singles": ("how many integers appear exactly once", "sum(numbers.count(x) == 1 for x in numbers)"),
                "repeated": (
                    "how many different integers appear more than once",
                    "sum(numbers.count(x) > 1 for x in set(numbers))",
                ),
                "missing": (
                    "the smallest positive integer that is not in the list",
                    "min(x for x in range(1, 7) if x not in numbers)",
                ),
            },
            difficulty=MEDIUM,
        ),
        *printing(
            DIGIT_ROW,
            {
                "table": ("how often 1, 2, 3, 4 and 5 appear, in this order", "*map(numbers.count, range(1, 6))"),
                "absent": (
                    "the integers from 1 to 6 that are not in the list",
                    "*[x for x in range(1, 7) if x not in numbers]",
                ),
                "by-count": (
                    "the different integers, the most frequent first and smaller ones first among equally frequent",
                    "*sorted(set(numbers), key=lambda x: (-numbers.count(x), x))",
                ),
            },
            output=INTEGERS,
            difficulty=HARD,
        ),
    ),
)
FAMILIES = (NEIGHBOURS, RUNS, PAIRS, FREQUENCIES)
