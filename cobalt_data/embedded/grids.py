"""Families about pictures made of characters and about grids of numbers or characters."""

from collections.abc import Sequence
from random import Random

from cobalt_data.embedded.family import HARD, INTEGERS, MEDIUM, Family, Shape, printing, tasks
from cobalt_data.embedded.shapes import count, spaced


def drawn(line: str) -> str:
    """A program that prints one line for each i from 0 to n - 1."""
    return f"for i in range(n):\n    print({line})"


DRAWING = Family(
    "drawing",
    (
        *tasks(
            count(20),
            {
                "square": ("Draw a square of n rows with n stars each.", drawn('"*" * n')),
                "triangle": ("Draw n rows; row i has i stars.", drawn('"*" * (i + 1)')),
                "falling": ("Draw n rows; the first has n stars and each next row one less.", drawn('"*" * (n - i)')),
                "column": ("Draw n rows; each row has one star.", drawn('"*"')),
                "bars": ("Draw n rows; each row is |--|", drawn('"|--|"')),
                "numbers": (
                    "Draw n rows; row i has the numbers from 1 to i with spaces between.",
                    drawn("*range(1, i + 2)"),
                ),
                "same-number": (
                    "Draw n rows; row i has the number i written i times without spaces.",
                    drawn("str(i + 1) * (i + 1)"),
                ),
                "wide": ("Draw n rows; row i has 2i - 1 stars: 1, 3, 5 and so on.", drawn('"*" * (2 * i + 1)')),
            },
            output="n lines.",
            checker="lines",
        ),
        *tasks(
            count(20),
            {
                "right": (
                    "Draw n rows of n characters; row i has n - i spaces, then i stars.",
                    drawn('" " * (n - i - 1) + "*" * (i + 1)'),
                ),
                "diagonal": (
                    "Draw a square of n rows with n characters: a star on the diagonal from the top left, dots elsewhere.",
                    drawn('"." * i + "*" + "." * (n - i - 1)'),
                ),
                "chessboard": (
                    "Draw a square of n rows with n characters, # and . in turns as on a chessboard. The top left is #.",
                    drawn('("#." * n)[i % 2 : i % 2 + n]'),
                ),
                "stripes": (
                    "Draw a square of n rows with n characters; the first row is of #, the next of -, and so on in turns.",
                    drawn('"#-"[i % 2] * n'),
                ),
                "frame": (
                    "Draw a square of n rows with n characters: # at the border, dots inside.",
                    drawn('"#" * n if i in (0, n - 1) else "#" + "." * (n - 2) + "#"'),
                ),
                "pyramid": (
                    "Draw a pyramid of n rows: row i has n - i spaces, then 2i - 1 stars.",
                    drawn('" " * (n - i - 1) + "*" * (2 * i + 1)'),
                ),
                "cross": (
                    "Draw a square of n rows with n characters: X on both diagonals, dots elsewhere.",
                    drawn('"".join("X" if j in (i, n - 1 - i) else "." for j in range(n))'),
                ),
            },
            output="n lines.",
            difficulty=MEDIUM,
            checker="lines",
        ),
    ),
)


def draw_number_grid(random: Random, size: int) -> str:
    height, width = random.randint(2, max(3, size // 2)), random.randint(2, 4)
    rows = [spaced([random.randint(0, 9) for _ in range(width)]) for _ in range(height)]
    return "\n".join([f"{height} {width}", *rows])


NUMBER_GRID = Shape(
    text="The first line has h and w. Then h lines follow, each with w integers (0 to 9).",
    read="h, w = map(int, input().split())\ngrid = [list(map(int, input().split())) for _ in range(h)]",
    draw=draw_number_grid,
    edges=("1 1\n5", "1 3\n1 2 3", "3 1\n3\n2\n1", "2 2\n0 0\n0 0", "3 3\n1 2 3\n4 5 6\n7 8 9", "2 3\n9 9 0\n0 9 9"),
)
NUMBER_GRIDS = Family(
    "number-grid",
    (
        *printing(
            NUMBER_GRID,
            {
                "sum": ("the sum of all integers in the grid", "sum(map(sum, grid))"),
                "largest": ("the largest integer in the grid", "max(map(max, grid))"),
                "first-row": ("the sum of the first row of the grid", "sum(grid[0])"),
                "last-column": ("the sum of the last column of the grid", "sum(row[-1] for row in grid)"),
                "zeros": ("how many integers in the grid are 0", "sum(row.count(0) for row in grid)"),
                "corners": (
                    "the integer at the top left plus the one at the bottom right",
                    "grid[0][0] + grid[-1][-1]",
                ),
                "best-row": ("the largest sum of a row", "max(map(sum, grid))"),
                "best-column": ("the largest sum of a column", "max(map(sum, zip(*grid)))"),
                "border": (
                    "the sum of all integers in the first or last row or the first or last column, each once",
                    "sum(map(sum, grid)) - sum(sum(row[1:-1]) for row in grid[1:-1])",
                ),
            },
            difficulty=MEDIUM,
        ),
        *printing(
            NUMBER_GRID,
            {
                "row-sums": ("the sum of each row, on one line", "*map(sum, grid)"),
                "column-sums": ("the sum of each column, on one line", "*map(sum, zip(*grid))"),
                "row-largest": ("the largest integer of each row, on one line", "*map(max, grid)"),
            },
            output=INTEGERS,
            difficulty=MEDIUM,
        ),
        *tasks(
            NUMBER_GRID,
            {
                "upside-down": (
                    "Print the rows of the grid in reverse order.",
                    "for row in grid[::-1]:\n    print(*row)",
                ),
                "mirrored": ("Print each row of the grid in reverse order.", "for row in grid:\n    print(*row[::-1])"),
            },
            output="The rows of the new grid.",
            difficulty=MEDIUM,
            checker="lines",
        ),
        *tasks(
            NUMBER_GRID,
            {
                "transposed": ("Print the columns of the grid as rows.", "for row in zip(*grid):\n    print(*row)"),
                "turned": (
                    "Print the grid turned clockwise by 90 degrees.",
                    "for row in zip(*grid[::-1]):\n    print(*row)",
                ),
            },
            output="The rows of the new grid.",
            difficulty=HARD,
            checker="lines",
        ),
    ),
)


def write_map(rows: Sequence[str]) -> str:
    return "\n".join([str(len(rows)), *rows])


def draw_map(random: Random, size: int) -> str:
    height, width = random.randint(2, max(3, size // 2)), random.randint(2, 5)
    walls = random.choice(("#.", "#..", "##."))
    return write_map(["".join(random.choice(walls) for _ in range(width)) for _ in range(height)])


MAP = Shape(
    text="The first line has h. Then h lines of equal length follow, made of # and dots.",
    read="h = int(input())\nrows = [input() for _ in range(h)]",
    draw=draw_map,
    edges=tuple(
        map(
            write_map,
            (["."], ["#"], ["##.##"], ["#", ".", "#"], ["..", ".."], ["###", "#.#", "###"], ["#..", ".#.", "..#"]),
        )
    ),
)
FLOOD = """
cells = {(i, j) for i, row in enumerate(rows) for j, c in enumerate(row) if c == "#"}
sizes = [0]
while cells:
    stack = [cells.pop()]
    size = 0
    while stack:
        i, j = stack.pop()
        size += 1
        for cell in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if cell in cells:
                cells.remove(cell)
                stack.append(cell)
    sizes.append(size)
"""
MAPS = Family(
    "map",
    (
        *printing(
            MAP,
            {
                "walls": ("how many # there are", 'sum(row.count("#") for row in rows)'),
                "free": ("how many dots there are in the first line of the map", 'rows[0].count(".")'),
                "clear-rows": ("how many lines of the map have no #", 'sum("#" not in row for row in rows)'),
                "clear-columns": (
                    "how many columns of the map have no #",
                    'sum("#" not in column for column in zip(*rows))',
                ),
                "fullest": ("the largest number of # in one line", 'max(row.count("#") for row in rows)'),
                "longest-wall": (
                    "the length of the longest run of # in one line",
                    'max(len(run) for row in rows for run in row.split("."))',
                ),
                "touching": (
                    "how many pairs of # are directly next to each other in one line",
                    'sum(a + b == "##" for row in rows for a, b in zip(row, row[1:]))',
                ),
            },
            difficulty=MEDIUM,
        ),
        *tasks(
            MAP,
            {
                "islands": (
                    "Count the islands: groups of # connected horizontally or vertically.",
                    f"{FLOOD}print(len(sizes) - 1)",
                ),
                "largest-island": (
                    "An island is a group of # connected horizontally or vertically. Print the size of the largest, or 0.",
                    f"{FLOOD}print(max(sizes))",
                ),
            },
            difficulty=HARD,
        ),
        *tasks(
            MAP,
            {
                "inverted": (
                    "Print the map with # and dots exchanged.",
                    'for row in rows:\n    print(row.replace("#", "x").replace(".", "#").replace("x", "."))',
                ),
                "mirrored": ("Print the map with each line backwards.", "for row in rows:\n    print(row[::-1])"),
                "row-counts": (
                    "Print for each line of the map how many # it has.",
                    'for row in rows:\n    print(row.count("#"))',
                ),
            },
            output="h lines.",
            difficulty=MEDIUM,
            checker="lines",
        ),
    ),
    held_out=True,
)
FAMILIES = (DRAWING, NUMBER_GRIDS, MAPS)
