"""QEMU's monitor: what a session makes of the lines that come, with a QEMU whose every word is
known."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from labs.tools.machine.monitor import ExecuteError, Monitor, MonitorLost

GREETING, READY = b'{"QMP": {}}\r\n', b'{"return": {}, "id": 1}\r\n'
SHUTDOWN = {"event": "SHUTDOWN", "data": {"reason": "guest-shutdown"}}


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\r\n"


@pytest.fixture
def process():
    """One that lives on, in place of QEMU."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as one:
        yield one
        one.kill()


@pytest.fixture
def session(tmp_path: Path, process):
    """A session, and QEMU's end of it, which has taken the first command."""
    monitor = Monitor()
    monitor.listen(tmp_path / "qmp")
    with socket.socket(socket.AF_UNIX) as qemu:
        qemu.connect(str(tmp_path / "qmp"))
        qemu.sendall(GREETING + READY)
        monitor.accept(process, 60)
        assert json.loads(qemu.recv(1 << 10))["execute"] == "qmp_capabilities"
        yield monitor, qemu
        monitor.close()


def test_an_answer_in_parts_and_among_others(session) -> None:
    """An answer that nobody has waited for to its end is no other command's; an event is kept."""
    monitor, qemu = session
    answer = line(**{"return": {"status": "running"}, "id": 2})
    qemu.sendall(line(**{"return": "stale", "id": 1}) + line(event="RESUME"))
    qemu.sendall(line(**SHUTDOWN) + answer[:9])
    later = "import os,sys,time; time.sleep(.1); os.write(int(sys.argv[1]), sys.argv[2].encode())"
    number = qemu.fileno()
    command = [sys.executable, "-c", later, str(number), answer[9:].decode()]
    with subprocess.Popen(command, pass_fds=[number]):
        assert monitor.execute("query-status") == {"status": "running"}
    sent = json.loads(qemu.recv(1 << 10))
    assert (sent["execute"], sent["arguments"], sent["id"]) == ("query-status", {}, 2)
    assert monitor.shutdown_event(0) == SHUTDOWN
    assert monitor.shutdown_event(0) is None


def test_names_and_refusals(session) -> None:
    monitor, qemu = session
    qemu.sendall(line(error={"class": "GenericError", "desc": "no such drive"}, id=2))
    with pytest.raises(ExecuteError, match=r"^no such drive$"):
        monitor.execute("human-monitor-command", command_line="x")
    assert json.loads(qemu.recv(1 << 10))["arguments"] == {"command-line": "x"}


def test_the_end_of_a_session(session) -> None:
    """What came before it is known, and whatever is asked then is lost."""
    monitor, qemu = session
    qemu.sendall(line(**SHUTDOWN))
    qemu.close()
    for _ in range(2):
        with pytest.raises(MonitorLost, match="QEMU ended during stop"):
            monitor.execute("stop")
    assert monitor.shutdown_event(60) == SHUTDOWN
    assert monitor.shutdown_event(0.01) is None


def test_a_log_is_read_while_a_command_waits(session, tmp_path) -> None:
    """QEMU writes more to it than a pipe holds, and answers then."""
    monitor, qemu = session
    monitor.keep_tail(tmp_path / "log", 1000)
    script = "import os,sys; open(sys.argv[2],'w').write('x'*300000+'end')\n"
    script += "os.write(int(sys.argv[1]), sys.argv[3].encode())"
    words = [str(qemu.fileno()), str(tmp_path / "log"), line(**{"return": 7, "id": 2}).decode()]
    with subprocess.Popen([sys.executable, "-c", script, *words], pass_fds=[qemu.fileno()]):
        assert monitor.execute("quit") == 7
    tail = monitor.tail()
    assert len(tail) == 1000 and tail.endswith("xend")


def test_a_qemu_that_never_comes(tmp_path, process) -> None:
    monitor = Monitor()
    monitor.listen(tmp_path / "qmp")
    with pytest.raises(MonitorLost, match="did not connect"):
        monitor.accept(process, 0.05)
    os.kill(process.pid, 9)
    process.wait()
    with pytest.raises(MonitorLost, match="did not connect"):
        monitor.accept(process, 60)
    monitor.close()
