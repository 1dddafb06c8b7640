"""Adds to the documents' site what is made when it is built: reference, version, sources (mkdocs calls this)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from reference import pages

import qblock

ASSETS = Path(__file__).parent / "assets"


def on_config(config: Any, **_: Any) -> Any:
    """The version that the pages are about, at the foot of each."""
    config.copyright = f"qblock {qblock.__version__}"
    return config


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """The pages of the repository, those that are made, and the script that searches without a server."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for path in ASSETS.iterdir():
        files.append(File.generated(config, f"assets/{path.name}", abs_src_path=str(path)))
    return files


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """The page, and where its text is kept, which a search leaves out."""
    source = f"Source: <code>docs/{page.file.src_uri}</code>"
    if page.file.generated_by is not None:
        source = "Made from the code when the site is built"
    return f"{html}\n<p data-search-exclude><small>{source}</small></p>\n"
