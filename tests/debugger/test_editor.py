"""`make gdb` for an editor: DAP as an editor speaks it, and gdb's MI."""

from __future__ import annotations

import io
import json
import os
import queue
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labs.tools.debugging.debug import find_gdb
from labs.tools.debugging.editor import Relay, has_dap, pass_on, received, send
from tests.support.gdb_session import LAUNCHER, ROOT

SECONDS = 300
LAUNCH = ROOT / ".vscode/launch.json"
TASKS = ROOT / ".vscode/tasks.json"


class Editor:
    """An editor's part of DAP."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._sent = 0
        self._arrived: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.printed = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while (message := received(self._process.stdout)) is not None:
            self._arrived.put(message)
        self._arrived.put(None)

    def begin(self, command: str, **arguments: Any) -> int:
        """Sends a request, and does not wait."""
        self._sent += 1
        request = {"seq": self._sent, "type": "request", "command": command}
        send(self._process.stdin, {**request, "arguments": arguments})
        return self._sent

    def ask(self, command: str, **arguments: Any) -> Any:
        """Sends a request; returns the body of the response."""
        number = self.begin(command, **arguments)
        answer = self._until(lambda each: each.get("request_seq") == number)
        assert answer["success"], answer
        return answer.get("body")

    def event(self, name: str) -> Any:
        """Waits for an event; returns its body."""
        return self._until(lambda each: each.get("event") == name).get("body")

    def _until(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = self._arrived.get(timeout=SECONDS)
            assert message is not None, "gdb has gone"
            if message.get("event") == "output":
                self.printed += message["body"]["output"]
            if is_it(message):
                return message


@pytest.fixture
def editor(build: Callable[[str], Path]) -> Iterator[Editor]:
    """One that has started `make gdb SERVER=stdio`, as its settings say."""
    gdb, _ = find_gdb()
    if not has_dap(gdb):
        pytest.skip("no gdb here speaks DAP: gdb 14 and later do")
    build("build/storage/kernel.elf")
    command = [*LAUNCHER, "--boot", "direct", "--server", "stdio"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        yield Editor(process)
        assert process.wait(SECONDS) == 0


def test_a_session_by_dap(editor):
    """Breakpoints, frames, variables, our commands, and back: what is typed in the console."""
    assert editor.ask("initialize", adapterID="gdb")["supportsConfigurationDoneRequest"]
    launch = editor.begin("launch", program="kernel.elf")
    editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "kmain"}])
    editor.ask("configurationDone")
    editor.event("stopped")
    editor.ask("continue", threadId=1)
    assert editor.event("stopped")["reason"] == "breakpoint"
    frames = editor.ask("stackTrace", threadId=1)["stackFrames"]
    assert frames[0]["name"] == "kmain"
    (arguments, *_) = editor.ask("scopes", frameId=frames[0]["id"])["scopes"]
    reference = arguments["variablesReference"]
    values = editor.ask("variables", variablesReference=reference)["variables"]
    assert {each["name"]: each["value"] for each in values}["magic"] == "0x2badb002"
    typed = {"context": "repl", "frameId": frames[0]["id"]}
    assert "kmain" in editor.ask("evaluate", expression="where-am-i", **typed)["result"]
    assert "push" in editor.ask("evaluate", expression="back 2", **typed)["result"]
    frames = editor.ask("stackTrace", threadId=1)["stackFrames"]
    assert frames[0]["source"]["name"] == "entry.asm"
    editor.ask("disconnect", terminateDebuggee=True)
    assert launch


def test_a_session_by_mi(build):
    """For cppdbg: gdb's own MI, with the machine connected already."""
    build("build/storage/kernel.elf")
    asked = ["-break-insert kmain", "-exec-continue"]
    done = subprocess.Popen(
        [*LAUNCHER, "--boot", "direct", "--server", "mi"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with done as gdb:
        gdb.stdin.write("".join(f"{each}\n" for each in asked))
        gdb.stdin.flush()
        told = ""
        while '*stopped,reason="breakpoint-hit"' not in told:
            line = gdb.stdout.readline()
            assert line, told
            told += line
        gdb.stdin.write('-stack-list-frames 0 0\n-interpreter-exec console "back 1"\n-gdb-exit\n')
        gdb.stdin.flush()
        told = gdb.stdout.read()
    assert re.search(r'\^done,stack=\[frame=\{level="0".*func="kmain"', told)
    assert "call" in told and "text_start" in told


def test_what_is_launched_is_this_session():
    """Whatever an editor wants to launch: gdb attaches to the machine's socket. The answer has the
    name that the editor knows; noise between messages is dropped."""
    relay = Relay(Path("socket"))
    asked, answers = io.BytesIO(), io.BytesIO()
    send(asked, {"seq": 4, "type": "request", "command": "launch", "arguments": {"program": "x"}})
    asked.write(b"a line that is no message\n")
    send(asked, {"seq": 5, "type": "request", "command": "threads"})
    asked.seek(0)
    pass_on(relay.to_gdb, asked, answers)
    answers.seek(0)
    first, second = received(answers), received(answers)
    assert first["command"] == "attach"
    assert first["arguments"] == {"target": "socket"}
    assert second == {"seq": 5, "type": "request", "command": "threads"}
    response = {"type": "response", "request_seq": 4, "command": "attach", "success": True}
    assert relay.to_editor(response)["command"] == "launch"


def test_the_folder_s_settings():
    """Each configuration begins with a task that there is, and names files that there are."""
    launches = json.loads(LAUNCH.read_text())["configurations"]
    tasks = {each["label"]: each for each in json.loads(TASKS.read_text())["tasks"]}
    by_dap, by_mi = launches
    assert tasks[by_dap["preLaunchTask"]]["command"].endswith(f"SERVER={by_dap['debugServer']}")
    assert tasks[by_mi["preLaunchTask"]]["command"].startswith("make")
    program = ROOT / by_mi["miDebuggerPath"].replace("${workspaceFolder}/", "")
    assert os.access(program, os.X_OK)


def test_a_gdb_without_dap_says_so(tmp_path, build):
    """What to do instead is said, too."""
    build("build/storage/kernel.elf")
    gdb, _ = find_gdb()
    if has_dap(gdb):
        pytest.skip("this gdb speaks DAP")
    done = subprocess.run(
        [*LAUNCHER, "--server", "stdio"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "does not speak DAP" in done.stderr and "SERVER=mi" in done.stderr
