"""How large each slide of a built deck is: chromium lays it out, on a page as wide as the deck's.
Code that the style sheet would let one scroll counts in full: nobody scrolls on a wall.

Without chromium there is no answer (`browser()` is None), and what asks must do without one.
`python -m tests.slide_sizes DIRECTORY/lesson1.html` prints a line a slide.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH, HEIGHT = 1280, 720  # slides/conf.py: revealjs_script_conf
SECONDS = 900
ASK = """
<script>
const slides = [...document.querySelectorAll(".slides > section > section")];
const found = [];
document.querySelector(".slides").style.width = "%dpx";
for (const code of document.querySelectorAll("pre code")) code.style.maxHeight = "none";
for (const slide of slides) {
  slide.parentNode.style.display = slide.style.display = "block";
  const widths = [slide, ...slide.querySelectorAll("pre code")].map((each) => each.scrollWidth);
  found.push([slide.querySelector("h1, h2").textContent, slide.scrollHeight, Math.max(...widths)]);
  slide.parentNode.style.display = slide.style.display = "none";
}
document.body.textContent = "sizes" + JSON.stringify(found) + "sizes";
</script>
"""


def browser() -> str | None:
    """The path of chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def sizes(deck: Path) -> list[tuple[str, int, int]]:
    """Title, height and width of each slide, in the deck's pixels."""
    html = re.sub(r"<script.*?</script>", "", deck.read_text(encoding="utf-8"), flags=re.DOTALL)
    page = deck.with_name(f"{deck.stem}-sizes.html")
    page.write_text(html.replace("</body>", ASK % WIDTH + "</body>"), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command += [f"--user-data-dir={profile}", "--virtual-time-budget=5000"]
        done = subprocess.run(
            [*command, f"--window-size={WIDTH},{HEIGHT}", page.as_uri()],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
    page.unlink()
    text = re.search(r"sizes(\[.*\])sizes", done.stdout, re.DOTALL)[1]
    return [tuple(each) for each in json.loads(text.replace("&amp;", "&").replace("&gt;", ">"))]


if __name__ == "__main__":
    for number, (title, height, width) in enumerate(sizes(Path(sys.argv[1])), 1):
        print(f"{number:3} {height:5} {width:5}  {title}")
