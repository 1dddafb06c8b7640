"""Adds the reference to the site when it is built (mkdocs calls this)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from reference import pages


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """The pages of the repository, and those that are made."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files
