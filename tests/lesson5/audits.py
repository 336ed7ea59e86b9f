"""Exercise 5.6: what the auditor finds in allocators that a test has spoilt. Before it is called,
all that the test has in the guest is taken out of it: no auditor can read there what it should
find."""

from __future__ import annotations

from tests.lesson5.support import Run


def audit_after(run: Run, spoil: str = "") -> int:
    """Spoils something (or nothing), and returns what the auditor finds then."""
    if spoil:
        run.call(f"spoil_{spoil}")
    with run.hidden():
        found = audit(run, 0)
        if found == 0 and audit(run, 1) == 1:
            found = int(not spoil)  # nothing was returned: what no test expects
    run.call("put_back")
    return found


def audit(run: Run, before: int) -> int:
    """Calls the auditor. EAX has `before` when it begins: one without a `return` leaves that."""
    at_rest = run.guest.registers()["eax"]
    run.guest.set(eax=before)
    found = run.guest.call("memory_audit")
    run.guest.set(eax=at_rest)
    return found
