"""Families about counting up to n, repeating, and summing series."""

from cobalt_data.embedded.family import INTEGERS, MEDIUM, TEXT, Family, printing, tasks
from cobalt_data.embedded.shapes import WORD_AND_COUNT, count, integer, integers

UP_TO = count(20)
TERMS = integer(1, 25)
INTERVAL = integers("a b", 1, 30, ordered=True)
ONE_PER_LINE = "One integer per line."
COUNTING = Family(
    "counting",
    printing(
        UP_TO,
        {
            "up": ("the numbers from 1 to n", '*range(1, n + 1), sep="\\n"'),
            "down": ("the numbers from n down to 1", '*range(n, 0, -1), sep="\\n"'),
            "from-zero": ("the numbers from 0 to n", '*range(n + 1), sep="\\n"'),
            "first-evens": ("the first n even numbers, starting with 2", '*range(2, 2 * n + 1, 2), sep="\\n"'),
            "first-odds": ("the first n odd numbers, starting with 1", '*range(1, 2 * n, 2), sep="\\n"'),
            "squares": ("the squares of the numbers from 1 to n", '*[i * i for i in range(1, n + 1)], sep="\\n"'),
            "table": ("the first ten multiples of n, starting with n", '*range(n, 10 * n + 1, n), sep="\\n"'),
            "to-double": ("the numbers from n to 2n", '*range(n, 2 * n + 1), sep="\\n"'),
            "powers-of-two": ("the first n powers of two, starting with 1", '*[2**i for i in range(n)], sep="\\n"'),
            "tens": ("the first n multiples of 10, starting with 10", '*range(10, 10 * n + 1, 10), sep="\\n"'),
            "below-zero": ("the numbers from n down to -n", '*range(n, -n - 1, -1), sep="\\n"'),
        },
        output=ONE_PER_LINE,
    ),
)
REPEATING = Family(
    "repeating",
    (
        *printing(
            WORD_AND_COUNT,
            {
                "lines": ("the word n times, each on its own line", '*[word] * n, sep="\\n"'),
                "numbered": (
                    "n lines; line i has the number i, a space and the word",
                    '"\\n".join(f"{i} {word}" for i in range(1, n + 1))',
                ),
                "growing": (
                    "n lines; line i has the word i times, without spaces",
                    '"\\n".join(word * i for i in range(1, n + 1))',
                ),
            },
            output="n lines.",
            checker="lines",
        ),
        *printing(
            WORD_AND_COUNT,
            {
                "joined": ("the word n times without spaces between", "word * n"),
                "spaced": ("the word n times with one space between", "*[word] * n"),
                "dashed": ("the word n times with a dash between", '"-".join([word] * n)'),
                "exclaimed": ("the word followed by n exclamation marks", 'word + "!" * n'),
                "starred": ("n stars, the word, and n stars again, without spaces", '"*" * n + word + "*" * n'),
                "capitals": ("the word in capital letters n times without spaces", "word.upper() * n"),
                "first-letter": ("the first letter of the word n times without spaces", "word[0] * n"),
                "and-count": ("the word and the number n on one line", "word, n"),
            },
            output=TEXT,
            checker="lines",
        ),
    ),
    held_out=True,
)
SERIES = Family(
    "series",
    (
        *printing(
            TERMS,
            {
                "sum": ("the sum of the numbers from 1 to n", "sum(range(1, n + 1))"),
                "squares": ("the sum of the squares of the numbers from 1 to n", "sum(i * i for i in range(1, n + 1))"),
                "evens": ("the sum of the even numbers from 1 to n", "sum(range(2, n + 1, 2))"),
                "odds": ("the sum of the odd numbers from 1 to n", "sum(range(1, n + 1, 2))"),
                "cubes": ("the sum of the cubes of the numbers from 1 to n", "sum(i**3 for i in range(1, n + 1))"),
                "doubles": ("the sum 2 + 4 + ... + 2n of the first n even numbers", "n * (n + 1)"),
                "below": ("the sum of the numbers from 1 to n - 1 (0 if there are none)", "sum(range(n))"),
                "powers-of-two": ("the sum of the first n powers of two, which start with 1", "2**n - 1"),
            },
        ),
        *tasks(
            TERMS,
            {
                "factorial": (
                    "Print the product of the numbers from 1 to n.",
                    """
                    product = 1
                    for i in range(1, n + 1):
                        product *= i
                    print(product)
                    """,
                ),
                "alternating": (
                    "Print the value of 1 - 2 + 3 - 4 + ... with n terms.",
                    """
                    total = 0
                    for i in range(1, n + 1):
                        total += i if i % 2 else -i
                    print(total)
                    """,
                ),
                "threes-or-fives": (
                    "Print the sum of the numbers from 1 to n that are multiples of 3 or of 5.",
                    "print(sum(i for i in range(1, n + 1) if i % 3 == 0 or i % 5 == 0))",
                ),
                "sum-of-sums": (
                    "Print 1 + (1 + 2) + (1 + 2 + 3) + ... with n brackets.",
                    "print(sum(sum(range(1, i + 1)) for i in range(1, n + 1)))",
                ),
                "digits": (
                    "Print how many digits are written when the numbers from 1 to n are written down.",
                    "print(sum(len(str(i)) for i in range(1, n + 1)))",
                ),
            },
            difficulty=MEDIUM,
        ),
    ),
)
BETWEEN = Family(
    "between",
    (
        *printing(
            INTERVAL,
            {
                "up": ("the numbers from a to b", "*range(a, b + 1)"),
                "down": ("the numbers from b down to a", "*range(b, a - 1, -1)"),
                "squares": ("the squares of the numbers from a to b", "*[i * i for i in range(a, b + 1)]"),
                "without-ends": ("a, then b, then every number between them", "a, b, *range(a + 1, b)"),
            },
            output=INTEGERS,
        ),
        *printing(
            INTERVAL,
            {
                "count": ("how many numbers there are from a to b, both included", "b - a + 1"),
                "sum": ("the sum of the numbers from a to b", "sum(range(a, b + 1))"),
                "evens": ("how many even numbers there are from a to b", "sum(i % 2 == 0 for i in range(a, b + 1))"),
                "odd-sum": ("the sum of the odd numbers from a to b", "sum(i for i in range(a, b + 1) if i % 2)"),
                "threes": ("how many multiples of 3 there are from a to b", "sum(i % 3 == 0 for i in range(a, b + 1))"),
                "middle": ("the number in the middle between a and b, rounded down", "(a + b) // 2"),
                "sum-of-squares": (
                    "the sum of the squares of the numbers from a to b",
                    "sum(i * i for i in range(a, b + 1))",
                ),
            },
        ),
    ),
    held_out=True,
)
FAMILIES = (COUNTING, REPEATING, SERIES, BETWEEN)
