"""Words of the documents and the mean length of their sentences: `python tests/project/prose.py [PAGE ...]`.

Counted is what a person reads from left to right: neither blocks of code nor tables, headings, comments or addresses of
links. Decisions are left out, which a user need not read.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNREAD = re.compile(r"(?s)^```.*?^```\s*$|<!--.*?-->", re.M)
LINE_UNREAD = re.compile(r"^(\||#| {4}\S|---|!\[|<|:\w|!!!)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[\w)`*\"'])[.:;?!](?=\s+[A-Z0-9`*\"(\[]|\s*$)")
"""Where a sentence ends: also at a colon or semicolon that a capital follows."""


@dataclass(frozen=True)
class Page:
    """words: in sentences and items of lists; sentences: how many of them."""

    path: str
    words: int
    sentences: int

    @property
    def mean(self) -> float:
        """Words of a sentence."""
        return self.words / self.sentences if self.sentences else 0.0


def paragraphs(text: str) -> list[str]:
    """Paragraphs and items of lists, each on one line."""
    lines, read = UNREAD.sub("", text).splitlines(), [""]
    for line in lines:
        if not line.strip() or LINE_UNREAD.match(line):
            read.append("")
        elif re.match(r"\s*([-*+]|\d+\.) ", line):
            read.append(re.sub(r"^\s*([-*+]|\d+\.) +", "", line))
        else:
            read[-1] += " " + line.strip()
    return [LINK.sub(r"\1", paragraph).strip() for paragraph in read if paragraph.strip()]


def page_of(path: Path) -> Page:
    """The counts of a page."""
    sentences = [part for text in paragraphs(path.read_text("utf-8")) for part in END.split(text) if part.strip()]
    return Page(
        path.resolve().relative_to(ROOT).as_posix(), sum(len(part.split()) for part in sentences), len(sentences)
    )


def pages() -> list[Page]:
    """Those of the site and README.md."""
    documents = (path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "decisions")
    return [page_of(path) for path in (ROOT / "README.md", *documents)]


if __name__ == "__main__":
    counted = [page_of(Path(name)) for name in sys.argv[1:]] or pages()
    for page in sorted(counted, key=lambda page: -page.words):
        print(f"{page.words:6,} words  {page.mean:5.1f} a sentence  {page.path}")
    print(f"{sum(page.words for page in counted):6,} words in {len(counted)} pages")
