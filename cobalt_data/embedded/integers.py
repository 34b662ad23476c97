"""Families about what an integer is made of: its digits, its divisors, its form in another base."""

from cobalt_data.embedded.family import INTEGERS, MEDIUM, Family, deciding, printing, tasks
from cobalt_data.embedded.shapes import integer, integers

DIGITS = integer(0, 99999)
NATURAL = integer(1, 100)
PAIR = integers("a b", 1, 60)
BYTE = integer(0, 255)

DIGITS_OF = Family(
    "digits",
    (
        *printing(
            DIGITS,
            {
                "last": ("the last digit of n", "n % 10"),
                "count": ("the number of digits of n", "len(str(n))"),
                "first": ("the first digit of n", "str(n)[0]"),
                "sum": ("the sum of the digits of n", "sum(int(digit) for digit in str(n))"),
                "largest": ("the largest digit of n", "max(str(n))"),
                "smallest": ("the smallest digit of n", "min(str(n))"),
                "without-last": ("n without its last digit (0 if nothing is left)", "n // 10"),
                "first-plus-last": ("the first digit of n plus its last digit", "int(str(n)[0]) + n % 10"),
                "zeros": ("how many digits of n are 0", 'str(n).count("0")'),
            },
        ),
        *printing(
            DIGITS,
            {
                "evens": ("how many digits of n are even", 'sum(digit in "02468" for digit in str(n))'),
                "different": ("the number of different digits of n", "len(set(str(n)))"),
                "reversed-value": ("the integer that n becomes with its digits reversed", "int(str(n)[::-1])"),
                "spread": ("the largest digit of n minus its smallest digit", "int(max(str(n))) - int(min(str(n)))"),
                "root": (
                    "what is left when n is replaced by its digit sum until it has one digit",
                    "0 if n == 0 else (n - 1) % 9 + 1",
                ),
                "sum-of-squares": ("the sum of the squares of the digits of n", "sum(int(d) ** 2 for d in str(n))"),
            },
            difficulty=MEDIUM,
        ),
    ),
)
DIVISORS = Family(
    "divisors",
    (
        *printing(
            NATURAL,
            {
                "count": ("the number of divisors of n", "sum(n % d == 0 for d in range(1, n + 1))"),
                "sum": ("the sum of all divisors of n", "sum(d for d in range(1, n + 1) if n % d == 0)"),
                "sum-of-proper": (
                    "the sum of the divisors of n, without n",
                    "sum(d for d in range(1, n) if n % d == 0)",
                ),
                "evens": ("how many even numbers divide n", "sum(n % d == 0 for d in range(2, n + 1, 2))"),
                "odds": ("how many odd numbers divide n", "sum(n % d == 0 for d in range(1, n + 1, 2))"),
                "smallest-missing": (
                    "the smallest positive integer that does not divide n",
                    "min(d for d in range(1, n + 2) if n % d)",
                ),
            },
            difficulty=MEDIUM,
        ),
        *printing(
            NATURAL,
            {
                "list": ("all divisors of n from smallest to largest", "*[d for d in range(1, n + 1) if n % d == 0]"),
                "down": ("all divisors of n from largest to smallest", "*[d for d in range(n, 0, -1) if n % d == 0]"),
                "missing": ("the numbers from 1 to n that do not divide n", "*[d for d in range(1, n) if n % d]"),
            },
            output=INTEGERS,
            difficulty=MEDIUM,
        ),
    ),
)
NUMBER_CHECK = Family(
    "number-check",
    (
        *deciding(
            NATURAL,
            {
                "even": ("n is even", "n % 2 == 0"),
                "over-50": ("n is greater than 50", "n > 50"),
                "multiple-of-3": ("n is a multiple of 3", "n % 3 == 0"),
                "two-digits": ("n has exactly two digits", "10 <= n <= 99"),
                "ends-with-5": ("the last digit of n is 5", "n % 10 == 5"),
                "between-20-and-40": ("n is at least 20 and at most 40", "20 <= n <= 40"),
                "multiple-of-2-and-3": ("n is a multiple of both 2 and 3", "n % 6 == 0"),
                "multiple-of-4-or-7": ("n is a multiple of 4 or of 7", "n % 4 == 0 or n % 7 == 0"),
            },
        ),
        *deciding(
            NATURAL,
            {
                "square": ("n is the square of an integer", "round(n**0.5) ** 2 == n"),
                "prime": ("n is a prime number", "n > 1 and all(n % d for d in range(2, n))"),
                "power-of-two": ("n is a power of two", "n & (n - 1) == 0"),
                "even-digit-sum": ("the sum of the digits of n is even", "sum(map(int, str(n))) % 2 == 0"),
                "equal-digits": ("all digits of n are the same", "len(set(str(n))) == 1"),
            },
            difficulty=MEDIUM,
        ),
    ),
)
COMMON_FACTORS = Family(
    "common-factors",
    (
        *printing(
            PAIR,
            {
                "gcd": (
                    "the greatest common divisor of a and b",
                    "max(d for d in range(1, a + 1) if a % d == b % d == 0)",
                ),
                "lcm": (
                    "the smallest positive number that both a and b divide",
                    "min(m for m in range(a, a * b + 1, a) if m % b == 0)",
                ),
                "shared": (
                    "how many numbers divide both a and b",
                    "sum(a % d == b % d == 0 for d in range(1, a + 1))",
                ),
                "multiples-up-to": ("how many multiples of a there are from 1 to b", "b // a"),
                "next-multiple": ("the smallest multiple of a that is greater than b", "(b // a + 1) * a"),
                "power-digit": ("the last digit of a to the power of b", "pow(a, b, 10)"),
            },
            difficulty=MEDIUM,
        ),
        *tasks(
            PAIR,
            {
                "reduced": (
                    "Print the fraction a/b in lowest terms, as numerator and denominator.",
                    """
                    from math import gcd

                    common = gcd(a, b)
                    print(a // common, b // common)
                    """,
                ),
            },
            output="Two integers on one line.",
            difficulty=MEDIUM,
        ),
        *deciding(
            PAIR,
            {
                "coprime": (
                    "only 1 divides both a and b",
                    "all(a % d or b % d for d in range(2, a + 1))",
                ),
                "one-divides": ("one of a and b divides the other", "a % b == 0 or b % a == 0"),
            },
            difficulty=MEDIUM,
        ),
    ),
)
BASES = Family(
    "bases",
    (
        *printing(
            BYTE,
            {
                "binary": ("n in binary", "bin(n)[2:]"),
                "octal": ("n in base 8", "oct(n)[2:]"),
                "hex": ("n in base 16, with lowercase letters", "hex(n)[2:]"),
                "eight-bits": ("n in binary with eight digits, zeros first", 'f"{n:08b}"'),
                "binary-reversed": ("the binary digits of n in reverse order", "bin(n)[:1:-1]"),
            },
            output="The digits without spaces.",
            difficulty=MEDIUM,
        ),
        *printing(
            BYTE,
            {
                "ones": ("how many digits 1 the number n has in binary", 'bin(n).count("1")'),
                "zeros": ("how many digits 0 the number n has in binary", 'bin(n)[2:].count("0")'),
                "length": ("how many digits the number n has in binary", "len(bin(n)[2:])"),
                "longest-ones": (
                    "the length of the longest run of digits 1 in n written in binary",
                    'max(map(len, bin(n)[2:].split("0")))',
                ),
                "reversed-value": ("the value of the binary digits of n read backwards", "int(bin(n)[:1:-1], 2)"),
                "flipped": (
                    "the number that results when all eight binary digits of n are flipped",
                    "255 - n",
                ),
            },
            difficulty=MEDIUM,
        ),
    ),
    held_out=True,
)
FAMILIES = (DIGITS_OF, DIVISORS, NUMBER_CHECK, COMMON_FACTORS, BASES)
