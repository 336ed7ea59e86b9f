"""The licences of what a page ships: a page that names each part, its version and its licence, with
the whole texts. A part whose text is not found is not shipped without it."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path

from labs.tools.guest.package import PackageError, cache_directory, fetch
from labs.tools.guest.programs import BUSYBOX

ROOT = Path(__file__).resolve().parents[2]
COMMON = Path("/usr/share/common-licenses")
COPYRIGHTS = (Path("/usr/share/doc/seabios/copyright"), Path("/usr/share/licenses/seabios/COPYING"))


class LicenceError(Exception):
    """A licence's text is missing; the message names what it is for."""


@dataclass(frozen=True)
class Part:
    """What is shipped, and under which licence: `texts` are files."""

    name: str
    version: str
    licence: str
    texts: tuple[Path, ...]
    source: str = ""


def version_of(package: Path) -> str:
    """The version of an npm package."""
    return json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]


def parts(modules: Path, with_programs: bool) -> list[Part]:
    """All that a site has from others. Raises LicenceError."""
    copyright_file = next((path for path in COPYRIGHTS if path.is_file()), None)
    if copyright_file is None:
        raise LicenceError("the licence of SeaBIOS is missing: install Debian's package seabios")
    v86, xterm = modules / "v86", modules / "@xterm/xterm"
    lgpl = tuple(path for path in (COMMON / "LGPL-3", COMMON / "GPL-3") if path.is_file())
    found = [
        Part("Apprentice", "", "MIT", (ROOT / "LICENSE",)),
        Part("v86", version_of(v86), "BSD-2-Clause", (v86 / "LICENSE",)),
        Part("xterm.js", version_of(xterm), "MIT", (xterm / "LICENSE",)),
        Part("SeaBIOS", "", "LGPL-3", (copyright_file, *lgpl), "the source package seabios"),
    ]
    return [*found, *busybox_part()] if with_programs else found


def busybox_part() -> list[Part]:
    """busybox, where it is among the guest's programs."""
    try:
        package = fetch(BUSYBOX)
        target = cache_directory() / f"busybox-{package.version}-copyright"
        member = f"usr/share/doc/{BUSYBOX}/copyright"
        text = target if target.exists() else package.extract(member, target)
    except PackageError:
        return []  # then the guest has no busybox: labs/tools/guest/programs.py
    source = f"the source package busybox, {package.version}"
    gpl = tuple(path for path in (COMMON / "GPL-2",) if path.is_file())
    return [Part("busybox", package.version, "GPL-2", (text, *gpl), source)]


def write(modules: Path, site: Path, with_programs: bool) -> None:
    """Puts licences.html and the texts into the site. Raises LicenceError."""
    folder = site / "licences"
    folder.mkdir()
    rows = []
    for part in parts(modules, with_programs):
        links = []
        for path in part.texts:
            name = f"{part.name}-{path.name}.txt"
            (folder / name).write_bytes(path.read_bytes())
            links.append(f'<a href="licences/{name}">{html.escape(name)}</a>')
        source = f"Source: Debian, {html.escape(part.source)}." if part.source else ""
        rows.append(
            f"<li>{part.name} {html.escape(part.version)}: {part.licence}. {source} "
            f"{', '.join(links)}</li>"
        )
    (site / "licences.html").write_text(PAGE.format(rows="\n".join(rows)), encoding="utf-8")


PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Licences - Apprentice</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css"></head>
<body><main><h1>What these pages consist of</h1>
<ul>
{rows}
</ul>
<p>Handouts and slides bring their own: Sphinx with the theme Furo (MIT), reveal.js (MIT).</p>
</main></body>
</html>
"""
