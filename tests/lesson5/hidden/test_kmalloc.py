"""Exercise 5.5, hidden: sizes, krealloc, and what is said about which misuse."""

from __future__ import annotations

import random
import struct
from functools import partial

import pytest

from tests.lesson5.objects import (
    FIRST,
    FIRST_FREER,
    GUARD,
    PLAIN,
    QUARANTINE,
    RED,
    SECOND,
    SLAB_LARGEST,
    Model,
    Objects,
    checked,
)
from tests.lesson5.slabs import LINK, SIZE
from tests.lesson5.support import INTERRUPTS, PAGE, outside

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
    """Sizes: the smallest class or block that is large enough, aligned; too large a size is
    refused."""
    with outside(lab, Objects, PLAIN) as run:
        caches = [link - LINK for link in run.links(run.guest.address("slab_caches"))]
        seen = tuple(run.kernel.word(cache + SIZE) for cache in caches[1:])
        assert seen == CLASSES, "the caches are not those of the sizes"
        objects = [(size, run.kmalloc(size)) for size in sizes(lab)]
        for size, address in objects:
            assert address, f"kmalloc({size}) is refused"
            assert address % 16 == 0, f"kmalloc({size}) is {address:#x}"
            holds = run.size_of(address)
            assert holds == class_of(size), f"kmalloc({size}) can hold {holds} bytes"
        assert len({address for _, address in objects}) == len(objects), "two are one object"
        for _, address in objects:
            run.kfree(address)
        refuses_the_impossible(run)


@pytest.mark.exercise("5.5", points=2, gate=True)
def test_checked_sizes(lab):
    """Sizes while kmalloc checks: as many bytes as were asked for, 0 included."""
    with checked(lab) as run:
        for size in sizes(lab):
            address = run.kmalloc(size)
            assert address, f"kmalloc({size}) is refused"
            assert address % 16 == 0, f"kmalloc({size}) is {address:#x}"
            assert run.size_of(address) == size
            assert run.guard_of(address).size == size
            run.fill(address, size, size)
            run.kfree(address)
        run.free_others(QUARANTINE)
        refuses_the_impossible(run)


def refuses_the_impossible(run: Objects) -> None:
    """The largest size is possible, what is larger is not, and kfree of NULL is nothing."""
    large = run.kmalloc(KMALLOC_LARGEST)
    assert large, "the largest size is refused"
    run.kfree(large)
    for size in TOO_LARGE:
        assert run.kmalloc(size) == 0, f"kmalloc({size:#x}) returns an object"
    run.kfree(0)


@pytest.mark.exercise("5.5", points=2, gate=True)
@pytest.mark.parametrize("checks", [False, True])
def test_resizing(lab, checks):
    """krealloc: it keeps the contents that fit, across classes and down to 0 bytes, and is kmalloc
    for NULL."""
    seeded = random.Random(lab.seed)
    with outside(lab, Objects, PLAIN) as run:
        if checks:
            run.kernel.call("kmalloc_debug_enable")
        size = seeded.randrange(1, 3000)
        address = run.krealloc(0, size)
        assert address, "krealloc of NULL does not allocate"
        before = run.live()
        of_nothing, gone = run.krealloc(0, 0), run.krealloc(run.kmalloc(50), 0)
        for each in (of_nothing, gone):
            run.kfree(each)
        after = run.live()
        assert of_nothing, "krealloc of NULL to 0 bytes: kmalloc(0) returns an object"
        assert gone, "krealloc to 0 bytes: an object of 0 bytes is one like any other"
        assert before == after, "krealloc to 0 bytes has freed or kept something"
        for _ in range(12):
            run.fill(address, size, size)
            larger = seeded.randrange(1, 12_000)
            address = run.krealloc(address, larger)
            kept, old = min(size, larger), size
            same = run.filled(address, kept, size)
            assert same == kept, f"krealloc from {old} to {larger} keeps {same} bytes"
            size = larger
        for small, large in ((100, 3000), (100, 5 << 20)):
            old = run.kmalloc(small)
            run.fill(old, small, 3)
            before = run.live()
            run.fail_request(1)
            result = run.krealloc(old, large)
            run.fail_request(0)
            after, same = run.live(), run.filled(old, small, 3)
            run.kfree(old)
            assert result == 0, f"krealloc to {large} without memory"
            assert after == before, "a krealloc that fails has freed or kept something"
            assert same == small, "a krealloc that fails has changed the old object"


@pytest.mark.exercise("5.5", points=1)
def test_red_zones_after_resizing(lab):
    """Red zones after krealloc: they begin right after the new size."""
    with checked(lab) as run:
        for before, size in ((100, 40), (41, 40), (40, 44), (PAGE, 7), (9000, 6000)):
            address = run.krealloc(run.kmalloc(before), size)
            assert run.guard_of(address).size == size, f"krealloc from {before} to {size} bytes"
            with spoilt(run, address + size):
                words = first_line(run.panic_of_kfree(address))
            assert f"at byte {size} of an object of {size}" in words, (
                f"krealloc from {before} to {size} bytes, and byte {size} was written: {words!r}"
            )


@pytest.mark.exercise("5.5", points=2)
def test_cost_while_nobody_checks(lab):
    """The cost of kmalloc and kfree without checks: bounded for the smallest class, the largest and
    others."""
    with outside(lab, Objects, PLAIN) as run:
        for size in (0, 40, 1000, SLAB_LARGEST):
            for _ in range(3):
                run.kfree(run.kmalloc(size))
            taking, address = run.kernel.cost(run.kernel.word("kmalloc"), size, most=BUDGET)
            freeing, _ = run.kernel.cost(run.kernel.word("kfree"), address, most=BUDGET)
            seen = f"kmalloc({size}) and kfree take {taking + freeing} instructions"
            assert taking + freeing <= BUDGET, seen


# ---- misuse --------------------------------------------------------------------------------------


@pytest.mark.exercise("5.5", points=3, gate=True)
@pytest.mark.parametrize("place", ["before", "beyond"])
def test_red_zones(lab, place):
    """A write to any byte of either red zone: it is found, and the report names the byte."""
    seeded = random.Random(lab.seed)
    with checked(lab) as run:
        for size in (0, 1, 7, 8, 16, 89, 1000, 2016 - GUARD - RED, PAGE, PAGE + 1):
            for byte in {0, RED - 1, seeded.randrange(RED)}:
                address = run.kmalloc(size)
                offset = size + byte if place == "beyond" else byte - RED
                with spoilt(run, address + offset):
                    words = first_line(run.panic_of_kfree(address))
                assert f"at byte {offset} of an object of {size}" in words, (
                    f"byte {offset} of an object of {size} was written: {words!r}"
                )


@pytest.mark.exercise("5.5", points=3)
def test_what_was_freed_long_ago(lab):
    """A write to freed memory: it is found when the object leaves quarantine, 64 frees later."""
    seeded = random.Random(lab.seed)
    with checked(lab) as run:
        for number, size in enumerate((1, 24, 500, PAGE, 5 * PAGE)):
            inside = (0, size - 1, seeded.randrange(size))[number % 3]
            for offset in (inside, size if number % 2 else -1):
                address = run.kmalloc(size)
                run.kfree(address)
                assert run.guest.data(address, size) == b"\x6b" * size, "it is not poisoned"
                with spoilt(run, address + offset):
                    run.free_others(QUARANTINE - 1)
                    words = first_line(run.kernel.panic_of(run.free_others, 1))
                assert f"at byte {offset} of an object of {size}" in words, (
                    f"byte {offset} of a freed object of {size} was written: {words!r}"
                )
                run.free_others(1)


@pytest.mark.exercise("5.5", points=2)
def test_quarantine(lab):
    """Quarantine: an object is not used again during 64 other frees; then it is."""
    with checked(lab) as run:
        for size in (24, 3000):
            address = run.kmalloc(size)
            run.kfree(address)
            guard = run.guard_of(address)
            assert guard.size == size, "the guard of an object in quarantine has changed"
            assert (guard.owner, guard.freer) == (FIRST, FIRST_FREER)
            for again in range(1, QUARANTINE + 1):
                other = run.kmalloc(size)
                assert other != address, f"a freed object is handed out after {again} others"
                run.kfree(other)
        before = run.account()
        for _ in range(2 * QUARANTINE):
            run.kfree(run.kmalloc(3000))
        run.free_others(QUARANTINE)
        after = run.account()
        assert after >= before - 1, f"{before - after} pages are lost in quarantine"


@pytest.mark.exercise("5.5", points=3)
def test_not_an_object(lab):
    """kfree of an address that is not an object: kfree's own panic, not a page fault."""
    with checked(lab) as run:
        small, large = run.kmalloc(100), run.kmalloc(9000)
        freed = [run.kmalloc(50), run.kmalloc(50)]
        run.kfree(freed[0])
        run.free_others(QUARANTINE * 5 // 8)
        run.kfree(freed[1])
        forge(run, large - GUARD + PAGE, small)
        wrong = {
            "an address inside an object": small + 16,
            "an address inside an object of pages": large + 16,
            "the second page of an object": large - GUARD + PAGE,
            "what looks like an object in its second page": large - GUARD + PAGE + GUARD,
            "the guard of an object": small - GUARD,
            "what is free already": freed[1],
            "what was freed 41 objects ago": freed[0],
            "a page of somebody else": run.kernel.call("page_alloc", 0),
            "a tail of somebody else": run.kernel.call("page_alloc", ORDER_1) + PAGE,
            "an object of another cache": object_of_another_cache(run),
            "the slab itself": small & -PAGE,
            "a free page": free_page(run),
            "the kernel": run.guest.address("kfree"),
            "the page array": run.kernel.word(run.guest.address("page_array")),
            "an address below the kernel": 0x8000000,
            "an address in no frame": 0xFFFFF000,
        }
        for what, address in wrong.items():
            said = run.panic_of_kfree(address)
            assert said, f"{what}: kfree says nothing"
            assert "kfree" in said or "kmalloc" in said, f"{what}: {said!r}"
        for address in (small, large):
            run.kfree(address)


def object_of_another_cache(run: Objects) -> int:
    """An object of 200 bytes, all 0, of a cache that is not kmalloc's."""
    cache = run.kernel.call("slab_cache_create", run.guest.text("test"), 200, 4, 0)
    address = run.kernel.call("slab_alloc", cache)
    run.guest.put_data(address, bytes(200))
    return address


def free_page(run: Objects) -> int:
    """A page that was handed out and freed."""
    page = run.kernel.call("page_alloc", 0)
    run.kernel.call("page_free", page, 0)
    return page


def forge(run: Objects, place: int, address: int) -> None:
    """Puts a copy of a guard and of both red zones of an object of 100 bytes at a place."""
    run.guest.put_data(place, run.guest.data(address - GUARD, GUARD))
    run.guest.put_data(place + GUARD + 100, b"\xbb" * RED)


@pytest.mark.exercise("5.5", points=2)
def test_owners(lab):
    """Owners: the function that asked, not one that only passes on; serial numbers begin with the
    oldest."""
    with checked(lab) as run:
        first, second = run.kmalloc(8), run.kmalloc(8, by=SECOND)
        assert run.guard_of(first).owner == FIRST
        assert run.guard_of(second).owner == SECOND
        assert run.guard_of(first).freer == "nobody", "freer is set before it is freed"
        pool = run.guest.text(struct.pack("<3I", 40, 0, 0))
        pooled = run.kernel.call("pool_alloc", pool, by="pool_owner")
        assert run.guard_of(pooled).owner == "pool_owner", "pool_alloc only passes on"
        larger = run.krealloc(second, 80)
        assert run.guard_of(larger).owner == "resizer", "krealloc only passes on"
        serials = [run.guard_of(guard + GUARD).serial for guard in run.live()]
        following = run.kernel.word("kmalloc_allocations")
        assert serials == sorted(serials), f"objects that are handed out: {serials}"
        assert [serials[0], serials[-1]] == [following - 4, following - 1]
        assert len(serials) == 3, f"{len(serials)} objects are handed out, not 3"
        run.kernel.call("pool_free", pool, pooled, by="pool_freer")
        assert run.guard_of(pooled).freer == "pool_freer", "pool_free only passes on"


@pytest.mark.exercise("5.5", points=2)
def test_check_at_any_time(lab):
    """kmalloc_debug_check: it finds faults in objects in use and in quarantine, and has words for
    each of them."""
    with checked(lab) as run:
        used, freed = run.kmalloc(40), run.kmalloc(60)
        run.kfree(freed)
        assert not run.kernel.panic_of("kmalloc_debug_check"), "whole objects are accused"
        for what, offset, words in (
            (used, 40, "at byte 40 of an object of 40"),
            (used, -1, "at byte -1 of an object of 40"),
            (freed, 59, "at byte 59 of an object of 60"),
            (freed, 60, "at byte 60 of an object of 60"),
        ):
            with spoilt(run, what + offset):
                said = run.kernel.panic_of("kmalloc_debug_check")
                assert words in said, f"not said: {words}"
                assert "kmalloc: ," not in said, f"it does not say what is wrong {words}"
        for place in (used + 40, freed):
            with spoilt(run, place):
                require_disabled_while_checked(run)
        run.free_others(QUARANTINE - 1)
        for offset, words in ((0, "at byte 0 of an object of 60"), (60, "at byte 60 of an object")):
            with spoilt(run, freed + offset):
                said = run.kernel.panic_of("kmalloc_debug_check")
                assert words in said, f"long ago freed, not said: {words}"
        require_interrupts_kept(run)


def require_interrupts_kept(run: Objects) -> None:
    """Interrupts are as they were after each of the functions."""
    for enabled in (0, 1):
        for i in range(QUARANTINE // 2 + 2):
            small = run.kmalloc(24, enabled=enabled)
            kept = [run.kernel.enabled]
            large = run.krealloc(small, 100 + i * 100, enabled=enabled)
            kept.append(run.kernel.enabled)
            run.kfree(large, enabled=enabled)
            kept.append(run.kernel.enabled)
            assert kept == [enabled] * 3, "interrupts are not as they were"
        run.kernel.call("kmalloc_debug_check", enabled=enabled)
        assert run.kernel.enabled == enabled, "interrupts are not as they were"


def require_disabled_while_checked(run: Objects) -> None:
    """Calls kmalloc_debug_check with interrupts enabled: they are not when it finds something."""
    call = partial(run.kernel.call, "kmalloc_debug_check", enabled=1)
    assert run.kernel.panic_of(call), "kmalloc_debug_check finds nothing"
    enabled = run.kernel.enabled
    assert not enabled, "kmalloc_debug_check looks at objects with interrupts enabled"


@pytest.mark.exercise("5.5", points=2, once=True)
def test_lists_without_interrupts(lab):
    """The list of objects, quarantine and counters: they never change with interrupts enabled."""
    with checked(lab) as run:
        run.free_others(QUARANTINE)
        places = ("kmalloc_live", 8), ("quarantine", 4 * QUARANTINE), ("oldest", 4)
        counts = ("kmalloc_allocations", 4), ("allocation_fails_in", 4)
        watched = [(run.guest.address(name), length) for name, length in (*places, *counts)]
        run.fail_request(100)
        kmalloc, kfree = run.kernel.word("kmalloc"), run.kernel.word("kfree")
        run.require_undisturbed([(kmalloc, 8), (kfree, None)], watched)


@pytest.mark.exercise("5.5", points=1, once=True)
def test_whole_at_any_time(lab):
    """An interrupt that checks all objects while one is allocated or freed: what is in the list is
    whole by then."""
    with checked(lab) as run:

        def look(now: dict[str, int]) -> None:
            if now["eflags"] & INTERRUPTS:
                for guard in run.live():
                    require_whole(run, guard)

        _, address = run.kernel.cost(run.kernel.word("kmalloc"), 8, enabled=1, each=look)
        assert address, "kmalloc(8) is refused"
        run.kernel.cost(run.kernel.word("kfree"), address, enabled=1, each=look)


def require_whole(run: Objects, guard: int) -> None:
    """Both red zones of an object are whole, and so is the poison of one that says who freed it."""
    size, _, freer, _ = run.kernel.words(guard + 8, 4)
    data = run.guest.data(guard + GUARD - RED, size + 2 * RED)
    where = "of an object that an interrupt would find"
    assert data[:RED] == data[-RED:] == b"\xbb" * RED, f"the red zones {where} are not written yet"
    body = data[RED:-RED]
    assert not freer or body == b"\x6b" * size, f"the poison {where} is not written yet"


@pytest.mark.exercise("5.5", points=1)
def test_request_that_fails(lab):
    """kmalloc's fault injection: the n-th request fails, and no other."""
    with checked(lab) as run:
        warm = [run.kmalloc(24) for _ in range(40)]  # from now on a slab has room
        for address in warm:
            run.kfree(address)
        run.free_others(QUARANTINE)
        for number in range(1, 6):
            run.fail_request(number)
            before = run.kernel.word("kmalloc_allocations")
            objects = [run.kmalloc(24) for _ in range(5)]
            counted = run.kernel.word("kmalloc_allocations") - before
            run.fail_request(0)
            found = [int(address > 0) for address in objects]
            expected = [int(i != number) for i in range(1, 6)]
            assert found == expected, f"allocation_fails_in {number}: {found}"
            assert counted == 4, f"{counted} objects were handed out, not 4: kmalloc_allocations"
            for address in objects:
                run.kfree(address)


@pytest.mark.exercise("5.5", points=3, gate=True)
@pytest.mark.parametrize("checks", [False, True])
def test_against_a_model(lab, checks):
    """Random operations: no object overwrites another one, and no page is lost."""
    with outside(lab, Objects, PLAIN) as run:
        if checks:
            run.kernel.call("kmalloc_debug_enable")
        before = run.account()
        Model(run, random.Random(lab.seed)).operate()
        run.free_others(QUARANTINE)
        assert run.account() == before, "pages are lost"
        assert run.kernel.call("memory_audit") == 0, "the auditor finds contradictions"


def first_line(panic: str) -> str:
    """Of what the kernel's panic says."""
    return panic.partition("\n")[0]


class spoilt:
    """A byte that is changed within a `with` statement."""

    def __init__(self, run: Objects, address: int) -> None:
        self._run, self._address = run, address

    def __enter__(self) -> None:
        self._kept = self._run.guest.data(self._address, 1)
        self._run.guest.put_data(self._address, bytes([self._kept[0] ^ 0x10]))

    def __exit__(self, *error: object) -> None:
        self._run.guest.put_data(self._address, self._kept)
