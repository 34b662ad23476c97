"""Families about a list and something else: a number k, a second list; and checks of a list and its length."""

from random import Random

from cobalt_data.embedded.family import INTEGERS, MEDIUM, Family, Shape, deciding, printing
from cobalt_data.embedded.shapes import (
    counted_row,
    key_and_row,
    spaced,
)

KEYED = key_and_row()
KEY_AND_LIST = Family(
    "key-and-list",
    (
        *printing(
            KEYED,
            {
                "occurrences": ("how often k appears in the list", "numbers.count(k)"),
                "element": ("the k-th integer of the list", "numbers[k - 1]"),
                "first-sum": ("the sum of the first k integers", "sum(numbers[:k])"),
                "greater": ("how many integers are greater than k", "sum(x > k for x in numbers)"),
                "smallest": ("the k-th smallest integer", "sorted(numbers)[k - 1]"),
                "largest-of-first": ("the largest of the first k integers", "max(numbers[:k])"),
                "best-window": (
                    "the largest sum of k integers next to each other",
                    "max(sum(numbers[i : i + k]) for i in range(len(numbers) - k + 1))",
                ),
            },
        ),
        *printing(
            KEYED,
            {
                "erased": ("the list with a 0 in place of its k-th integer", "*numbers[: k - 1], 0, *numbers[k:]"),
                "last": ("the last k integers in their order", "*numbers[-k:]"),
                "times": ("each integer times k", "*[k * x for x in numbers]"),
                "rotated": ("the integers with the first k moved to the end", "*numbers[k:], *numbers[:k]"),
                "every-kth": ("every k-th integer: the k-th, the 2k-th, the 3k-th, ...", "*numbers[k - 1 :: k]"),
            },
            output=INTEGERS,
        ),
    ),
)


def draw_two_rows(random: Random, size: int) -> str:
    length = random.randint(2, max(4, size // 2))
    return "\n".join(spaced([random.randint(0, 9) for _ in range(length)]) for _ in range(2))


TWO_ROWS = Shape(
    text="Two lines, each with the same number of integers (0 to 9).",
    read="first = list(map(int, input().split()))\nsecond = list(map(int, input().split()))",
    draw=draw_two_rows,
    edges=("0\n0", "3\n5", "1 2 3\n3 2 1", "4 4 4\n4 4 4", "9 8 7 6\n1 2 3 4", "1 1 2\n1 2 2"),
)
TWO_LISTS = Family(
    "two-lists",
    (
        *printing(
            TWO_ROWS,
            {
                "sums": ("the sum of the two integers at each position", "*[a + b for a, b in zip(first, second)]"),
                "larger": (
                    "the larger of the two integers at each position",
                    "*[max(a, b) for a, b in zip(first, second)]",
                ),
                "joined": ("the integers of the second line, then those of the first", "*second, *first"),
                "merged": ("all integers of both lines from smallest to largest", "*sorted(first + second)"),
                "woven": (
                    "one integer of the first line, one of the second, and so on in turns",
                    "*[x for pair in zip(first, second) for x in pair]",
                ),
            },
            output=INTEGERS,
            difficulty=MEDIUM,
        ),
        *printing(
            TWO_ROWS,
            {
                "total": ("the sum of all integers of both lines", "sum(first) + sum(second)"),
                "difference": ("the sum of the first line minus the sum of the second", "sum(first) - sum(second)"),
                "equal-places": (
                    "how many positions have the same integer in both lines",
                    "sum(a == b for a, b in zip(first, second))",
                ),
                "wins": (
                    "how many positions have a larger integer in the first line",
                    "sum(a > b for a, b in zip(first, second))",
                ),
                "dot": (
                    "the sum of the products of the two integers at each position",
                    "sum(a * b for a, b in zip(first, second))",
                ),
                "common": ("how many different integers are in both lines", "len(set(first) & set(second))"),
            },
            difficulty=MEDIUM,
        ),
    ),
)
CHECKED_LISTS = Family(
    "list-check",
    deciding(
        counted_row(1, 5),
        {
            "all-equal": ("all integers are equal", "len(set(numbers)) == 1"),
            "all-different": ("all integers are different", "len(set(numbers)) == n"),
            "has-three": ("3 is one of the integers", "3 in numbers"),
            "all-odd": ("none of the integers is even", "all(x % 2 for x in numbers)"),
            "even-count": ("n is even", "n % 2 == 0"),
            "sum-over-ten": ("the sum of the integers is greater than 10", "sum(numbers) > 10"),
            "sorted": ("no integer is smaller than the one before it", "numbers == sorted(numbers)"),
            "palindrome": ("the list reads the same from both ends", "numbers == numbers[::-1]"),
            "same-ends": ("the first and the last integer are the same", "numbers[0] == numbers[-1]"),
            "largest-last": ("the last integer is the largest", "numbers[-1] == max(numbers)"),
        },
        difficulty=MEDIUM,
    ),
)
FAMILIES = (KEY_AND_LIST, TWO_LISTS, CHECKED_LISTS)
