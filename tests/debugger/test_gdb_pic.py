"""`make gdb`: the command `pic`, which shows what holds interrupts back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.gdb_guest import command, guest_probe, rows


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The timer's handler, then the code after its EOI; and a dispatcher that returns without
    an EOI."""
    return guest_probe(
        tmp_path_factory.mktemp("probe"),
        """
        said["in the BIOS"] = run("pic")
        run("tbreak sched_tick")
        run("continue")
        said["in the handler"] = run("pic")
        run("tbreak sched_work")
        run("continue")
        said["after the EOI"] = run("pic")
        run("tbreak pic_dispatch")
        run("continue")
        run("return")
        run("stepi 100")
        said["without EOI"] = run("pic")
        """,
        **command("spin"),
    )


def state_of(table: str, irq: int) -> str:
    """The last cell of an IRQ's row."""
    return next(row[-1] for row in rows(table) if row[0] == str(irq))


def test_before_the_kernel_runs(seen: dict[str, Any]) -> None:
    assert "interrupts disabled" in seen["in the BIOS"]


def test_an_interrupt_is_in_service_until_its_eoi(seen: dict[str, Any]) -> None:
    """The handler's name is the kernel's."""
    assert "pit_tick" in seen["in the handler"]
    assert "in service" in state_of(seen["in the handler"], 0)
    assert "IRQ 0 is in service: until its EOI is sent" in seen["in the handler"]
    assert "in service" not in seen["after the EOI"]


def test_a_missing_eoi_shows(seen: dict[str, Any]) -> None:
    assert "IRQ 0 is in service" in seen["without EOI"]
