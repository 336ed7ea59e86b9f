"""Exercise 5.5, hidden: sizes, krealloc, and what is said about which misuse."""

from __future__ import annotations

import random

import pytest

from tests.lesson3.support import steps_to
from tests.lesson5.objects import GUARD, PLAIN, QUARANTINE, RED, checked, function_at, guard_of
from tests.lesson5.support import INTERRUPTS, PAGE, Run, memory_code, panic_of, require_undisturbed

KMALLOC = "tests/lesson5/hidden/kmalloc.c"
CLASSES = (16, 32, 48, 64, 96, 128, 192, 256, 336, 496, 672, 1008, 1344, 2016)
KMALLOC_LARGEST = (4 << 20) - 64
TOO_LARGE = (KMALLOC_LARGEST + 65, 5 << 20, 1 << 31, 2**32 - GUARD - RED, 2**32 - 8, 2**32 - 1)
BUDGET = 66  # instructions: 60, and what another compiler may need
ORDER_1 = 1


def class_of(size: int) -> int:
    """What an object of this size takes."""
    pages = (PAGE << order for order in range(11))
    return next(each for each in (*CLASSES, *pages) if each >= size)


def sizes(lab) -> list[int]:
    """The borders of all classes, and others."""
    borders = [each + more for each in (0, *CLASSES, PAGE, 2 * PAGE) for more in (0, 1)]
    return [*borders, 5 * PAGE, *random.Random(lab.seed).sample(range(9000), 10)]


@pytest.mark.exercise("5.5", points=3, gate=True)
def test_plain_sizes(lab):
    """The smallest class, or block, that is large enough; aligned; nothing beyond the largest."""
    with memory_code(lab, KMALLOC, PLAIN) as run:
        for number, size in enumerate(CLASSES, 1):
            assert run.call("class_size", number) == size, "the caches are not those of the sizes"
        objects = [(size, run.call("first_owner", size)) for size in sizes(lab)]
        for size, address in objects:
            assert address, f"kmalloc({size}) is refused"
            assert address % 16 == 0, f"kmalloc({size}) is {address:#x}"
            holds = run.call("size_of", address)
            assert holds == class_of(size), f"kmalloc({size}) can hold {holds} bytes"
        assert len({address for _, address in objects}) == len(objects), "two are one object"
        for _, address in objects:
            run.call("first_freer", address)
        refuses_the_impossible(run)


@pytest.mark.exercise("5.5", points=2)
def test_checked_sizes(lab):
    """The same while kmalloc checks: as many bytes as were asked for, also of no byte."""
    with checked(lab, KMALLOC) as run:
        for size in sizes(lab):
            address = run.call("first_owner", size)
            assert address, f"kmalloc({size}) is refused"
            assert address % 16 == 0, f"kmalloc({size}) is {address:#x}"
            assert run.call("size_of", address) == size
            assert guard_of(run, address).size == size
            run.call("fill", address, size, size)
            run.call("first_freer", address)
        run.call("free_others", QUARANTINE)
        refuses_the_impossible(run)


def refuses_the_impossible(run: Run) -> None:
    """The largest size is possible, what is larger is not, and kfree of NULL is nothing."""
    large = run.call("first_owner", KMALLOC_LARGEST)
    assert large, "the largest size is refused"
    run.call("first_freer", large)
    for size in TOO_LARGE:
        assert run.call("first_owner", size) == 0, f"kmalloc({size:#x}) returns an object"
    run.call("first_freer", 0)


@pytest.mark.exercise("5.5", points=2)
@pytest.mark.parametrize("checks", [False, True])
def test_resizing(lab, checks):
    """krealloc keeps what fits, also across classes and down to no byte, and is kmalloc for
    NULL."""
    seeded = random.Random(lab.seed)
    with memory_code(lab, KMALLOC, PLAIN) as run:
        if checks:
            run.guest.call("kmalloc_debug_enable")
        size = seeded.randrange(1, 3000)
        address = run.call("resizer", 0, size)
        assert address, "krealloc of NULL does not allocate"
        before, of_nothing, gone, after = run.answers("resize_to_nothing", 50)
        assert of_nothing, "krealloc of NULL to 0 bytes: kmalloc(0) returns an object"
        assert gone, "krealloc to 0 bytes: an object of 0 bytes is one like any other"
        assert before == after, "krealloc to 0 bytes has freed or kept something"
        for _ in range(12):
            run.call("fill", address, size, size)
            larger = seeded.randrange(1, 12_000)
            address = run.call("resizer", address, larger)
            kept, old = min(size, larger), size
            same = run.call("filled", address, kept, size)
            assert same == kept, f"krealloc from {old} to {larger} keeps {same} bytes"
            size = larger
        for small, large in ((100, 3000), (100, 5 << 20)):
            before, result, after, same = run.answers("fail_to_resize", small, large)
            assert result == 0, f"krealloc to {large} without memory"
            assert after == before, "a krealloc that fails has freed or kept something"
            assert same == small, "a krealloc that fails has changed the old object"


@pytest.mark.exercise("5.5", points=2)
def test_cost_while_nobody_checks(lab):
    """Instructions of kmalloc and kfree together."""
    with memory_code(lab, KMALLOC, PLAIN) as run:
        for _ in range(3):
            run.call("plain_pair")
        before = run.guest.registers()
        home = before["eip"]
        run.guest.write(before["esp"] - 4, home.to_bytes(4, "little"))
        run.guest.set(esp=before["esp"] - 4, eip=run.address("plain_pair"))
        steps = steps_to(run.guest, home, 4 * BUDGET)
    own = sum(run_of(run, step["eip"]) for step in steps)
    assert len(steps) - own <= BUDGET, f"kmalloc and kfree take {len(steps) - own} instructions"


def run_of(run: Run, address: int) -> bool:
    """Whether an instruction is one of the test's own."""
    return function_at(run, address) == "plain_pair"


# ---- misuse --------------------------------------------------------------------------------------


@pytest.mark.exercise("5.5", points=3)
@pytest.mark.parametrize("place", ["before", "beyond"])
def test_red_zones(lab, place):
    """Each byte of both red zones, of objects of many sizes: which byte it was."""
    seeded = random.Random(lab.seed)
    with checked(lab, KMALLOC) as run:
        for size in (0, 1, 7, 8, 16, 89, 1000, 2016 - GUARD - RED, PAGE, PAGE + 1):
            for byte in {0, RED - 1, seeded.randrange(RED)}:
                address = run.call("first_owner", size)
                offset = size + byte if place == "beyond" else byte - RED
                with spoilt(run, address + offset):
                    words = accusation(run, "second_freer", address)
                assert f"at byte {offset} of an object of {size}" in words, (
                    f"byte {offset} of an object of {size} was written: {words!r}"
                )


@pytest.mark.exercise("5.5", points=3)
def test_what_was_freed_long_ago(lab):
    """Poison and red zones are looked at when an object leaves the quarantine, which is 64 objects
    later."""
    seeded = random.Random(lab.seed)
    with checked(lab, KMALLOC) as run:
        for size in (1, 24, 500, PAGE, 5 * PAGE):
            for offset in {0, size - 1, seeded.randrange(size), -1, size}:
                address = run.call("first_owner", size)
                run.call("first_freer", address)
                assert run.guest.read(address, size) == b"\x6b" * size, "it is not poisoned"
                with spoilt(run, address + offset):
                    run.call("free_others", QUARANTINE - 1)
                    words = accusation(run, "free_others", 1)
                assert f"at byte {offset} of an object of {size}" in words, (
                    f"byte {offset} of a freed object of {size} was written: {words!r}"
                )
                run.call("free_others", 1)


@pytest.mark.exercise("5.5", points=2)
def test_quarantine(lab):
    """An object is not used again while 64 others are freed, and then it is."""
    with checked(lab, KMALLOC) as run:
        for size in (24, 3000):
            address = run.call("first_owner", size)
            run.call("first_freer", address)
            guard = guard_of(run, address)
            assert guard.size == size, "the guard of an object in quarantine has changed"
            assert (guard.owner, guard.freer) == ("first_owner", "first_freer")
            again = run.call("is_used_again", address, size, QUARANTINE)
            assert again == 0, f"a freed object is handed out again after {again} others"
        before, after = run.answers("many_times", 3000, 300)
        assert after >= before - 1, f"{before - after} pages are lost in quarantine"


@pytest.mark.exercise("5.5", points=3)
def test_what_is_no_object(lab):
    """kfree of anything: a panic that is kfree's, not a page fault."""
    with checked(lab, KMALLOC) as run:
        small, large = run.call("first_owner", 100), run.call("first_owner", 9000)
        freed = run.call("first_owner", 50)
        run.call("first_freer", freed)
        forge(run, large - GUARD + PAGE, small)
        wrong = {
            "an address inside an object": small + 16,
            "an address inside an object of pages": large + 16,
            "the second page of an object": large - GUARD + PAGE,
            "what looks like an object in its second page": large - GUARD + PAGE + GUARD,
            "the guard of an object": small - GUARD,
            "what is free already": freed,
            "a page of somebody else": run.call("pages_of", 0),
            "a tail of somebody else": run.call("pages_of", ORDER_1) + PAGE,
            "an object of another cache": run.call("slab_object_of_others"),
            "the slab itself": small & -PAGE,
            "a free page": run.call("free_page"),
            "the kernel": run.guest.address("kfree"),
            "the page array": run.guest.read_word(run.guest.address("page_array")),
            "an address below the kernel": 0x8000000,
            "an address in no frame": 0xFFFFF000,
        }
        for what, address in wrong.items():
            said = panic_of(run, "second_freer", address)
            assert said, f"{what}: kfree says nothing"
            assert "kfree" in said or "kmalloc" in said, f"{what}: {said!r}"
        for address in (small, large):
            run.call("first_freer", address)


def forge(run: Run, place: int, address: int) -> None:
    """Puts a copy of a guard and of both red zones of an object of 100 bytes at a place."""
    run.guest.write(place, run.guest.read(address - GUARD, GUARD))
    run.guest.write(place + GUARD + 100, b"\xbb" * RED)


@pytest.mark.exercise("5.5", points=2)
def test_owners(lab):
    """The functions that asked, behind those that pass on; serial numbers, the oldest first."""
    with checked(lab, KMALLOC) as run:
        first, second = run.call("first_owner", 8), run.call("second_owner", 8)
        assert guard_of(run, first).owner == "first_owner"
        assert guard_of(run, second).owner == "second_owner"
        assert guard_of(run, first).freer == "nobody", "freer is set before it is freed"
        pooled = run.call("pool_owner")
        assert guard_of(run, pooled).owner == "pool_owner", "pool_alloc only passes on"
        larger = run.call("resizer", second, 80)
        assert guard_of(run, larger).owner == "resizer", "krealloc only passes on"
        *serials, following = run.answers("answer_serials")
        assert serials == sorted(serials), f"objects that are handed out: {serials}"
        assert [serials[0], serials[-1]] == [following - 4, following - 1]
        assert len(serials) == 3, f"{len(serials)} objects are handed out, not 3"
        run.call("pool_freer", pooled)
        assert guard_of(run, pooled).freer == "pool_freer", "pool_free only passes on"


@pytest.mark.exercise("5.5", points=2)
def test_check_at_any_time(lab):
    """kmalloc_debug_check finds what is wrong with objects in use, and in quarantine."""
    with checked(lab, KMALLOC) as run:
        used, freed = run.call("first_owner", 40), run.call("first_owner", 60)
        run.call("first_freer", freed)
        assert not panic_of(run, "check_all"), "whole objects are accused"
        for what, offset, words in (
            (used, 40, "at byte 40 of an object of 40"),
            (used, -1, "at byte -1 of an object of 40"),
            (freed, 59, "at byte 59 of an object of 60"),
            (freed, 60, "at byte 60 of an object of 60"),
        ):
            with spoilt(run, what + offset):
                assert words in panic_of(run, "check_all"), f"not said: {words}"
        for place in (used + 40, freed):
            with spoilt(run, place):
                require_disabled_while_checked(run)
        run.call("free_others", QUARANTINE - 1)
        for offset, words in ((0, "at byte 0 of an object of 60"), (60, "at byte 60 of an object")):
            with spoilt(run, freed + offset):
                assert words in panic_of(run, "check_all"), f"long ago freed, not said: {words}"
        assert run.call("keeps_interrupts") == 0, "interrupts are not as they were"


def require_disabled_while_checked(run: Run) -> None:
    """Calls kmalloc_debug_check with interrupts enabled: they are not when it finds something."""
    before = run.guest.registers()
    back = run.guest.call(run.address("check_with_interrupts"), stop_at=("panic",))
    assert back is None, "kmalloc_debug_check finds nothing"
    enabled = run.guest.registers()["eflags"] & INTERRUPTS
    assert not enabled, "kmalloc_debug_check looks at objects with interrupts enabled"
    run.guest.set(**before)


@pytest.mark.exercise("5.5", points=2, once=True)
def test_lists_without_interrupts(lab):
    """The list of objects, the quarantine, and what is counted never change with interrupts
    enabled."""
    with checked(lab, KMALLOC) as run:
        run.call("free_others", QUARANTINE)
        places = ("kmalloc_live", 8), ("quarantine", 4 * QUARANTINE), ("oldest", 4)
        counts = ("kmalloc_allocations", 4), ("allocation_fails_in", 4)
        watched = [(run.guest.address(name), length) for name, length in (*places, *counts)]
        require_undisturbed(run, "with_interrupts", watched)


@pytest.mark.exercise("5.5", points=1)
def test_request_that_fails(lab):
    """The n-th request fails, and only that one."""
    with checked(lab, KMALLOC) as run:
        for number in range(1, 6):
            found = run.answers("fail_one", number)
            expected = [int(i != number) for i in range(1, 6)]
            assert found[:5] == expected, f"allocation_fails_in {number}: {found}"
            assert found[5] == 4, f"{found[5]} objects were handed out, not 4: kmalloc_allocations"


@pytest.mark.exercise("5.5", points=3)
@pytest.mark.parametrize("checks", [False, True])
def test_against_a_model(lab, checks):
    """Random operations: no object is written by another one, no page is lost."""
    seeded = random.Random(lab.seed)
    rounds = 1000 if checks else 5000  # to look at poison takes long
    with memory_code(lab, KMALLOC, PLAIN) as run:
        if checks:
            run.guest.call("kmalloc_debug_enable")
        before = run.call("account")
        wrong = run.answers("random_operations", seeded.getrandbits(32), rounds)
        assert not wrong, f"hidden/kmalloc.c, line {wrong[0]}, in round {wrong[-1]}"
        run.call("free_others", QUARANTINE)
        assert run.call("account") == before, "pages are lost"
        assert run.guest.call("memory_audit") == 0, "the auditor finds contradictions"


def accusation(run: Run, name: str, argument: int) -> str:
    """What the kernel's panic says of a call, in its first line."""
    return panic_of(run, name, argument).partition("\n")[0]


class spoilt:
    """A byte that is changed within a `with` statement."""

    def __init__(self, run: Run, address: int) -> None:
        self._run, self._address = run, address

    def __enter__(self) -> None:
        self._kept = self._run.guest.read(self._address, 1)
        self._run.guest.write(self._address, bytes([self._kept[0] ^ 0x10]))

    def __exit__(self, *error: object) -> None:
        self._run.guest.write(self._address, self._kept)
