"""The dev container and the editor's tasks name what is there. make container builds and uses the
container; labs/laptop.md says what was tried."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from tests.support.building import ROOT

TOOLS = ROOT / "labs/tools/setup"


def test_the_container_installs_what_packages_txt_says() -> None:
    """Its own line of awk, run: the packages for run and test, and no others."""
    text = (ROOT / ".devcontainer/Dockerfile").read_text()
    script = re.search(r"awk '([^']+)' /tmp/setup/packages.txt", text)[1]
    command = ["awk", script, str(TOOLS / "packages.txt")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in (TOOLS / "packages.txt").read_text().splitlines()]
    assert said.split() == [row[2] for row in rows if row and row[0] in ("run", "test")]
    for name in re.findall(r"labs/tools/setup/[\w.-]+", text):
        assert (ROOT / name).is_file(), name


def test_the_container_is_built_from_there() -> None:
    settings = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    folder = ROOT / ".devcontainer"
    assert (folder / settings["build"]["dockerfile"]).is_file()
    assert (folder / settings["build"]["context"]).resolve() == ROOT
    user = settings["remoteUser"]
    assert f"useradd -m -s /bin/bash {user}" in (folder / "Dockerfile").read_text()


def test_make_container_needs_its_tools(tmp_path: Path) -> None:
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(shutil.which(name))
    command, environment = [TOOLS / "container.sh"], {"PATH": str(tmp_path)}
    done = subprocess.run(
        ["/usr/bin/env", "bash", *command], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    said = "container: buildah is missing: apt-get install buildah\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_tasks_are_commands_of_make() -> None:
    tasks = json.loads((ROOT / ".vscode/tasks.json").read_text())
    text = (ROOT / "Makefile").read_text()
    inputs = {each["id"] for each in tasks["inputs"]}
    for task in tasks["tasks"]:
        assert set(re.findall(r"\$\{input:(\w+)\}", task["command"])) <= inputs
        make, target, *_ = task["command"].split()
        assert make == "make" and re.search(rf"^{target}:", text, re.MULTILINE), task
