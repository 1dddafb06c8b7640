"""The page of all messages: what is raised anywhere is on it, as commands print it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "site"))

from messages import HOLE, Message, messages, modules, shown, unread  # noqa: E402

TRANSCRIPTS = ROOT / "tests" / "transcripts"
ELSEWHERE = {
    "qblock.hierarchy.files": "problems of a hierarchy, noted as Problem",
    "qblock.release.dry_run": "starts a dry run again and is never printed",
    "qblock.release.roles": "what roles may reach, noted by statement",
    "qblock.results.audit": "the message of Refused, kept in an answer",
    "qblock.results.search": "the message of Refused, kept in an answer",
    "qblock.search.compare": "problems of a file, noted as wrong",
    "qblock.search.result": "why a search ended, in words of its choice",
    "qblock.search.workload": "problems of a file, noted as wrong",
    "qblock.spec.load": "problems of a spec, noted as wrong",
}
"""Where an error is raised whose text stands elsewhere, and where."""
REMARKS = r"\d+ (person|people) withdraws?; "
"""What `! qblock: ` begins without being an error."""


def all_messages() -> list[Message]:
    return [message for module in modules() for message in module.messages]


def pattern(text: str) -> re.Pattern[str]:
    """What a message matches as it is printed."""
    return re.compile(".*".join(map(re.escape, HOLE.split(" ".join(text.split())))))


def printed() -> set[str]:
    """The errors that commands print in the transcripts."""
    lines = (line for file in TRANSCRIPTS.rglob("*.txt") for line in file.read_text("utf-8").splitlines())
    return {line.removeprefix("! qblock: ") for line in lines if line.startswith("! qblock: ")}


def test_every_error_has_its_text_on_the_page() -> None:
    assert set(unread()) == set(ELSEWHERE)


def test_the_page_has_what_commands_print() -> None:
    patterns = [pattern(message.text.replace("2026-01-31", "YYYY-MM-DD")) for message in all_messages()]
    patterns = [known for known in patterns if len(known.pattern.replace(".*", "")) > 10]
    errors = {line for line in printed() if not re.match(REMARKS, line)}
    assert len(errors) > 30
    assert [line for line in sorted(errors) if not any(known.search(line) for known in patterns)] == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (1, "the disk is full"),
        (2, "a spec starts with `version: 1`"),
        (3, "no node satisfies the spec"),
        (4, "is in progress"),
    ],
)
def test_a_message_stands_below_its_exit_status(status: int, words: str) -> None:
    _, *sections = re.split(r"(?m)^## Exit status ", "\n".join(messages()))
    assert [section[0] for section in sections] == list("1234")
    assert [section[0] for section in sections if shown(words) in section] == [str(status)]


def test_a_message_is_searched_by_its_words() -> None:
    page = "\n".join(messages())
    for message in all_messages():
        assert shown(message.text) in page or len(HOLE.sub("", message.text).strip(" :;.,")) < 6


def test_troubleshooting_quotes_messages_of_the_code() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8").split("## What happens most")[1]
    quoted = re.findall(r"(?m)^\| `([^`]*)` \|", text)
    assert len(quoted) > 4
    texts = [" ".join(message.text.split()) for message in all_messages()]
    for quote in quoted:
        assert any(re.search(".*".join(map(re.escape, quote.split("..."))), text) for text in texts), quote
