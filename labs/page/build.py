"""Makes the folder of pages that run the course's kernels in a browser (make page, make share).

    python -m labs.page.build --modules build/npm/node_modules --site build/page 1 2 storage

The kernels and the course's programs are built before. A machine is brought to its prompt under
Node (state.mjs) and saved; the folder has the saved machine, the boot disk, v86, xterm, SeaBIOS,
the texts in English and Chinese, and the licences of all of it. It refers to no other host.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from labs.page import licences
from labs.tools.course.exercises import name_of, number_of
from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.command import Options, in_a_line

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MEMORY = 64  # MiB
NODE_SECONDS = 600
PROGRAMS_SINCE = 3
DISKS = "labs.storage.page_disks"  # only the storage lab's tree has it
SCRIPTS = ("page.js", "machine.js", "images.js", "ends.js", "style.css")
SOURCES_OF_STATES = ("machine.js", "state.mjs", "clock.mjs", "package-lock.json")
FIRMWARE = {"bios": "bios.bin", "vga_bios": "vgabios-stdvga.bin"}
FIRMWARE_FOLDERS = ("/usr/share/seabios", "/usr/share/qemu", "/opt/homebrew/share/qemu")
COMMANDS = re.compile(
    r'<div class="highlight-text notranslate"><div class="highlight"><pre><span></span>'
    r"(.*?)</pre></div>\n</div>",
    re.DOTALL,
)
HEADING = re.compile(r"<h1>.*?</h1>\n?")


class PageError(Exception):
    """The pages cannot be made; the text is one line that names the cause and a remedy."""


@dataclass(frozen=True)
class Language:
    """A language of the pages: `folder` is where they are, from the site's own."""

    key: str
    tag: str
    sphinx: str
    called: str
    folder: str = ""


LANGUAGES = (
    Language("en", "en", "en", "English"),
    Language("zh", "zh-CN", "zh_CN", "中文", "zh/"),
)


def run(command: Sequence[str | Path], what: str, **options: Any) -> str:
    """A program's output. Raises PageError with its last line."""
    try:
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, **options
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PageError(f"{what}: {error}") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise PageError(f"{what} failed: {words[-1] if words else done.returncode}")
    return done.stdout


def pack(data: bytes, path: Path) -> None:
    """Written as gzip, the same bytes each time; the page unpacks it, whatever the server does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, 9, mtime=0))


def firmware() -> dict[str, Path]:
    """SeaBIOS's files of this machine. Raises PageError."""
    found = {}
    for name, file in FIRMWARE.items():
        places = [Path(folder, file) for folder in FIRMWARE_FOLDERS]
        path = next((each for each in places if each.is_file()), None)
        if path is None:
            raise PageError(f"{file} is missing: install SeaBIOS (Debian's package seabios)")
        found[name] = path
    return found


# ---- kernels ------------------------------------------------------------------------------------


@dataclass
class Kernel:
    """A kernel of the site: its boot disk, its other drives, what it finds through fw_cfg."""

    name: str
    image: Path
    disks: dict[str, Path]
    files: dict[str, Path]

    def job(self) -> dict[str, Any]:
        """What state.mjs wants to know."""
        settings = {"seed": "2010", "rows": "25", "columns": "80"}
        drives = {"hda": self.image, **self.disks}
        paths = {name: str(path) for name, path in {**firmware(), **drives}.items()}
        files = {name: str(path) for name, path in self.files.items()}
        return {"memory": MEMORY, "settings": settings, "files": files, **paths}


def kernels(lessons: Sequence[str], work: Path) -> Iterator[Kernel]:
    """The kernels of lessons that are built. Raises PageError."""
    programs = work / "initramfs"
    numbers = [number_of(lesson) for lesson in lessons]
    if max(numbers) >= PROGRAMS_SINCE:
        programs.write_bytes(archive(guest_root(ROOT / "build/user/bin", busybox())))
    for number in numbers:
        name = name_of(number)
        image = ROOT / "build" / name / "boot.img"
        if not image.is_file():
            raise PageError(f"{image.relative_to(ROOT)} is not built: make page builds it")
        files = {"initramfs": programs} if number >= PROGRAMS_SINCE else {}
        yield Kernel(name, image, drives(work) if name == "storage" else {}, files)


def drives(work: Path) -> dict[str, Path]:
    """Small drives for the storage lab: raw, ext3 and ext4, with files. Raises PageError."""
    return importlib.import_module(DISKS).make(work)


def state_of(kernel: Kernel, modules: Path, work: Path) -> dict[str, Any]:
    """What state.mjs says of a kernel; the machine at its prompt is in work/NAME.state, unless it
    comes to none. Kept in work, by all that it depends on. Raises PageError."""
    job = work / f"{kernel.name}.json"
    job.write_text(json.dumps(kernel.job()))
    paths = [HERE / name for name in SOURCES_OF_STATES]
    paths += [kernel.image, *firmware().values(), *kernel.disks.values(), *kernel.files.values()]
    digest = hashlib.sha256(b"".join(hashlib.sha256(p.read_bytes()).digest() for p in paths))
    answer = work / f"{kernel.name}-{digest.hexdigest()[:16]}.json"
    state = work / f"{kernel.name}.state"
    if not answer.is_file():
        for old in work.glob(f"{kernel.name}-*.json"):
            old.unlink()
        state.unlink(missing_ok=True)
        state.with_suffix(".zst").unlink(missing_ok=True)
        command = ["node", HERE / "state.mjs", modules, job, state]
        said = run(command, f"{kernel.name} under Node", timeout=NODE_SECONDS)
        if state.exists():
            target = state.with_suffix(".zst")
            run(["zstd", "-19", "-q", "-f", state, "-o", target], "zstd")
        answer.write_text(said)
    return json.loads(answer.read_text())


def put_kernel(kernel: Kernel, modules: Path, work: Path, site: Path) -> dict[str, Any]:
    """Puts a kernel into the site; returns what page.js wants to know of it."""
    found = state_of(kernel, modules, work)
    entry: dict[str, Any] = {"name": kernel.name, "image": f"images/{kernel.name}.img.gz"}
    pack(kernel.image.read_bytes(), site / entry["image"])
    entry["disks"] = {name: f"images/{name}.img.gz" for name in kernel.disks}
    for name, path in kernel.disks.items():
        pack(path.read_bytes(), site / entry["disks"][name])
    entry["files"] = {name: f"images/{name}.gz" for name in kernel.files}
    for name, path in kernel.files.items():
        pack(path.read_bytes(), site / entry["files"][name])
    if "ended" not in found:
        entry["state"] = f"images/{kernel.name}.state.zst"
        entry["said"] = found["said"]
        paths = {"hda": kernel.image, **kernel.disks}
        entry["sizes"] = {name: path.stat().st_size for name, path in paths.items()}
        shutil.copy(work / f"{kernel.name}.zst", site / entry["state"])
    return entry


# ---- texts --------------------------------------------------------------------------------------


def sphinx(source: Path, target: Path, *options: str) -> None:
    """Runs Sphinx; a warning is an error. Raises PageError."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", *options, str(source), str(target)]
    run(command, f"Sphinx, of {source.name}")


def texts(name: str, language: Language, work: Path) -> tuple[str, str]:
    """A page's title, and its text with a button for each command."""
    page = json.loads((work / "texts" / language.key / name / "page.fjson").read_text())
    body = COMMANDS.sub(buttons, HEADING.sub("", page["body"], count=1))
    return html.unescape(page["title"]), body


def buttons(block: re.Match[str]) -> str:
    """A button for each line of a block of commands, whose text is escaped already."""
    form = '<button type="button" class="command" data-command="{0}">{0}</button>'
    return "\n".join(form.format(line.replace('"', "&quot;")) for line in block[1].splitlines())


def build_texts(names: Sequence[str], work: Path) -> None:
    """The pages' texts, as Sphinx's JSON."""
    for language in LANGUAGES:
        options = ["-b", "json", "-c", str(HERE), "-D", f"language={language.sphinx}"]
        options += ["-D", f"master_doc={names[0]}/page"]
        options += ["-D", "include_patterns=" + ",".join(f"{name}/page.md" for name in names)]
        sphinx(ROOT / "labs", work / "texts" / language.key, *options)


def build_books(site: Path) -> dict[str, dict[str, str]]:
    """The handouts and slides that this tree has, in the languages that they have; by language and
    kind the folder, from the site's."""
    found: dict[str, dict[str, str]] = {language.key: {} for language in LANGUAGES}
    for kind, source, builder in (("handout", "labs", "html"), ("slides", "slides", "revealjs")):
        if not (ROOT / source / "conf.py").is_file() or not (ROOT / source / "index.md").is_file():
            continue
        for language in LANGUAGES:
            translation = ROOT / source / "locale" / language.sphinx
            if language.key != "en" and not translation.is_dir():
                continue
            folder = f"{kind}/{language.key}/"
            options = ["-b", builder, "-D", f"language={language.sphinx}"]
            doctrees = site.with_name(f"{site.name}-work") / "doctrees" / folder
            sphinx(ROOT / source, site / folder, *options, "-d", str(doctrees))
            found[language.key][kind] = folder
    return found


def write_pages(names: Sequence[str], site: Path, work: Path, with_books: bool) -> None:
    """A page for each kernel and language, and the first page."""
    words = tomllib.loads((HERE / "words.toml").read_text(encoding="utf-8"))
    loader = FileSystemLoader(HERE)
    template = Environment(loader=loader, autoescape=False, undefined=StrictUndefined).get_template(
        "template.html"
    )
    build_texts(names, work)
    books = build_books(site) if with_books else {language.key: {} for language in LANGUAGES}
    for language, other in zip(LANGUAGES, reversed(LANGUAGES), strict=True):
        said = {key: text[language.key] for key, text in words.items()}
        pages = [{"name": n, "title": texts(n, language, work)[0]} for n in names]
        root = "../" * language.folder.count("/")
        for name in names:
            title, body = texts(name, language, work)
            text = template.render(
                name=name, title=title, body=body, pages=pages, language=language, other=other,
                root=root, w=said, words_json=json.dumps(said, ensure_ascii=False),
                books=[(said[kind], f"{root}{place(kind, folder, name)}")
                       for kind, folder in books[language.key].items()],
            )  # fmt: skip
            path = site / language.folder / f"{name}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    first = names[-1] if names[-1] != "storage" or len(names) == 1 else names[-2]
    line = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={first}.html">'
    title = f'<title>Apprentice</title><a href="{first}.html">Apprentice</a>'
    (site / "index.html").write_text(f'<!doctype html><html lang="en">{line}{title}</html>\n')


def place(kind: str, folder: str, name: str) -> str:
    """Where a lesson's handout or deck is in its folder."""
    return f"{folder}{name}/README.html" if kind == "handout" else f"{folder}{name}.html"


# ---- all of it ----------------------------------------------------------------------------------


def put_libraries(modules: Path, site: Path) -> None:
    """v86 and xterm, packed, and the page's own scripts."""
    v86, xterm = modules / "v86/build", modules / "@xterm/xterm"
    for path in (v86 / "libv86.mjs", v86 / "v86.wasm", xterm / "lib/xterm.mjs"):
        if not path.is_file():
            raise PageError(f"{path} is missing: labs/tools/setup/setup.sh page")
        pack(path.read_bytes(), site / "lib" / f"{path.name}.gz")
    shutil.copy(xterm / "css/xterm.css", site / "lib/xterm.css")
    for name in SCRIPTS:
        shutil.copy(HERE / name, site / name)


def make_site(lessons: Sequence[str], modules: Path, site: Path, with_books: bool = True) -> None:
    """Makes the folder `site` again from nothing. Raises PageError and LicenceError."""
    work = site.with_name(f"{site.name}-work")
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(site, ignore_errors=True)
    (site / "images").mkdir(parents=True)
    put_libraries(modules, site)
    for name, path in firmware().items():
        pack(path.read_bytes(), site / f"images/{name}.gz")
    entries = [put_kernel(each, modules, work, site) for each in kernels(lessons, work)]
    description = {"memory": MEMORY, "firmware": {name: f"images/{name}.gz" for name in FIRMWARE}}
    text = json.dumps({**description, "kernels": entries})
    (site / "site.json").write_text(text, encoding="utf-8")
    write_pages([entry["name"] for entry in entries], site, work, with_books)
    licences.write(modules, site, with_programs=any(entry["files"] for entry in entries))


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = Options("make page")
    parser.add_argument("--modules", type=Path, required=True, help="npm's node_modules")
    parser.add_argument("--site", type=Path, required=True, help="the folder to make")
    parser.add_argument("--no-books", action="store_true", help="without handouts and slides")
    parser.add_argument("lessons", nargs="+", help="1 to 6, or storage")
    options = parser.parse_args()
    os.umask(0o022)  # a web server may be another user
    try:
        make_site(options.lessons, options.modules, options.site, not options.no_books)
    except (PageError, licences.LicenceError) as error:
        print(f"make page: {error}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in options.site.rglob("*") if path.is_file())
    print(f"{options.site}: {size / 1e6:.1f} MB, for any web server. To look at it here:")
    print(f"  python3 -m http.server --bind 127.0.0.1 --directory {options.site} 8000")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make page", main))
