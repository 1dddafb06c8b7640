"""Each message that ends a command, once: lines of recorded/messages.txt, below their exit status.

An edit of a message is seen there as a reader sees it, with `<...>` for what depends on the run. Which file a message
comes from is not said: a message that moves is the same. QBLOCK_TRANSCRIPTS=update writes them anew (docs/testing.md,
Transcripts).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).parent / "recorded" / "messages.txt"
ANEW = "QBLOCK_TRANSCRIPTS=update .venv/bin/python -m pytest tests/transcripts/test_messages.py"
sys.path.insert(0, str(ROOT / "site"))

from messages import MEANINGS, bare, modules  # noqa: E402


def recorded() -> str:
    """The messages of the code by exit status and words."""
    every = {
        (message.status, " ".join(message.text.split()))
        for module in modules()
        for message in module.messages
        if not bare(message.text)
    }
    parts = [
        "\n".join([f"# {status}: {meaning}", "", *sorted(text for of, text in every if of == status), ""])
        for status, meaning in MEANINGS.items()
    ]
    return "\n".join(parts)


def test_each_message_stands_there_once() -> None:
    text = recorded()
    if os.environ.get("QBLOCK_TRANSCRIPTS") == "update":
        FILE.write_text(text, "utf-8")
    assert FILE.read_text("utf-8") == text, f"write it anew: {ANEW}"
    lines = [line for line in text.splitlines() if line]
    assert len(lines) == len(set(lines)) > 500
