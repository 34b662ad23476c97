"""Families about the arithmetic of one, two or three integers."""

from cobalt_data.embedded.family import INTEGERS, MEDIUM, Family, printing
from cobalt_data.embedded.shapes import integer, integers

SIGNED = integer(-50, 50)
PAIR = integers("a b", -30, 30)
PAIR_ON_LINES = integers("a b", 1, 40, lines=True)
TRIPLE = integers("a b c", -20, 20)
AMOUNT = integer(0, 10000)

ONE_INTEGER = Family(
    "one-integer",
    printing(
        SIGNED,
        {
            "next": ("n plus 1", "n + 1"),
            "double": ("two times n", "2 * n"),
            "square": ("n times n", "n * n"),
            "ten-less": ("n minus 10", "n - 10"),
            "negated": ("n with its sign changed", "-n"),
            "absolute": ("the absolute value of n", "abs(n)"),
            "five-times": ("five times n", "5 * n"),
            "cube": ("n to the power of 3", "n**3"),
            "double-and-one": ("two times n, plus 1", "2 * n + 1"),
            "hundred-minus": ("100 minus n", "100 - n"),
            "square-plus-itself": ("the square of n plus n", "n * n + n"),
            "halves": ("n divided by 2, rounded down", "n // 2"),
        },
    ),
)
TWO_INTEGERS = Family(
    "two-integers",
    printing(
        PAIR,
        {
            "sum": ("the sum of a and b", "a + b"),
            "difference": ("a minus b", "a - b"),
            "product": ("a times b", "a * b"),
            "larger": ("the larger of a and b", "max(a, b)"),
            "smaller": ("the smaller of a and b", "min(a, b)"),
            "distance": ("the absolute difference of a and b", "abs(a - b)"),
            "sum-of-squares": ("the square of a plus the square of b", "a * a + b * b"),
            "a-plus-double-b": ("a plus two times b", "a + 2 * b"),
            "product-minus-sum": ("the product of a and b minus their sum", "a * b - (a + b)"),
            "square-of-sum": ("the square of the sum of a and b", "(a + b) ** 2"),
            "sum-and-ten": ("a plus b plus 10", "a + b + 10"),
        },
    ),
)
TWO_LINES = Family(
    "two-lines",
    (
        *printing(
            PAIR_ON_LINES,
            {
                "sum": ("the sum of a and b", "a + b"),
                "product": ("a times b", "a * b"),
                "remainder": ("the remainder of a divided by b", "a % b"),
                "quotient": ("a divided by b, rounded down", "a // b"),
                "perimeter": ("the perimeter of a rectangle with sides a and b", "2 * (a + b)"),
                "half-of-product": ("half of a times b, rounded down", "a * b // 2"),
                "average": ("the average of a and b, rounded down", "(a + b) // 2"),
                "double-a-minus-b": ("two times a, minus b", "2 * a - b"),
            },
        ),
        *printing(
            PAIR_ON_LINES,
            {
                "swapped": ("b and then a", "b, a"),
                "sum-and-product": ("the sum and the product of a and b", "a + b, a * b"),
                "ordered": ("the smaller number, then the larger one", "min(a, b), max(a, b)"),
            },
            output="Two integers on one line.",
        ),
    ),
)
THREE_INTEGERS = Family(
    "three-integers",
    (
        *printing(
            TRIPLE,
            {
                "sum": ("the sum of the three integers", "a + b + c"),
                "largest": ("the largest of the three integers", "max(a, b, c)"),
                "smallest": ("the smallest of the three integers", "min(a, b, c)"),
                "product": ("the product of the three integers", "a * b * c"),
                "a-plus-b-minus-c": ("a plus b minus c", "a + b - c"),
                "range": ("the largest minus the smallest of the integers", "max(a, b, c) - min(a, b, c)"),
                "middle": ("the middle one of the three integers in sorted order", "sorted([a, b, c])[1]"),
                "two-largest": ("the sum of the two largest integers", "a + b + c - min(a, b, c)"),
                "evens": ("how many of the three integers are even", "(a % 2 == 0) + (b % 2 == 0) + (c % 2 == 0)"),
                "product-plus-last": ("a times b, plus c", "a * b + c"),
            },
        ),
        *printing(
            TRIPLE,
            {
                "reversed": ("c, b and a in this order", "c, b, a"),
                "sorted": ("the three integers from smallest to largest", "*sorted([a, b, c])"),
            },
            output=INTEGERS,
        ),
    ),
    held_out=True,
)
UNITS = Family(
    "units",
    (
        *printing(
            AMOUNT,
            {
                "minutes-to-seconds": ("how many seconds n minutes have", "n * 60"),
                "whole-weeks": ("how many whole weeks n days have", "n // 7"),
                "boxes": ("how many boxes are needed for n eggs when a box holds 6", "(n + 5) // 6"),
                "left-over": ("how many of n eggs are left after filling boxes of 10", "n % 10"),
                "kilometres": ("how many metres n kilometres are", "n * 1000"),
                "clock-hour": ("the hour (0 to 23) that a clock shows n hours after midnight", "n % 24"),
            },
        ),
        *printing(
            AMOUNT,
            {
                "hours-minutes": ("n minutes as hours and minutes", "n // 60, n % 60"),
                "euros-cents": ("n cents as whole euros and cents", "n // 100, n % 100"),
                "weeks-days": ("n days as weeks and days", "n // 7, n % 7"),
                "dozens": ("n eggs as dozens and single eggs", "n // 12, n % 12"),
            },
            output="Two integers on one line.",
        ),
        *printing(
            AMOUNT,
            {"hours-minutes-seconds": ("n seconds as hours, minutes and seconds", "n // 3600, n // 60 % 60, n % 60")},
            output="Three integers on one line.",
            difficulty=MEDIUM,
        ),
    ),
)
FAMILIES = (ONE_INTEGER, TWO_INTEGERS, TWO_LINES, THREE_INTEGERS, UNITS)
