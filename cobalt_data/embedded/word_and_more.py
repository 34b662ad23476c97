"""Families about a word and something else: a second word, an age, a letter."""

from random import Random

from cobalt_data.embedded.family import MEDIUM, TEXT, Family, Shape, deciding, printing
from cobalt_data.embedded.shapes import (
    NAMES,
    TWO_WORDS,
    draw_word,
)

TWO_WORD_FORMS = Family(
    "two-words",
    (
        *printing(
            TWO_WORDS,
            {
                "joined": ("both words without a space between", "first + second"),
                "swapped": ("the second word, a space and the first word", "second, first"),
                "longer": ("the longer word, the first one if they are equally long", "max(first, second, key=len)"),
                "earlier": ("the word that comes first in the alphabet", "min(first, second)"),
                "hyphen": ("both words with a dash between", 'f"{first}-{second}"'),
                "initials": ("the first letters of both words, without a space", "first[0] + second[0]"),
            },
            output=TEXT,
        ),
        *printing(
            TWO_WORDS,
            {
                "total-length": ("how many letters both words have together", "len(first + second)"),
                "same-places": (
                    "how many places have the same letter in both words",
                    "sum(a == b for a, b in zip(first, second))",
                ),
                "common": ("how many different letters are in both words", "len(set(first) & set(second))"),
            },
            difficulty=MEDIUM,
        ),
        *deciding(
            TWO_WORDS,
            {
                "inside": ("the first word is contained in the second", "first in second"),
                "same-length": ("both words have the same length", "len(first) == len(second)"),
                "same-letters": (
                    "the second word has the letters of the first in some order",
                    "sorted(first) == sorted(second)",
                ),
            },
            difficulty=MEDIUM,
        ),
    ),
)


def draw_person(random: Random, size: int) -> str:
    return f"{random.choice(NAMES)}\n{random.randint(1, 90)}"


PERSON = Shape(
    text="The first line has a name. The second line has an age n (1 to 90).",
    read="name = input()\nn = int(input())",
    draw=draw_person,
    edges=("Al\n1", "Maximilian\n90", "Bo\n17", "Zoe\n18"),
)
GREETINGS = Family(
    "greetings",
    printing(
        PERSON,
        {
            "hello": ("Hello NAME with the given name in place of NAME", 'f"Hello {name}"'),
            "is-old": ("NAME is N years old with the given name and age", 'f"{name} is {n} years old"'),
            "next-year": ("NAME will be N with the name, and the age in one year for N", 'f"{name} will be {n + 1}"'),
            "label": ("NAME: N with the name and the age", 'f"{name}: {n}"'),
            "goodbye": ("Bye NAME! with the given name in place of NAME", 'f"Bye {name}!"'),
            "shout": ("the name in capital letters, a space and the age", "name.upper(), n"),
            "age-first": ("the age, a space and the name", "n, name"),
            "double-age": ("the name, a space and twice the age", "name, 2 * n"),
            "adult": (
                "NAME is a child if the age is below 18, otherwise NAME is an adult",
                'name, "is a child" if n < 18 else "is an adult"',
            ),
            "short": ("the first letter of the name, a point, and the age, without spaces", 'f"{name[0]}.{n}"'),
        },
        output=TEXT,
        checker="lines",
    ),
)


def draw_word_and_letter(random: Random, size: int) -> str:
    word = draw_word(random)
    return f"{word}\n{random.choice(word + 'aexz')}"


WORD_AND_LETTER = Shape(
    text="The first line has a lowercase word. The second line has one letter.",
    read="word = input()\nletter = input()",
    draw=draw_word_and_letter,
    edges=("a\na", "a\nb", "banana\na", "level\nl", "zzz\nz", "river\nx"),
)
WORD_AND_LETTER_FORMS = Family(
    "word-and-letter",
    (
        *printing(
            WORD_AND_LETTER,
            {
                "count": ("how often the letter appears in the word", "word.count(letter)"),
                "first-place": (
                    "the position (from 1) of the letter's first appearance, or 0",
                    "word.find(letter) + 1",
                ),
                "last-place": ("the position (from 1) of the letter's last appearance, or 0", "word.rfind(letter) + 1"),
                "others": ("how many letters of the word are not this letter", "len(word) - word.count(letter)"),
            },
        ),
        *printing(
            WORD_AND_LETTER,
            {
                "added": ("the word with the letter added at its end", "word + letter"),
                "around": ("the letter, the word and the letter again, without spaces", "letter + word + letter"),
                "starred": ("the word with each such letter replaced by *", 'word.replace(letter, "*")'),
                "raised": ("the word with each such letter in upper case", "word.replace(letter, letter.upper())"),
                "between": ("the word with the letter put between each two of its letters", "letter.join(word)"),
            },
            output=TEXT,
        ),
        *deciding(
            WORD_AND_LETTER,
            {
                "contains": ("the word contains the letter", "letter in word"),
                "at-end": ("the word begins or ends with the letter", "letter in (word[0], word[-1])"),
                "twice": ("the letter appears at least twice in the word", "word.count(letter) >= 2"),
            },
        ),
    ),
)
FAMILIES = (TWO_WORD_FORMS, GREETINGS, WORD_AND_LETTER_FORMS)
