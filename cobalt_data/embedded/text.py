"""Families about lines of text and lists of words."""

from cobalt_data.embedded.family import HARD, MEDIUM, TEXT, Family, deciding, printing, tasks
from cobalt_data.embedded.shapes import LINE, LINE_OF_WORDS, WORD_LINES

KINDS = {
    "a": ("letters a (only lowercase)", 'c == "a"'),
    "spaces": ("spaces", 'c == " "'),
    "capitals": ("capital letters", "c.isupper()"),
    "lowercase": ("lowercase letters", "c.islower()"),
    "digits": ("digits", "c.isdigit()"),
    "vowels": ("vowels (a, e, i, o, u in either case)", 'c.lower() in "aeiou"'),
    "consonants": ("letters but not vowels (a, e, i, o, u)", 'c.isalpha() and c.lower() not in "aeiou"'),
    "e-or-o": ("letters e or o (only lowercase)", 'c in "eo"'),
    "letters": ("letters of either case", "c.isalpha()"),
    "not-spaces": ("not spaces", 'c != " "'),
}
COUNT_CHARACTERS = Family(
    "count-characters",
    printing(
        LINE,
        {
            name: (f"how many characters are {words}", f"sum({test} for c in line)")
            for name, (words, test) in KINDS.items()
        },
    ),
)
REPLACE_CHARACTERS = Family(
    "replace-characters",
    (
        *printing(
            LINE,
            {
                "dashes": ("the line with each space replaced by a dash", 'line.replace(" ", "-")'),
                "no-spaces": ("the line without its spaces", 'line.replace(" ", "")'),
                "a-to-o": ("the line with each lowercase a replaced by o", 'line.replace("a", "o")'),
                "upper": ("the line in capital letters", "line.upper()"),
                "lower": ("the line in lowercase letters", "line.lower()"),
                "swapped-case": ("the line with small letters made capital and capital ones small", "line.swapcase()"),
                "quoted": ("the line with a star before it and a star after it", 'f"*{line}*"'),
                "reversed": ("the line backwards", "line[::-1]"),
            },
            output=TEXT,
            checker="lines",
        ),
        *printing(
            LINE,
            {
                f"{name}-to-{mark_name}": (
                    f"the line with a {mark} in place of all characters that are {KINDS[name][0]}",
                    f'"".join("{mark}" if {KINDS[name][1]} else c for c in line)',
                )
                for name, mark, mark_name in (
                    ("vowels", "*", "star"),
                    ("digits", "#", "hash"),
                    ("capitals", "+", "plus"),
                    ("consonants", ".", "dot"),
                )
            },
            output=TEXT,
            difficulty=MEDIUM,
            checker="lines",
        ),
    ),
    held_out=True,
)
WORDS_IN_LINE = Family(
    "words-in-line",
    (
        *printing(
            LINE_OF_WORDS,
            {
                "count": ("how many words there are", "len(words)"),
                "letters": ("how many letters all words have together", 'len("".join(words))'),
                "longest-length": ("the length of the longest word", "max(map(len, words))"),
                "long-ones": ("how many words have more than 4 letters", "sum(len(word) > 4 for word in words)"),
                "different": ("how many different words there are", "len(set(words))"),
                "like-first": ("how often the first word appears", "words.count(words[0])"),
            },
        ),
        *printing(
            LINE_OF_WORDS,
            {
                "first": ("the first word", "words[0]"),
                "last": ("the last word", "words[-1]"),
                "reversed": ("the words in reverse order", "*words[::-1]"),
                "sorted": ("the words in alphabetical order", "*sorted(words)"),
                "initials": ("the first letter of each word, without spaces", '"".join(word[0] for word in words)'),
                "capitalized": (
                    "the words, each with its first letter in upper case",
                    "*[word.capitalize() for word in words]",
                ),
            },
            output=TEXT,
        ),
        *printing(
            LINE_OF_WORDS,
            {
                "longest": ("the longest word, the first one if there are several", "max(words, key=len)"),
                "each-backwards": ("the words in their order, each one backwards", "*[word[::-1] for word in words]"),
                "lengths": ("the length of each word", "*map(len, words)"),
                "by-length": (
                    "the words from shortest to longest, equally long ones in their order",
                    "*sorted(words, key=len)",
                ),
                "no-repeats": ("the words without those that came before", "*dict.fromkeys(words)"),
                "ends-swapped": (
                    "the words with the first and the last one swapped",
                    "words[-1], *words[1:-1], *words[:1] * (len(words) > 1)",
                ),
            },
            output=TEXT,
            difficulty=MEDIUM,
        ),
    ),
)
WORD_LIST = Family(
    "word-list",
    (
        *printing(
            WORD_LINES,
            {
                "joined": ("all words without spaces between", '"".join(words)'),
                "on-one-line": ("all words on one line", "*words"),
                "last-letters": ("the last letter of each word, without spaces", '"".join(word[-1] for word in words)'),
                "earliest": ("the word that comes first in the alphabet", "min(words)"),
                "shortest": ("the shortest word, the first one if there are several", "min(words, key=len)"),
                "with-commas": ("all words on one line with a comma between, without spaces", '",".join(words)'),
                "backwards": ("the words on one line in reverse order", "*words[::-1]"),
            },
            output=TEXT,
        ),
        *printing(
            WORD_LINES,
            {
                "with-a": ("how many words have a letter a", 'sum("a" in word for word in words)'),
                "short-ones": ("how many words have at most 4 letters", "sum(len(word) <= 4 for word in words)"),
                "letters": ("how many letters all words have together", "sum(len(word) for word in words)"),
                "same-as-last": (
                    "how many words begin with the same letter as the last word",
                    "sum(word[0] == words[-1][0] for word in words)",
                ),
            },
            difficulty=MEDIUM,
        ),
        *deciding(
            WORD_LINES,
            {
                "all-long": ("all words have more than 2 letters", "all(len(word) > 2 for word in words)"),
                "sorted": ("the words are in alphabetical order", "words == sorted(words)"),
            },
            difficulty=MEDIUM,
        ),
    ),
)
WORD_CHAINS = Family(
    "word-chains",
    (
        *tasks(
            LINE_OF_WORDS,
            {
                "most-frequent": (
                    "Print the most frequent word; among equally frequent ones the first in the alphabet.",
                    "print(max(sorted(words), key=words.count))",
                ),
                "pig-latin": (
                    "Move the first letter of each word to its end and add ay: dog becomes ogday. Print the words.",
                    'print(*[word[1:] + word[0] + "ay" for word in words])',
                ),
                "acronyms": (
                    "Print for each word its first letter, how many letters it has, and its last letter: dog becomes d3g.",
                    'print(*[f"{word[0]}{len(word)}{word[-1]}" for word in words])',
                ),
                "by-last-letter": (
                    "Sort the words by their last letter, those with the same one alphabetically. Print them.",
                    "print(*sorted(words, key=lambda word: (word[-1], word)))",
                ),
                "swap-neighbours": (
                    "Swap the first word with the second, the third with the fourth, and so on. Print the words.",
                    """
                    for i in range(0, len(words) - 1, 2):
                        words[i], words[i + 1] = words[i + 1], words[i]
                    print(*words)
                    """,
                ),
                "upper-long": (
                    "Print the words, those with more than 4 letters in capital letters.",
                    "print(*[word.upper() if len(word) > 4 else word for word in words])",
                ),
                "wave": (
                    "Print the words, the second, fourth, sixth, ... one backwards.",
                    "print(*[word[::-1] if i % 2 else word for i, word in enumerate(words)])",
                ),
            },
            output=TEXT,
            difficulty=HARD,
        ),
        *printing(
            LINE_OF_WORDS,
            {
                "shared-start": (
                    "how many words begin with the letter that ends the word before",
                    "sum(a[-1] == b[0] for a, b in zip(words, words[1:]))",
                ),
            },
            difficulty=HARD,
        ),
    ),
)
FAMILIES = (COUNT_CHARACTERS, REPLACE_CHARACTERS, WORDS_IN_LINE, WORD_LIST, WORD_CHAINS)
