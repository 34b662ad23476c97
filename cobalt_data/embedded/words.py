"""Families about one word: its forms, checks, letters, ciphers."""

from cobalt_data.embedded.family import HARD, MEDIUM, TEXT, Family, deciding, printing, tasks
from cobalt_data.embedded.shapes import WORD

ONE_WORD = "One word."
ONE_WORD_FORMS = Family(
    "one-word",
    (
        *printing(
            WORD,
            {
                "reversed": ("the word backwards", "word[::-1]"),
                "upper": ("the word in capital letters", "word.upper()"),
                "capitalized": ("the word with its first letter in upper case", "word.capitalize()"),
                "first": ("the first letter of the word", "word[0]"),
                "last": ("the last letter of the word", "word[-1]"),
                "doubled": ("the word twice without a space between", "word * 2"),
                "plural": ("the word with the letter s added at the end", 'word + "s"'),
                "mirrored": ("the word followed by itself backwards, without a space", "word + word[::-1]"),
                "ends": ("the first and the last letter of the word, without a space", "word[0] + word[-1]"),
                "in-brackets": ("the word inside round brackets", 'f"({word})"'),
                "spaced": ("the letters of the word with one space between", "*word"),
                "stretched": ("the word with each letter written twice", '"".join(letter * 2 for letter in word)'),
            },
            output=TEXT,
        ),
        *printing(WORD, {"length": ("the number of letters of the word", "len(word)")}),
        *printing(
            WORD,
            {
                "every-second": ("the first, third, fifth, ... letter of the word", "word[::2]"),
                "rotated": ("the word with its first letter moved to the end", "word[1:] + word[0]"),
                "middle-star": (
                    "the word with a star between each two letters",
                    '"*".join(word)',
                ),
                "alternating": (
                    "the word with its first, third, fifth, ... letter in upper case",
                    '"".join(c if i % 2 else c.upper() for i, c in enumerate(word))',
                ),
                "staircase": (
                    "the first letter, the first two letters, and so on up to the whole word, with spaces between",
                    "*[word[:i] for i in range(1, len(word) + 1)]",
                ),
            },
            output=TEXT,
            difficulty=MEDIUM,
        ),
    ),
)
WORD_CHECK = Family(
    "word-check",
    (
        *deciding(
            WORD,
            {
                "has-e": ("the word has a letter e", '"e" in word'),
                "starts-with-vowel": ("the word begins with a vowel (a, e, i, o, u)", 'word[0] in "aeiou"'),
                "long": ("the word has more than 4 letters", "len(word) > 4"),
                "palindrome": ("the word reads the same backwards", "word == word[::-1]"),
                "same-ends": ("the first and the last letter are the same", "word[0] == word[-1]"),
                "even-length": ("the word has an even number of letters", "len(word) % 2 == 0"),
            },
        ),
        *deciding(
            WORD,
            {
                "all-different": ("no letter appears twice in the word", "len(set(word)) == len(word)"),
                "ordered": ("the letters of the word are in alphabetical order", "list(word) == sorted(word)"),
                "double-letter": (
                    "two neighbouring letters are the same",
                    "any(a == b for a, b in zip(word, word[1:]))",
                ),
                "more-vowels": (
                    "more than half of the letters are vowels (a, e, i, o, u)",
                    'sum(c in "aeiou" for c in word) * 2 > len(word)',
                ),
                "alternating": (
                    "no two neighbouring letters are both vowels or both not (vowels: a, e, i, o, u)",
                    'all((a in "aeiou") != (b in "aeiou") for a, b in zip(word, word[1:]))',
                ),
            },
            difficulty=MEDIUM,
        ),
    ),
)
LETTERS = Family(
    "letters",
    (
        *printing(
            WORD,
            {
                "sorted": ("the letters of the word in alphabetical order, without spaces", '"".join(sorted(word))'),
                "different": ("the word without letters that came before", '"".join(dict.fromkeys(word))'),
                "most-frequent": (
                    "the most frequent letter, the first in the alphabet if there are several",
                    "max(sorted(word), key=word.count)",
                ),
                "latest": ("the letter of the word that is last in the alphabet", "max(word)"),
                "backwards": (
                    "the letters from last in the alphabet to first, without spaces",
                    '"".join(sorted(word)[::-1])',
                ),
                "first-single": (
                    "the first letter that appears once in the word, or none",
                    'next((c for c in word if word.count(c) == 1), "none")',
                ),
            },
            output=TEXT,
            difficulty=MEDIUM,
        ),
        *printing(
            WORD,
            {
                "count-different": ("the number of different letters in the word", "len(set(word))"),
                "highest-count": ("how often the most frequent letter appears", "max(map(word.count, word))"),
                "value": (
                    "the sum of the letters' values: a is 1, b is 2, and so on",
                    "sum(ord(c) - 96 for c in word)",
                ),
            },
            difficulty=MEDIUM,
        ),
        *printing(
            WORD,
            {
                "counts": (
                    "for each different letter in alphabetical order the letter and its count: aab becomes a2b1",
                    '"".join(f"{c}{word.count(c)}" for c in sorted(set(word)))',
                ),
            },
            output=TEXT,
            difficulty=HARD,
        ),
        *tasks(
            WORD,
            {
                "run-lengths": (
                    "Replace each run of equal letters by the letter and its length: aaba becomes a2b1a1.",
                    'from itertools import groupby\n\nprint("".join(f"{c}{len(list(run))}" for c, run in groupby(word)))',
                ),
            },
            output=TEXT,
            difficulty=HARD,
        ),
    ),
)


def shifted(amount: str) -> str:
    """A program that moves each letter of the word through the alphabet; the amount may depend on its place i."""
    return f"""
    result = ""
    for i, letter in enumerate(word):
        result += chr((ord(letter) - 97 + {amount}) % 26 + 97)
    print(result)
    """


CIPHERS = Family(
    "ciphers",
    tasks(
        WORD,
        {
            "next": ("Replace each letter by the next one in the alphabet, and z by a.", shifted("1")),
            "previous": ("Replace each letter by the one before it in the alphabet, and a by z.", shifted("25")),
            "three": ("Move each letter 3 places on in the alphabet; after z comes a.", shifted("3")),
            "thirteen": ("Move each letter 13 places on in the alphabet; after z comes a.", shifted("13")),
            "growing": (
                "Move the first letter 1 place on in the alphabet, the second 2 places, and so on; after z comes a.",
                shifted("i + 1"),
            ),
            "odd-places": (
                "Replace the first, third, fifth, ... letter by the next one in the alphabet, and z by a.",
                shifted("(i + 1) % 2"),
            ),
            "by-length": (
                "Move each letter on in the alphabet by the word's length; after z comes a.",
                shifted("len(word)"),
            ),
            "mirror": (
                "Replace a by z, b by y, c by x and so on: each letter by its mirror in the alphabet.",
                'print("".join(chr(219 - ord(letter)) for letter in word))',
            ),
            "numbers": (
                "Print the place of each letter in the alphabet (a is 1) with a dash between.",
                'print("-".join(str(ord(letter) - 96) for letter in word))',
            ),
            "vowel-digits": (
                "Replace a by 1, e by 2, i by 3, o by 4 and u by 5; keep all other letters.",
                'print(word.translate(str.maketrans("aeiou", "12345")))',
            ),
        },
        output=ONE_WORD,
        difficulty=HARD,
    ),
)
FAMILIES = (ONE_WORD_FORMS, WORD_CHECK, LETTERS, CIPHERS)
