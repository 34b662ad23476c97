"""Families that follow a rule from one number to the next, or until a condition ends them."""

from random import Random

from cobalt_data.embedded.family import MEDIUM, Family, Shape, printing, tasks
from cobalt_data.embedded.shapes import (
    count,
    integer,
)

UP_TO = count(20)
UP_TO_LINES = count(30)
BIG = integer(1, 5000)
ONE_PER_LINE = "One integer per line."


def followed(start: str, step: str) -> str:
    """A program that prints n terms of a sequence."""
    return f"{start}\nfor _ in range(n):\n    print(a)\n    {step}"


SEQUENCES = Family(
    "sequences",
    (
        *tasks(
            UP_TO,
            {
                "add-three": (
                    "Start with 2; each next number is 3 more. Print n numbers.",
                    followed("a = 2", "a += 3"),
                ),
                "tripling": (
                    "Start with 1; each next number is 3 times larger. Print n numbers.",
                    followed("a = 1", "a *= 3"),
                ),
                "double-plus-one": (
                    "Start with 1; each next number is twice the last one plus 1. Print n numbers.",
                    followed("a = 1", "a = 2 * a + 1"),
                ),
                "fibonacci": (
                    "The sequence starts with 1, 1; each next number is the sum of the last two. Print n numbers.",
                    followed("a, b = 1, 1", "a, b = b, a + b"),
                ),
                "lucas": (
                    "The sequence starts with 2, 1; each next number is the sum of the last two. Print n numbers.",
                    followed("a, b = 2, 1", "a, b = b, a + b"),
                ),
                "tribonacci": (
                    "The sequence starts with 0, 0, 1; each next number is the sum of the last three. Print n numbers.",
                    followed("a, b, c = 0, 0, 1", "a, b, c = b, c, a + b + c"),
                ),
                "triangular": (
                    "Start with 1; add 2, then 3, then 4 and so on. Print the first n numbers.",
                    "print(*[i * (i + 1) // 2 for i in range(1, n + 1)], sep='\\n')",
                ),
                "negating": (
                    "Start with 1; each next number is -2 times the last one. Print n numbers.",
                    followed("a = 1", "a *= -2"),
                ),
                "halving": (
                    "Start with 1000; each next number is half the last one, rounded down. Print n numbers.",
                    followed("a = 1000", "a //= 2"),
                ),
            },
            output=ONE_PER_LINE,
            difficulty=MEDIUM,
        ),
        *tasks(
            UP_TO,
            {
                "prime": (
                    "Print the n-th prime number. The first one is 2.",
                    """
                    primes = []
                    number = 2
                    while len(primes) < n:
                        if all(number % prime for prime in primes):
                            primes.append(number)
                        number += 1
                    print(primes[-1])
                    """,
                ),
            },
            difficulty=MEDIUM,
        ),
    ),
)


def counted_steps(condition: str, step: str) -> str:
    """A program that counts how often a step is taken."""
    return f"steps = 0\nwhile {condition}:\n    {step}\n    steps += 1\nprint(steps)"


STEPS = Family(
    "steps",
    tasks(
        BIG,
        {
            "halve": (
                "Halve n, rounding down, until it is 1. Print the number of steps.",
                counted_steps("n > 1", "n //= 2"),
            ),
            "minus-seven": (
                "Subtract 7 from n until it is below 7. Print the number of steps.",
                counted_steps("n >= 7", "n -= 7"),
            ),
            "digit-sum": (
                "Subtract from n the sum of its digits until it is 0. Print the number of steps.",
                counted_steps("n > 0", "n -= sum(map(int, str(n)))"),
            ),
            "third": (
                "Divide n by 3, rounding down, until it is 0. Print the number of steps.",
                counted_steps("n > 0", "n //= 3"),
            ),
            "collatz": (
                "If n is even, halve it; otherwise replace it by 3n + 1. Print the number of steps until n is 1.",
                counted_steps("n != 1", "n = n // 2 if n % 2 == 0 else 3 * n + 1"),
            ),
            "even-or-minus": (
                "If n is even, halve it; otherwise subtract 1. Print the number of steps until n is 0.",
                counted_steps("n > 0", "n = n // 2 if n % 2 == 0 else n - 1"),
            ),
            "savings": (
                "On day k you save k coins: 1, 2, 3, ... Print the first day on which you have at least n coins.",
                "day = coins = 0\nwhile coins < n:\n    day += 1\n    coins += day\nprint(day)",
            ),
            "doubling": (
                "A pond has 1 lily; each day their number doubles. Print after how many days there are at least n.",
                "lilies, days = 1, 0\nwhile lilies < n:\n    lilies *= 2\n    days += 1\nprint(days)",
            ),
            "remove-digits": (
                "Replace n by the product of its digits until it has one digit. Print the last number.",
                "from math import prod\n\nwhile n > 9:\n    n = prod(map(int, str(n)))\nprint(n)",
            ),
            "snail": (
                "A snail climbs 5 metres each day and slips 2 each night. Print the day on which it reaches n metres.",
                "height = day = 0\nwhile height < n:\n    height += 5 if day == 0 else 3\n    day += 1\nprint(day)",
            ),
        },
        difficulty=MEDIUM,
    ),
)


def replaced(word: str, condition: str) -> str:
    return f'for i in range(1, n + 1):\n    print("{word}" if {condition} else i)'


FIZZ = Family(
    "fizz",
    tasks(
        UP_TO_LINES,
        {
            "fizz": ("Print the numbers from 1 to n, but Fizz for multiples of 3.", replaced("Fizz", "i % 3 == 0")),
            "buzz": ("Print the numbers from 1 to n, but Buzz for multiples of 5.", replaced("Buzz", "i % 5 == 0")),
            "even": (
                "Print the numbers from 1 to n, but the word even for even numbers.",
                replaced("even", "i % 2 == 0"),
            ),
            "star-ones": (
                "Print the numbers from 1 to n, but * for numbers with a digit 1.",
                replaced("*", '"1" in str(i)'),
            ),
            "small": ("Print the numbers from 1 to n, but low for numbers below 5.", replaced("low", "i < 5")),
            "squares": (
                "Print the numbers from 1 to n, but X for squares (1, 4, 9, ...).",
                replaced("X", "round(i**0.5) ** 2 == i"),
            ),
            "negative-odds": (
                "Print the numbers from 1 to n, but odd numbers with a minus sign.",
                "for i in range(1, n + 1):\n    print(-i if i % 2 else i)",
            ),
            "parity-words": (
                "For each number from 1 to n print odd or even.",
                'for i in range(1, n + 1):\n    print("odd" if i % 2 else "even")',
            ),
            "fizzbuzz": (
                "Print the numbers from 1 to n, but FizzBuzz for multiples of 15, else Fizz for multiples of 3, "
                "else Buzz for multiples of 5.",
                """
                for i in range(1, n + 1):
                    word = "Fizz" * (i % 3 == 0) + "Buzz" * (i % 5 == 0)
                    print(word or i)
                """,
            ),
            "skip-fours": (
                "Print the numbers from 1 to n without the multiples of 4.",
                "for i in range(1, n + 1):\n    if i % 4:\n        print(i)",
            ),
        },
        output="One number or word per line.",
        difficulty=MEDIUM,
    ),
)


def draw_until_zero(random: Random, size: int) -> str:
    return "\n".join([*(str(random.randint(1, 20)) for _ in range(random.randint(1, size))), "0"])


UNTIL_ZERO = Shape(
    text="Integers (1 to 20), one per line; the last line has 0 and is not part of the data.",
    read="numbers = []\nwhile (number := int(input())) != 0:\n    numbers.append(number)",
    draw=draw_until_zero,
    edges=("1\n0", "20\n0", "5\n5\n0", "1\n2\n3\n4\n0", "4\n3\n2\n1\n0", "10\n11\n9\n0"),
)
SENTINEL = Family(
    "until-zero",
    printing(
        UNTIL_ZERO,
        {
            "sum": ("the sum of the numbers", "sum(numbers)"),
            "count": ("how many numbers there are", "len(numbers)"),
            "largest": ("the largest number", "max(numbers)"),
            "last": ("the last number before the 0", "numbers[-1]"),
            "evens": ("how many numbers are even", "sum(number % 2 == 0 for number in numbers)"),
            "over-ten": ("how many numbers are greater than 10", "sum(number > 10 for number in numbers)"),
            "average": ("the average of the numbers, rounded down", "sum(numbers) // len(numbers)"),
            "first-minus-last": ("the first number minus the last one before the 0", "numbers[0] - numbers[-1]"),
        },
        difficulty=MEDIUM,
    ),
)
FAMILIES = (SEQUENCES, STEPS, FIZZ, SENTINEL)
