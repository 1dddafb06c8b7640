"""The picture of README.md: the page that `search --explore` writes of the demo: `python site/screenshot.py`.

It needs a browser (`pip install -e ".[browser]"`, and chromium), and is run when the look of the page changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "options.png"
QBLOCK = str(Path(sys.executable).with_name("qblock"))
THRESHOLD = "#t-0-0"
"""The field of the first model's parameter."""


def main() -> None:
    """Make the demo, write its page and take the answer to k = 20 in groups that show the gender."""
    with TemporaryDirectory() as folder:
        for command in (["demo", folder], ["search", f"{folder}/release.yaml", "--explore", f"{folder}/options.html"]):
            subprocess.run([QBLOCK, *command], check=True, stdout=subprocess.DEVNULL, env=os.environ)
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1000, "height": 700})
            page.goto(Path(folder, "options.html").as_uri())
            page.fill(THRESHOLD, "20")
            page.locator("#get").scroll_into_view_if_needed()
            page.evaluate("document.getElementById('get').scrollIntoView()")
            page.screenshot(path=PICTURE)
            browser.close()


if __name__ == "__main__":
    main()
