"""Families about brackets and intervals."""

from random import Random

from cobalt_data.embedded.family import HARD, MEDIUM, Family, Shape, deciding, printing, tasks


def draw_brackets(random: Random, size: int) -> str:
    """Balanced, then in half of the draws spoiled by one flipped bracket."""
    text = ""
    for _ in range(random.randint(2, size)):
        place = random.randint(0, len(text))
        text = text[:place] + "()" + text[place:]
    if random.randrange(2):
        place = random.randrange(len(text))
        text = text[:place] + random.choice("()") + text[place + 1 :]
    return text


BRACKET_LINE = Shape(
    text="One line of round brackets.",
    read="text = input()",
    draw=draw_brackets,
    edges=("(", ")", "()", ")(", "(())", "()()", "((", "())("),
)
DEPTHS = 'depths = [text[:i].count("(") - text[:i].count(")") for i in range(len(text) + 1)]\n'
BRACKETS = Family(
    "brackets",
    (
        *printing(
            BRACKET_LINE,
            {
                "opening": ("how many opening brackets there are", 'text.count("(")'),
                "direct": ("how often a bracket is closed directly after it was opened", 'text.count("()")'),
                "excess": (
                    "how many more opening than closing brackets there are",
                    'text.count("(") - text.count(")")',
                ),
            },
            difficulty=MEDIUM,
        ),
        *tasks(
            BRACKET_LINE,
            {
                "depth": (
                    "Each ( goes one deeper and each ) one back. Print the greatest depth; the start is 0.",
                    DEPTHS + "print(max(depths))",
                ),
                "balanced": (
                    "Print YES if every bracket has its partner in the right order, otherwise print NO.",
                    DEPTHS + 'print("YES" if min(depths) == depths[-1] == 0 else "NO")',
                ),
                "first-wrong": (
                    "Print the position of the first ) that has no ( before it to close, or 0 if there is none.",
                    DEPTHS + "print(depths.index(-1) if -1 in depths else 0)",
                ),
                "missing": (
                    "Print how many brackets must be added, anywhere, to give every bracket its partner.",
                    DEPTHS + "print(depths[-1] - 2 * min(depths))",
                ),
                "unopened": ("Print how many ) have no ( before them to close.", DEPTHS + "print(-min(depths))"),
            },
            output="The answer on one line.",
            difficulty=HARD,
        ),
    ),
)


def draw_intervals(random: Random, size: int) -> str:
    pairs = [sorted((random.randint(0, 12), random.randint(0, 12))) for _ in range(2)]
    return "\n".join(f"{low} {high + 1}" for low, high in pairs)


INTERVAL_LINES = Shape(
    text="Two lines, each with the start and the end of an interval (0 to 13, start < end).",
    read="a, b = map(int, input().split())\nc, d = map(int, input().split())",
    draw=draw_intervals,
    edges=("0 1\n0 1", "0 5\n5 9", "5 9\n0 5", "0 9\n3 4", "3 4\n0 9", "2 7\n2 5", "1 6\n4 8", "0 2\n10 13"),
)
INTERVALS = Family(
    "intervals",
    (
        *printing(
            INTERVAL_LINES,
            {
                "longer": ("the length of the longer interval", "max(b - a, d - c)"),
                "hull": ("the distance from the earliest start to the latest end", "max(b, d) - min(a, c)"),
                "lengths": ("the difference of the lengths of both intervals", "abs((b - a) - (d - c))"),
            },
            difficulty=MEDIUM,
        ),
        *printing(
            INTERVAL_LINES,
            {
                "overlap": ("the length of what both intervals share", "max(0, min(b, d) - max(a, c))"),
                "covered": (
                    "the length of what at least one interval covers",
                    "b - a + d - c - max(0, min(b, d) - max(a, c))",
                ),
                "gap": (
                    "the length of the gap between the intervals, 0 if they touch or overlap",
                    "max(0, max(a, c) - min(b, d))",
                ),
                "once": (
                    "the length of what exactly one interval covers",
                    "b - a + d - c - 2 * max(0, min(b, d) - max(a, c))",
                ),
            },
            difficulty=HARD,
        ),
        *deciding(
            INTERVAL_LINES,
            {
                "apart": ("the intervals share no point, not even an end", "b < c or d < a"),
                "inside": (
                    "one interval lies within the other (equal ends are allowed)",
                    "a <= c and d <= b or c <= a and b <= d",
                ),
                "touch": ("one interval ends where the other starts", "b == c or d == a"),
            },
            difficulty=HARD,
        ),
    ),
    held_out=True,
)
FAMILIES = (BRACKETS, INTERVALS)
