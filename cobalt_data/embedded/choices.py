"""Hard families about choosing well among many possibilities, or counting them: coins, stairs, subsets."""

from cobalt_data.embedded.family import HARD, Family, tasks
from cobalt_data.embedded.shapes import integer, row

AMOUNT = integer(1, 500)


def greedy(coins: str, answer: str) -> str:
    return f"""
    counts = []
    for coin in {coins}:
        counts.append(n // coin)
        n %= coin
    print({answer})
    """


CHANGE = Family(
    "coins",
    (
        *tasks(
            AMOUNT,
            {
                "fewest": (
                    "Pay n with as few coins of 1, 5, 10 and 25 as possible. Print how many.",
                    greedy("(25, 10, 5, 1)", "sum(counts)"),
                ),
                "three-kinds": (
                    "Pay n with as few coins of 1, 2 and 5 as possible. Print how many.",
                    greedy("(5, 2, 1)", "sum(counts)"),
                ),
                "small": (
                    "Pay n with as few coins of 1, 10 and 100 as possible. Print how many coins of 1.",
                    greedy("(100, 10, 1)", "counts[-1]"),
                ),
                "kinds": (
                    "Pay n with as few coins of 1, 5, 10 and 50 as possible. Print how many kinds of coin are used.",
                    greedy("(50, 10, 5, 1)", "sum(count > 0 for count in counts)"),
                ),
                "threes-and-fives": (
                    "Pay n exactly with as few coins of 3 and 5 as possible. Print how many, or -1 if it is impossible.",
                    "print(min((t + (n - 3 * t) // 5 for t in range(n // 3 + 1) if (n - 3 * t) % 5 == 0), default=-1))",
                ),
                "ways": (
                    "Print in how many ways n can be paid with coins of 1, 2 and 5.",
                    "print(sum((n - 5 * fives) // 2 + 1 for fives in range(n // 5 + 1)))",
                ),
            },
            difficulty=HARD,
        ),
        *tasks(
            AMOUNT,
            {
                "list": (
                    "Pay n with as few notes of 100, 50, 20, 10, 5 and 1 as possible. Print how many of each.",
                    greedy("(100, 50, 20, 10, 5, 1)", "*counts"),
                ),
            },
            output="Six integers on one line.",
            difficulty=HARD,
        ),
    ),
)


def ways(start: str, end: str) -> str:
    """A program that fills a table `ways[0..n]`, where `start` is its first values and `end` the sum for the next."""
    return f"""
    ways = {start}
    while len(ways) <= n:
        ways.append({end})
    print(ways[n])
    """


STAIRS = Family(
    "stairs",
    tasks(
        integer(1, 40),
        {
            "one-or-two": (
                "You climb n steps, 1 or 2 at a time. Print the number of ways.",
                ways("[1, 1]", "ways[-1] + ways[-2]"),
            ),
            "one-or-three": (
                "You climb n steps, 1 or 3 at a time. Print the number of ways.",
                ways("[1, 1, 1]", "ways[-1] + ways[-3]"),
            ),
            "up-to-three": (
                "You climb n steps, 1, 2 or 3 at a time. Print the number of ways.",
                ways("[1, 1, 2]", "sum(ways[-3:])"),
            ),
            "any": ("You climb n steps, any number at a time. Print the number of ways.", "print(2 ** (n - 1))"),
            "two-or-three": (
                "You climb n steps, 2 or 3 at a time. Print the number of ways, 0 if there is none.",
                ways("[1, 0, 1]", "ways[-2] + ways[-3]"),
            ),
            "costly": (
                "Going up 1 step costs 2, 3 steps at once cost 4. Print the lowest cost of going up exactly n steps.",
                "print(n // 3 * 4 + n % 3 * 2)",
            ),
            "colours": (
                "You paint n steps red or blue, never two red ones in a row. Print the number of ways.",
                ways("[1, 2]", "ways[-1] + ways[-2]"),
            ),
            "three-colours": (
                "You paint n steps in 3 colours, neighbours always differently. Print the number of ways.",
                "print(3 * 2 ** (n - 1))",
            ),
        },
        difficulty=HARD,
    ),
)
CHOOSING = Family(
    "choosing",
    tasks(
        row(1, 9),
        {
            "rising": (
                "Remove integers so that each one left is greater than the one before. Print how many can be left at most.",
                """
                best = []
                for i, x in enumerate(numbers):
                    best.append(1 + max((best[j] for j in range(i) if numbers[j] < x), default=0))
                print(max(best))
                """,
            ),
            "no-neighbours": (
                "Choose integers, never two neighbours. Print the largest possible sum.",
                """
                taken = skipped = 0
                for x in numbers:
                    taken, skipped = skipped + x, max(taken, skipped)
                print(max(taken, skipped))
                """,
            ),
            "budget": (
                "Each integer is a price. Print how many things you can buy at most with 15.",
                """
                bought, money = 0, 15
                for price in sorted(numbers):
                    if price <= money:
                        bought, money = bought + 1, money - price
                print(bought)
                """,
            ),
            "fair": (
                "Split the integers into two groups. Print the smallest possible difference of their sums.",
                """
                sums = {0}
                for x in numbers:
                    sums |= {s + x for s in sums}
                print(min(abs(sum(numbers) - 2 * s) for s in sums))
                """,
            ),
            "trade": (
                "The integers are prices on successive days. Buy once, sell later. Print the best profit, or 0.",
                """
                print(max(max(numbers[i:]) - x for i, x in enumerate(numbers)))
                """,
            ),
            "every-rise": (
                "The integers are prices on successive days. Buy and sell as often as you like. Print the best profit.",
                "print(sum(max(0, b - a) for a, b in zip(numbers, numbers[1:])))",
            ),
            "jumps": (
                "Each integer tells how far you can jump at most from its place. Print the fewest jumps from the first "
                "place to the last.",
                """
                jumps, place = 0, 0
                reach = 0
                for i in range(len(numbers) - 1):
                    reach = max(reach, i + numbers[i])
                    if i == place:
                        jumps, place = jumps + 1, reach
                print(jumps)
                """,
            ),
            "sums": (
                "Print how many different sums you can make by adding one or more of the integers.",
                """
                sums = {0}
                for x in numbers:
                    sums |= {s + x for s in sums}
                print(len(sums) - 1)
                """,
            ),
        },
        difficulty=HARD,
    ),
)
FAMILIES = (CHANGE, STAIRS, CHOOSING)
