"""Families about one list of numbers: summing, counting, choosing and changing its numbers.

The selecting families are made of two parts, a property of a number and what to do with the numbers that have it.
"""

from cobalt_data.embedded.family import INTEGERS, MEDIUM, Family, printing, tasks
from cobalt_data.embedded.shapes import counted_lines, counted_row, row

NUMBERS = row()
SEVERAL = row(least=2)
NARROW = row(1, 6)

PROPERTIES = {
    "even": ("even", "x % 2 == 0"),
    "odd": ("odd", "x % 2 == 1"),
    "positive": ("greater than 0", "x > 0"),
    "negative": ("less than 0", "x < 0"),
    "over-ten": ("greater than 10", "x > 10"),
    "below-five": ("less than 5", "x < 5"),
    "threes": ("multiples of 3", "x % 3 == 0"),
    "not-fours": ("not multiples of 4", "x % 4 != 0"),
    "middling": ("at least 3 and at most 12", "3 <= x <= 12"),
    "outer": ("less than 0 or greater than 9", "x < 0 or x > 9"),
}

SUMMARY = Family(
    "list-summary",
    (
        *printing(
            NUMBERS,
            {
                "sum": ("the sum of the integers", "sum(numbers)"),
                "largest": ("the largest integer", "max(numbers)"),
                "smallest": ("the smallest integer", "min(numbers)"),
                "count": ("how many integers there are", "len(numbers)"),
                "first": ("the first integer", "numbers[0]"),
                "last": ("the last integer", "numbers[-1]"),
                "range": ("the largest integer minus the smallest", "max(numbers) - min(numbers)"),
                "ends": ("the sum of the first and the last integer", "numbers[0] + numbers[-1]"),
                "average": ("the average of the integers, rounded down", "sum(numbers) // len(numbers)"),
                "squares": ("the sum of the squares of the integers", "sum(x * x for x in numbers)"),
                "absolutes": ("the sum of the absolute values of the integers", "sum(abs(x) for x in numbers)"),
                "different": ("how many different integers there are", "len(set(numbers))"),
            },
        ),
        *printing(
            SEVERAL,
            {
                "second-largest": ("the second largest integer (equal ones count separately)", "sorted(numbers)[-2]"),
                "without-largest": ("the sum of all integers but the largest one", "sum(numbers) - max(numbers)"),
                "two-smallest": ("the sum of the two smallest integers", "sum(sorted(numbers)[:2])"),
            },
            difficulty=MEDIUM,
        ),
    ),
)
COUNT_MATCHING = Family(
    "count-matching",
    printing(
        counted_row(),
        {
            name: (f"how many of the integers are {words}", f"sum({test} for x in numbers)")
            for name, (words, test) in PROPERTIES.items()
        },
    ),
)
SUM_MATCHING = Family(
    "sum-matching",
    printing(
        NUMBERS,
        {
            name: (f"the sum of the integers that are {words}", f"sum(x for x in numbers if {test})")
            for name, (words, test) in PROPERTIES.items()
        },
    ),
)
KEEP_MATCHING = Family(
    "keep-matching",
    tasks(
        counted_lines(),
        {
            name: (
                f"Print the integers that are {words}, in their order.",
                f"for x in numbers:\n    if {test}:\n        print(x)",
            )
            for name, (words, test) in PROPERTIES.items()
        },
        output="One integer per line.",
        difficulty=MEDIUM,
    ),
)
LARGEST_MATCHING = Family(
    "largest-matching",
    printing(
        NUMBERS,
        {
            name: (
                f"the {extreme} of the integers that are {words}, or none if there are none",
                f'{function}((x for x in numbers if {test}), default="none")',
            )
            for (name, (words, test)), (extreme, function) in zip(
                PROPERTIES.items(), [("smallest", "min"), ("largest", "max")] * 5, strict=True
            )
        },
        output="One integer, or none.",
        difficulty=MEDIUM,
    ),
)
EACH_NUMBER = Family(
    "each-number",
    (
        *printing(
            NUMBERS,
            {
                name: (f"for each integer {words}", f"*[{change} for x in numbers]")
                for name, (words, change) in {
                    "doubled": ("its double", "2 * x"),
                    "plus-one": ("the integer plus 1", "x + 1"),
                    "squared": ("its square", "x * x"),
                    "negated": ("the integer with its sign changed", "-x"),
                    "absolute": ("its absolute value", "abs(x)"),
                    "last-digit": ("its remainder when divided by 10 (from 0 to 9)", "x % 10"),
                    "at-most-ten": ("the integer, but 10 if it is greater than 10", "min(x, 10)"),
                    "halved": ("half of it, rounded down", "x // 2"),
                    "no-negatives": ("the integer, but 0 if it is negative", "max(x, 0)"),
                }.items()
            },
            output=INTEGERS,
        ),
        *printing(
            NUMBERS,
            {
                "halve-evens": (
                    "the integers, but each even one divided by 2",
                    "*[x // 2 if x % 2 == 0 else x for x in numbers]",
                ),
                "minus-smallest": ("each integer minus the smallest one", "*[x - min(numbers) for x in numbers]"),
                "times-position": (
                    "each integer times its position (1, 2, 3, ...)",
                    "*[i * x for i, x in enumerate(numbers, 1)]",
                ),
                "distance": (
                    "the distance of each integer to the first one",
                    "*[abs(x - numbers[0]) for x in numbers]",
                ),
            },
            output=INTEGERS,
            difficulty=MEDIUM,
        ),
    ),
)
REORDERING = Family(
    "reordering",
    (
        *printing(
            SEVERAL,
            {
                "reversed": ("the integers in reverse order", "*numbers[::-1]"),
                "sorted": ("the integers from smallest to largest", "*sorted(numbers)"),
                "falling": ("the integers from largest to smallest", "*sorted(numbers, reverse=True)"),
                "without-first": ("all integers but the first", "*numbers[1:]"),
                "every-second": ("the first, third, fifth, ... integer", "*numbers[::2]"),
                "twice": ("the list of integers twice, one after the other", "*numbers, *numbers"),
                "first-to-end": ("the integers with the first one moved to the end", "*numbers[1:], numbers[0]"),
                "last-to-front": ("the integers with the last one moved to the front", "numbers[-1], *numbers[:-1]"),
            },
            output=INTEGERS,
        ),
        *printing(
            SEVERAL,
            {
                "evens-first": (
                    "the even integers, then the odd ones, in their order",
                    "*sorted(numbers, key=lambda x: x % 2)",
                ),
                "by-last-digit": (
                    "the integers sorted by their remainder modulo 5, keeping the order of equal ones",
                    "*sorted(numbers, key=lambda x: x % 5)",
                ),
                "ends-swapped": (
                    "the integers with the first and the last one swapped",
                    "numbers[-1], *numbers[1:-1], numbers[0]",
                ),
                "mirrored": ("the integers, then again in reverse order", "*numbers, *numbers[::-1]"),
                "different-sorted": ("the different integers from smallest to largest", "*sorted(set(numbers))"),
                "first-of-each": ("the integers without those that came before", "*dict.fromkeys(numbers)"),
            },
            output=INTEGERS,
            difficulty=MEDIUM,
        ),
    ),
)
POSITIONS = Family(
    "positions",
    printing(
        NARROW,
        {
            "of-largest": (
                "the position of the largest integer, the first if there are several",
                "numbers.index(max(numbers)) + 1",
            ),
            "of-smallest": (
                "the position of the smallest integer, the first if there are several",
                "numbers.index(min(numbers)) + 1",
            ),
            "last-of-largest": (
                "the position of the largest integer, the last if there are several",
                "len(numbers) - numbers[::-1].index(max(numbers))",
            ),
            "first-even": (
                "the position of the first even integer, or 0 if there is none",
                "next((i for i, x in enumerate(numbers, 1) if x % 2 == 0), 0)",
            ),
            "last-odd": (
                "the position of the last odd integer, or 0 if there is none",
                "max((i for i, x in enumerate(numbers, 1) if x % 2), default=0)",
            ),
            "fixed-points": (
                "how many integers are equal to their position",
                "sum(x == i for i, x in enumerate(numbers, 1))",
            ),
            "first-repeat": (
                "the position of the first integer that appeared before, or 0 if there is none",
                "next((i + 1 for i, x in enumerate(numbers) if x in numbers[:i]), 0)",
            ),
            "even-places": ("the sum of the integers at positions 2, 4, 6, ...", "sum(numbers[1::2])"),
            "over-ten": (
                "after how many integers their sum is first at least 10, or 0 if it never is",
                "next((i for i in range(len(numbers) + 1) if sum(numbers[:i]) >= 10), 0)",
            ),
        },
        difficulty=MEDIUM,
    ),
)
FAMILIES = (
    SUMMARY,
    COUNT_MATCHING,
    SUM_MATCHING,
    KEEP_MATCHING,
    LARGEST_MATCHING,
    EACH_NUMBER,
    REORDERING,
    POSITIONS,
)
