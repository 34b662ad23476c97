"""Statements in HTML as plain text: paragraphs, lists, tables and preformatted parts keep their lines, powers their `^`.

Pictures and everything that a browser would run are left out.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

BLOCKS = frozenset(
    ["p", "div", "section", "article", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "pre", "blockquote"]
)
LINES = frozenset(["br", "li", "tr"])
MARKS = {"li": "- ", "sup": "^", "sub": "_", "td": " ", "th": " "}
SILENT = frozenset(["script", "style", "head", "title"])


def html_to_text(html: str) -> str:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", "".join(reader.parts))).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in SILENT
        self._preformatted += tag == "pre"
        self._break(tag)
        if tag in MARKS:
            self.parts.append(MARKS[tag])

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(self._silent - (tag in SILENT), 0)
        self._preformatted = max(self._preformatted - (tag == "pre"), 0)
        if tag in BLOCKS:
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if not self._preformatted:
            data = re.sub(r"\s+", " ", data)
            if not self.parts or self.parts[-1].endswith("\n"):
                data = data.lstrip()
        if data:
            self.parts.append(data)

    def _break(self, tag: str) -> None:
        if tag in BLOCKS:
            self.parts.append("\n\n")
        elif tag in LINES:
            self.parts.append("\n")
