"""Families about a series of events, one per line: payments, commands, votes."""

from collections.abc import Callable, Sequence
from random import Random

from cobalt_data.embedded.family import HARD, INTEGERS, MEDIUM, TEXT, Family, Shape, printing, tasks
from cobalt_data.embedded.shapes import (
    NAMES,
)


def write_lines(items: Sequence[object]) -> str:
    return "\n".join(map(str, [len(items), *items]))


def lines_of(draw: Callable[[Random], str]) -> Callable[[Random, int], str]:
    return lambda random, size: write_lines([draw(random) for _ in range(random.randint(2, size))])


CHANGES = Shape(
    text="The first line has n. Each of the next n lines has one integer (-20 to 20, not 0): in if positive, out if negative.",
    read="n = int(input())\nchanges = [int(input()) for _ in range(n)]",
    draw=lines_of(lambda random: str(random.choice((-1, 1, 1)) * random.randint(1, 20))),
    edges=tuple(map(write_lines, ([5], [-5], [20, 20, 20], [-1, -2, -3], [10, -10], [-10, 10], [3, -5, 20, -19, -4]))),
)
BALANCE = "balance = 0\nfor change in changes:\n    "
ACCOUNT = Family(
    "account",
    tasks(
        CHANGES,
        {
            "final": ("An account starts at 0. Print its balance after all changes.", "print(sum(changes))"),
            "from-hundred": (
                "An account starts at 100. Print its balance after all changes.",
                "print(100 + sum(changes))",
            ),
            "paid-in": (
                "Print how much is paid in altogether.",
                "print(sum(change for change in changes if change > 0))",
            ),
            "withdrawals": (
                "Print how many of the changes take money out.",
                "print(sum(change < 0 for change in changes))",
            ),
            "highest": (
                "An account starts at 0. Print its highest balance, the start included.",
                "highest = 0\n" + BALANCE + "balance += change\n    highest = max(highest, balance)\nprint(highest)",
            ),
            "refuse": (
                "An account starts at 0. A change that would make it negative is refused. Print the final balance.",
                BALANCE + "if balance + change >= 0:\n        balance += change\nprint(balance)",
            ),
            "overdrawn": (
                "An account starts at 0. Print after how many changes its balance is negative.",
                "count = 0\n" + BALANCE + "balance += change\n    count += balance < 0\nprint(count)",
            ),
            "fee": (
                "An account starts at 0. Each change that takes money out costs 1 more. Print the final balance.",
                "print(sum(changes) - sum(change < 0 for change in changes))",
            ),
            "capped": (
                "A tank starts empty and holds at most 30 and at least 0: what is too much is lost. Print its final content.",
                BALANCE + "balance = min(30, max(0, balance + change))\nprint(balance)",
            ),
        },
        difficulty=MEDIUM,
    ),
)


def draw_commands(random: Random, size: int) -> str:
    commands = [f"add {random.randint(1, 9)}"]
    commands += [
        random.choice((f"add {random.randint(1, 9)}", f"add {random.randint(1, 9)}", "take")) for _ in range(size - 2)
    ]
    return write_lines([*commands, f"add {random.randint(1, 9)}"])


COMMANDS = Shape(
    text="The first line has n. Each of the next n lines is add X with a number X, or take. The last one is an add.",
    read="n = int(input())\ncommands = [input().split() for _ in range(n)]",
    draw=draw_commands,
    edges=tuple(
        map(
            write_lines,
            (
                ["add 1"],
                ["take", "add 2"],
                ["add 3", "take", "add 4"],
                ["add 1", "add 2", "add 3", "take", "add 4"],
                ["add 5", "add 5", "take", "take", "take", "add 5", "add 6"],
            ),
        )
    ),
)


def handled(take: str, answer: str) -> str:
    """A program that keeps numbers in a list, removes one at each `take` if there is any, and answers at the end."""
    return f"""
    numbers = []
    for command in commands:
        if command[0] == "add":
            numbers.append(int(command[1]))
        elif numbers:
            {take}
    print({answer})
    """


TAKING = Family(
    "take-and-add",
    (
        *tasks(
            COMMANDS,
            {
                f"{name}-{answer_name}": (
                    f"A list starts empty. add puts X at its end; take removes {words}, if any. Print {asked}.",
                    handled(take, answer),
                )
                for name, words, take in (
                    ("newest", "the last number", "numbers.pop()"),
                    ("oldest", "the first number", "numbers.pop(0)"),
                    ("smallest", "its smallest number", "numbers.remove(min(numbers))"),
                )
                for answer_name, asked, answer in (
                    ("list", "the final list on one line", "*numbers"),
                    ("sum", "the sum of the final list", "sum(numbers)"),
                    ("first", "the first number of the final list", "numbers[0]"),
                )
            },
            output=INTEGERS,
            difficulty=HARD,
        ),
    ),
)
VOTES = Shape(
    text="The first line has n. Each of the next n lines has one name, a vote.",
    read="n = int(input())\nvotes = [input() for _ in range(n)]",
    draw=lines_of(lambda random: random.choice(NAMES[:4])),
    edges=tuple(
        map(
            write_lines,
            (["Ann"], ["Dan", "Ben"], ["Ben"] * 3, ["Ann", "Ben", "Ben", "Ann"], ["Dan", "Carla", "Dan", "Ben", "Ann"]),
        )
    ),
)
VOTING = Family(
    "votes",
    (
        *printing(
            VOTES,
            {
                "winner": (
                    "the name with most votes, the first in the alphabet if there are several",
                    "max(sorted(votes), key=votes.count)",
                ),
                "loser": (
                    "the name with fewest votes, the first in the alphabet if there are several",
                    "min(sorted(votes), key=votes.count)",
                ),
                "majority": (
                    "the name that has more than half of the votes, or none",
                    'next((v for v in votes if 2 * votes.count(v) > n), "none")',
                ),
                "voted": ("the different names in alphabetical order", "*sorted(set(votes))"),
                "first-twice": (
                    "the name that is the first to have two votes, or none",
                    'next((v for i, v in enumerate(votes) if v in votes[:i]), "none")',
                ),
            },
            output=TEXT,
            difficulty=MEDIUM,
        ),
        *printing(
            VOTES,
            {
                "ann": ("how many votes Ann has", 'votes.count("Ann")'),
                "most": ("how many votes the name with most votes has", "max(map(votes.count, votes))"),
                "names": ("how many different names have votes", "len(set(votes))"),
                "not-first": ("how many votes are not for the name on the first vote", "n - votes.count(votes[0])"),
            },
            difficulty=MEDIUM,
        ),
        *tasks(
            VOTES,
            {
                "counts": (
                    "Print each different name and its votes, one per line, in alphabetical order.",
                    "for name in sorted(set(votes)):\n    print(name, votes.count(name))",
                ),
            },
            output="A name and a number per line.",
            difficulty=HARD,
        ),
    ),
)
FAMILIES = (ACCOUNT, TAKING, VOTING)
