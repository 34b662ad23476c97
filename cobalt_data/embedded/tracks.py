"""Families about events written as letters of one line: moves of a robot, results of games."""

from random import Random

from cobalt_data.embedded.family import HARD, MEDIUM, Family, Shape, deciding, printing, tasks


def draw_moves(random: Random, size: int) -> str:
    return "".join(random.choice("UDLR") for _ in range(random.randint(2, size)))


MOVES = Shape(
    text="One line with the moves of a robot, letters of U (up), D (down), L (left), R (right).",
    read="moves = input()",
    draw=draw_moves,
    edges=("U", "D", "L", "R", "UD", "LLRR", "URDL", "UUUU"),
)
WALK = """
x = y = 0
places = [(0, 0)]
for move in moves:
    x += (move == "R") - (move == "L")
    y += (move == "U") - (move == "D")
    places.append((x, y))
"""
ROBOT = Family(
    "robot",
    (
        *printing(
            MOVES,
            {
                "moves": ("how many moves the robot makes", "len(moves)"),
                "ups": ("how many of the moves go up", 'moves.count("U")'),
                "height": (
                    "how far up the robot is at the end (negative if down)",
                    'moves.count("U") - moves.count("D")',
                ),
                "turns": (
                    "how often the robot moves in another direction than before",
                    "sum(a != b for a, b in zip(moves, moves[1:]))",
                ),
                "sideways": ("how many of the moves go left or right", 'moves.count("L") + moves.count("R")'),
            },
            difficulty=MEDIUM,
        ),
        *tasks(
            MOVES,
            {
                "place": (
                    "A robot starts at 0 0; R adds 1 to x, U adds 1 to y. Print its last x and y.",
                    'print(moves.count("R") - moves.count("L"), moves.count("U") - moves.count("D"))',
                ),
            },
            output="Two integers on one line.",
            difficulty=MEDIUM,
        ),
        *tasks(
            MOVES,
            {
                "visited": (
                    "Print how many different places the robot visits, its start included.",
                    f"{WALK}print(len(set(places)))",
                ),
                "farthest": (
                    "Print the largest distance from its start that the robot has: steps left or right plus up or down.",
                    f"{WALK}print(max(abs(x) + abs(y) for x, y in places))",
                ),
                "returns": (
                    "Print how often the robot comes back to its start.",
                    f"{WALK}print(places.count((0, 0)) - 1)",
                ),
            },
            difficulty=HARD,
        ),
        *deciding(
            MOVES,
            {
                "back": (
                    "the robot ends where it started",
                    'moves.count("U") == moves.count("D") and moves.count("L") == moves.count("R")',
                )
            },
            difficulty=MEDIUM,
        ),
    ),
    held_out=True,
)


def draw_games(random: Random, size: int) -> str:
    return "".join(random.choice("WWLD") for _ in range(random.randint(2, size)))


GAMES = Shape(
    text="One line with the results of a team's games: W (won), L (lost) or D (draw).",
    read="games = input()",
    draw=draw_games,
    edges=("W", "L", "D", "WWWW", "LLL", "DDD", "WLWLWL", "LWWDWWW"),
)
SCORES = Family(
    "games",
    (
        *printing(
            GAMES,
            {
                "won": ("how many games were won", 'games.count("W")'),
                "played": ("how many games were played", "len(games)"),
                "not-lost": ("how many games were not lost", 'len(games) - games.count("L")'),
                "points": ("the points: 3 for W, 1 for D and 0 for L", '3 * games.count("W") + games.count("D")'),
                "balance": (
                    "the number of games won minus the number of games lost",
                    'games.count("W") - games.count("L")',
                ),
            },
        ),
        *printing(
            GAMES,
            {
                "streak": ("the length of the longest run of W", 'max(map(len, games.replace("L", "D").split("D")))'),
                "unbeaten": ("the length of the longest stretch without an L", 'max(map(len, games.split("L")))'),
                "comebacks": ("how often a W comes directly after an L", 'games.count("LW")'),
                "last-streak": ("how many games in a row were won at the end", 'len(games) - len(games.rstrip("W"))'),
                "bonus": (
                    "the points: 3 for W, 1 for D, 0 for L, and 2 more for each W directly after a W",
                    '3 * games.count("W") + games.count("D") + 2 * sum(a == b == "W" for a, b in zip(games, games[1:]))',
                ),
            },
            difficulty=MEDIUM,
        ),
    ),
)
FAMILIES = (ROBOT, SCORES)
