"""Families that choose between cases: comparing, classifying, prices with thresholds, dates and times."""

from random import Random

from cobalt_data.embedded.family import MEDIUM, Family, Shape, deciding, printing, tasks
from cobalt_data.embedded.shapes import integer, integers

CLOSE_PAIR = integers("a b", -9, 9)
SMALL_PAIR = integers("a b", 1, 12)
SIDES = integers("a b c", 1, 5)
ANY = integer(-20, 60)
AGE = integer(0, 99)
COUNT = integer(0, 300)
ONE_WORD = "One word."

COMPARING = Family(
    "comparing",
    (
        *deciding(
            CLOSE_PAIR,
            {
                "a-greater": ("a is greater than b", "a > b"),
                "same-sign": ("a and b are both positive", "a > 0 and b > 0"),
                "even-sum": ("the sum of a and b is even", "(a + b) % 2 == 0"),
                "close": ("a and b differ by at most 5", "abs(a - b) <= 5"),
                "one-negative": ("at least one of a and b is negative", "a < 0 or b < 0"),
                "sum-over-five": ("a plus b is greater than 5", "a + b > 5"),
                "neighbours": ("b is a + 1 or a - 1", "abs(a - b) == 1"),
            },
        ),
        *deciding(
            SMALL_PAIR,
            {
                "divides": ("a is a multiple of b", "a % b == 0"),
                "double": ("one of the numbers is at least twice the other", "a >= 2 * b or b >= 2 * a"),
            },
        ),
        *printing(
            CLOSE_PAIR,
            {
                "word": (
                    "less if a < b, greater if a > b, and equal if they are the same",
                    '"less" if a < b else "greater" if a > b else "equal"',
                ),
                "winner": (
                    "first if a is larger, second if b is larger, and draw if they are equal",
                    '"first" if a > b else "second" if b > a else "draw"',
                ),
                "parities": (
                    "same if a and b are both even or both odd, otherwise different",
                    '"same" if a % 2 == b % 2 else "different"',
                ),
            },
            output=ONE_WORD,
        ),
    ),
)
CLASSIFYING = Family(
    "classifying",
    (
        *printing(
            ANY,
            {
                "parity": ("even if n is even and odd if n is odd", '"even" if n % 2 == 0 else "odd"'),
                "sign": (
                    "positive, negative or zero, whichever n is",
                    '"positive" if n > 0 else "negative" if n < 0 else "zero"',
                ),
                "weather": (
                    "cold if n is below 10, hot if n is above 25, and warm otherwise",
                    '"cold" if n < 10 else "hot" if n > 25 else "warm"',
                ),
                "freezing": ("ice if n is 0 or less, otherwise water", '"ice" if n <= 0 else "water"'),
                "size": ("big if n is greater than 30, otherwise small", '"big" if n > 30 else "small"'),
                "remainder": (
                    "red, green or blue if n divided by 3 leaves 0, 1 or 2",
                    '["red", "green", "blue"][n % 3]',
                ),
            },
            output=ONE_WORD,
        ),
        *printing(
            AGE,
            {
                "age": ("child if the age n is below 18, otherwise adult", '"child" if n < 18 else "adult"'),
                "passed": ("pass if the score n is at least 50, otherwise fail", '"pass" if n >= 50 else "fail"'),
                "grade": (
                    "A if the score n is 90 or more, B if 75 or more, C if 50 or more, otherwise F",
                    '"A" if n >= 90 else "B" if n >= 75 else "C" if n >= 50 else "F"',
                ),
                "last-digit": (
                    "low if the last digit of n is 0 to 4, otherwise high",
                    '"low" if n % 10 < 5 else "high"',
                ),
            },
            output=ONE_WORD,
        ),
    ),
    held_out=True,
)
TRIANGLES = Family(
    "three-sides",
    (
        *deciding(
            SIDES,
            {
                "increasing": ("a < b < c", "a < b < c"),
                "all-different": ("a, b and c are all different", "len({a, b, c}) == 3"),
                "two-equal": ("at least two of a, b and c are equal", "len({a, b, c}) < 3"),
                "sum": ("one of a, b and c is the sum of the other two", "2 * max(a, b, c) == a + b + c"),
                "middle": ("b is the average of a and c", "2 * b == a + c"),
                "triangle": (
                    "each of a, b and c is smaller than the sum of the other two",
                    "2 * max(a, b, c) < a + b + c",
                ),
                "right-angle": (
                    "a triangle with sides a, b and c has a right angle",
                    "2 * max(a, b, c) ** 2 == a * a + b * b + c * c",
                ),
                "peak": ("b is greater than a and greater than c", "b > a and b > c"),
            },
            difficulty=MEDIUM,
        ),
        *printing(
            SIDES,
            {
                "kind": (
                    "equilateral if all sides are equal, isosceles if exactly two are, otherwise scalene",
                    '["equilateral", "isosceles", "scalene"][len({a, b, c}) - 1]',
                ),
                "order": (
                    "up if a < b < c, down if a > b > c, otherwise mixed",
                    '"up" if a < b < c else "down" if a > b > c else "mixed"',
                ),
                "most": (
                    "the largest of a, b and c; print tie if it appears more than once",
                    '"tie" if [a, b, c].count(max(a, b, c)) > 1 else max(a, b, c)',
                ),
            },
            output="One word or number.",
            difficulty=MEDIUM,
        ),
    ),
)
PRICES = Family(
    "prices",
    printing(
        COUNT,
        {
            "price": ("the price of n pens that cost 3 euros each", "3 * n"),
            "with-delivery": ("the price of n books at 8 euros each plus 5 euros for delivery", "8 * n + 5"),
            "child-ticket": ("the ticket price at age n: 5 below 12 years, otherwise 10", "5 if n < 12 else 10"),
            "bulk": ("the price of n nails: 3 each, or 2 each for 10 nails or more", "2 * n if n >= 10 else 3 * n"),
            "taxi": ("the price of a taxi ride of n km: 4 euros plus 2 per km", "4 + 2 * n"),
            "parking": (
                "the price of parking for n hours: the first hour is free, then 2 per hour",
                "max(0, n - 1) * 2",
            ),
            "discount": ("what is paid for n euros: from 100 euros on, 10 are taken off", "n - 10 if n >= 100 else n"),
            "free-delivery": (
                "what is paid for n euros: 6 more for delivery, but delivery is free from 50 euros on",
                "n if n >= 50 else n + 6",
            ),
            "three-for-two": ("the price of n cakes at 4 euros each when every third cake is free", "4 * (n - n // 3)"),
            "overtime": (
                "the pay for n hours: 10 per hour, and 15 for each hour after the first 40",
                "10 * n + 5 * max(0, n - 40)",
            ),
            "tiers": (
                "the price of n units of power: 1 each for the first 50, 2 each for the next 100, 3 each after that",
                "n + max(0, n - 50) + max(0, n - 150)",
            ),
        },
    ),
)


def draw_time(random: Random, size: int) -> str:
    return f"{random.randint(0, 23)} {random.randint(0, 59)}"


TIME = Shape(
    text="One line with two integers h and m: the hour (0 to 23) and the minute (0 to 59).",
    read="h, m = map(int, input().split())",
    draw=draw_time,
    edges=("0 0", "23 59", "12 0", "11 59", "17 59", "18 0"),
)
TIMES = Family(
    "clock",
    (
        *printing(
            TIME,
            {
                "minutes": ("how many minutes have passed since midnight", "60 * h + m"),
                "to-midnight": ("how many minutes are left until midnight", "1440 - 60 * h - m"),
                "next-minute": ("the hour and the minute one minute later", "(h + (m + 1) // 60) % 24, (m + 1) % 60"),
                "hour-later": ("the hour and the minute one hour later", "(h + 1) % 24, m"),
                "half-hour-earlier": (
                    "the hour and the minute 30 minutes earlier",
                    "(h * 60 + m - 30) // 60 % 24, (m + 30) % 60",
                ),
                "digital": ("the time as hh:mm with two digits each", 'f"{h:02d}:{m:02d}"'),
                "part-of-day": (
                    "morning if the hour is below 12, evening if it is 18 or more, otherwise afternoon",
                    '"morning" if h < 12 else "evening" if h >= 18 else "afternoon"',
                ),
                "twelve-hours": (
                    "the hour on a 12-hour clock (1 to 12), then am before noon and pm from noon on",
                    '(h + 11) % 12 + 1, "am" if h < 12 else "pm"',
                ),
            },
            output="The answer on one line.",
            difficulty=MEDIUM,
        ),
        *tasks(
            Shape(
                text="One integer n, a year (1900 to 2100).",
                read="n = int(input())",
                draw=lambda random, size: str(random.randint(1900, 2100)),
                edges=("1900", "1901", "1904", "1999", "2000", "2001", "2023", "2024", "2100"),
            ),
            {
                "leap": (
                    "Print the number of days of year n. It is 366 if n is a multiple of 4 but not of 100, or of 400.",
                    "print(366 if n % 4 == 0 and n % 100 != 0 or n % 400 == 0 else 365)",
                ),
                "century": ("Print the century of year n: 1901 to 2000 are century 20.", "print((n + 99) // 100)"),
                "decade": (
                    "Print the first year of the decade of year n, such as 1990 for 1995.",
                    "print(n // 10 * 10)",
                ),
            },
            difficulty=MEDIUM,
        ),
    ),
)
FAMILIES = (COMPARING, CLASSIFYING, TRIANGLES, PRICES, TIMES)
