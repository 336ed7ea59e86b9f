"""Exercise 6.6, hidden: rings with pages of all kinds against a model, and who is killed."""

from __future__ import annotations

import re
import struct
from random import Random

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.support import SAID, program
from tests.lesson5.support import ZONE, outside
from tests.lesson6.steps import (
    ACCESSED,
    BASE,
    BOTH,
    ENTRY,
    PAGE,
    READ,
    READ_AT,
    RECLAIM,
    SHARED,
    World,
    spaces,
)
from tests.lesson6.victims import Victims, require_victims
from tests.support.met import Met

EATERS = "tests/lesson6/user/eaters.c"
KILLED = re.compile(r"^out of memory: killed (\d+) \((.*)\), (\d+) KiB$", re.MULTILINE)
FILE, OTHER = 0, 1
A, B, C = range(3)
MEMORY = 32  # MiB
PINS = 16
LARGE, SMALL = 4300, 3700  # pages: not both have room; see test_largest
FREE_AGAIN = 64  # pages that may be kept for later


def shown(world: World, pages: int, *flags: int) -> None:
    """A file, and a space for each of the flags that maps it; nothing was touched."""
    world.cache(FILE, [100 + index for index in range(pages)])
    for space, each in enumerate(flags):
        world.make(space)
        world.put(space, BASE, pages, each, file=FILE)


def read(world: World, space: int, *pages: int) -> None:
    """Reads pages of the file in a space."""
    for page in pages:
        assert world.read(space, BASE + page * PAGE) == 100 + page


def in_cache(world: World, pages: int, file: int = FILE) -> list[int]:
    """Which pages of a file are in memory."""
    return [index for index in range(pages) if world.cached(file, index)[0]]


class Ring:
    """The ring of a file's pages, as the hand must see it, and three spaces that use them."""

    PAGES = 24
    CASES = (
        *("a page that was used is passed", "a dirty page is passed", "a page is passed that a "
          "task works on", "fewer pages go than are asked for", "more pages could go than do"),
    )  # fmt: skip

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._order: list[int] = []
        self._used: set[int] = set()
        self._dirty: set[int] = set()
        self._pinned: list[int] = []
        self._met = Met(*self.CASES)

    def first_turns(self) -> None:
        """What is promised, with each seed: all are used; then some are dirty, or pinned."""
        for page in range(self.PAGES):
            self._access(B, page)
        self._reclaim(1)
        self._reclaim(2)
        [written, pinned] = self._random.sample(self._order, 2)
        self._write(A, written)
        self._pin(pinned)
        self._reclaim(self.PAGES)
        self._sync()
        self.unpin()

    def require(self) -> None:
        """Every case was met."""
        self._met.require()

    def turn(self) -> None:
        """Some accesses, perhaps a pin or a write-back; then the hand."""
        for _ in range(self._random.randrange(12)):
            self._access(self._random.randrange(3), self._random.randrange(self.PAGES))
        if self._order and self._random.randrange(4) == 0:
            self._pin(self._random.choice(self._order))
        if self._random.randrange(6) == 0:
            self.unpin()
        if self._random.randrange(6) == 0:
            self._sync()
        self._reclaim(self._random.randrange(1, 6))

    def _sync(self) -> None:
        assert self._world.sync(FILE, 0, self.PAGES) == 0
        self._dirty.clear()

    def unpin(self) -> None:
        """Nobody works on a page any more."""
        for pin in range(len(self._pinned)):
            self._world.unpin(pin)
        self._pinned.clear()

    def _access(self, space: int, page: int) -> None:
        if space != B and self._random.randrange(6) == 0:
            self._write(space, page)
            return
        self._use(page)
        read(self._world, space, page)

    def _use(self, page: int) -> None:
        if page not in self._order:
            self._order.append(page)
        self._used.add(page)

    def _write(self, space: int, page: int) -> None:
        self._use(page)
        assert self._world.write(space, BASE + page * PAGE, 100 + page)
        self._dirty.add(page)

    def _pin(self, page: int) -> None:
        if page not in self._pinned and len(self._pinned) < PINS:
            self._world.pin_shown(FILE, page, pin=len(self._pinned))
            self._pinned.append(page)

    def _pass(self) -> bool:
        """The hand passes a page; whether that goes."""
        page = self._order.pop(0)
        stays = page in self._used or page in self._dirty or page in self._pinned
        self._met("a page that was used is passed", page in self._used)
        self._met("a dirty page is passed", page in self._dirty and page not in self._used)
        self._met("a page is passed that a task works on", page in self._pinned)
        self._used.discard(page)
        if stays:
            self._order.append(page)
        return not stays

    def _reclaim(self, count: int) -> None:
        freed = 0
        for _ in range(2):  # looks at each page
            for _ in range(len(self._order)):
                freed += freed < count and self._pass()
        self._met("fewer pages go than are asked for", freed < count)
        busy = self._used.union(self._dirty, self._pinned)
        self._met("more pages could go than do", not busy.issuperset(self._order))
        found = self._world.reclaim(count)
        assert found == freed, f"page_cache_reclaim({count}): expected {freed}, seen {found}"
        assert in_cache(self._world, self.PAGES) == sorted(self._order), "pages in memory"


@pytest.mark.exercise("6.6", points=4, gate=True)
@pytest.mark.parametrize("number", [0, 1])
def test_against_a_model(lab, number):
    """Random accesses of three spaces to pages of a file, with pins: reclaim takes what the model
    takes."""
    with spaces(lab) as world:
        before = world.used()
        shown(world, Ring.PAGES, BOTH | SHARED, READ, BOTH | SHARED)
        ring = Ring(world, Random(lab.seed + number))
        ring.first_turns()
        for _ in range(25):
            ring.turn()
        ring.require()
        ring.unpin()
        world.end(A, B, C)
        world.release(FILE)
        assert world.used() == before, "pages are lost"


@pytest.mark.exercise("6.6", points=1, once=True)
def test_at_most_two_checks(lab):
    """Three pages of which one can go: the others are checked at most twice."""
    with spaces(lab) as world:
        shown(world, 2, READ)
        world.cache(OTHER, [31])
        read(world, A, 0, 1)
        assert world.page(OTHER, 0)[0] == 0
        world.unpin()
        world.pin_shown(FILE, 0, 0)
        world.pin_shown(FILE, 1, 1)
        assert world.reclaim(9) == 1
        world.unpin(0)
        world.unpin(1)
        assert world.reclaim(1) == 1
        assert in_cache(world, 2) == [1], "the hand did not stop before page 0"


@pytest.mark.exercise("6.6", points=2, gate=True)
def test_two_programs_map_a_page(lab):
    """A page that two programs map: an access by either keeps it, and reclaim unmaps it from
    both."""
    with spaces(lab) as world:
        shown(world, 6, READ, READ)
        read(world, A, *range(6))
        read(world, B, *range(6))
        world.reclaim(1)
        assert in_cache(world, 6) == [1, 2, 3, 4, 5]
        read(world, B, 1)
        read(world, A, 2)
        assert world.reclaim(2) == 2
        assert in_cache(world, 6) == [1, 2, 5], "a page goes that one of two programs has used"
        for space in (A, B):
            assert world.entry(space, BASE + 3 * PAGE) is None, "it is still shown"
            assert world.read(space, BASE + 3 * PAGE) == 103
        assert world.entry(A, BASE + 3 * PAGE).references == 3


@pytest.mark.exercise("6.6", points=2)
def test_tlb(lab):
    """The TLB: it neither hides an access nor keeps a reclaimed page."""
    with spaces(lab) as world:
        shown(world, 4, READ)
        read(world, A, 0, 1, 2, 3)
        step = (READ_AT, A, BASE)
        entry = (ENTRY, A, BASE)
        found = world.play(
            [step, (RECLAIM, 0, 1), (READ_AT, A, BASE + PAGE), (ENTRY, A, BASE + PAGE)]
        )
        assert found[1] == (1, 0) and found[3][0] & ACCESSED, "the TLB hides that a page is used"
        read(world, A, 0)
        found = world.play([step, (RECLAIM, 0, 4), entry, step])
        assert found[1] == (4, 0) and found[2] == (0, 0), f"four pages that may go: {found}"
        assert found[3] == (0, 100), "a page that was given back is seen by the TLB"


@pytest.mark.exercise("6.6", points=2, once=True)
def test_nothing_can_go(lab):
    """Only dirty or pinned pages, or none: reclaim ends, and nothing has changed."""
    with spaces(lab) as world:
        assert world.reclaim(5) == 0, "without any page"
        shown(world, 5, BOTH | SHARED)
        for page in range(3):
            assert world.write(A, BASE + page * PAGE, 100 + page)
        read(world, A, 3, 4)
        world.pin_shown(FILE, 3, 0)
        world.pin_shown(FILE, 4, 1)
        assert world.reclaim(5) == 0
        assert world.reclaim(0) == 0
        assert in_cache(world, 5) == [0, 1, 2, 3, 4]
        read(world, A, 0, 1, 2, 3, 4)
        world.unpin(0)
        assert world.sync(FILE, 0, 2) == 0
        assert world.reclaim(9) == 3 and in_cache(world, 5) == [2, 4]
        assert world.cached(FILE, 2) == (True, True), "a dirty page was made clean"
        world.unpin(1)
        assert world.reclaim(0) == 0 and in_cache(world, 5) == [2, 4], "nothing was asked for"
        assert world.reclaim(9) == 1


@pytest.mark.exercise("6.6", points=2, gate=True)
def test_the_hand_goes_on(lab):
    """The clock hand: it goes on where it stopped, through all caches, and takes unmapped pages at
    once."""
    with spaces(lab) as world:
        shown(world, 6, READ)
        world.cache(OTHER, [31, 32])
        read(world, A, 0, 1, 2)
        assert world.page(OTHER, 1)[0] == 0
        world.unpin()
        read(world, A, 3, 4, 5)
        assert world.reclaim(1) == 1
        assert in_cache(world, 2, OTHER) == [], "a page that nobody shows is not the first to go"
        assert in_cache(world, 6) == [0, 1, 2, 3, 4, 5]
        read(world, A, *range(6))
        world.reclaim(1)  # the hand is at page 3: all lose the bit, and 3 goes
        assert in_cache(world, 6) == [0, 1, 2, 4, 5], f"the hand: {in_cache(world, 6)}"
        world.reclaim(2)
        assert in_cache(world, 6) == [0, 1, 2]


@pytest.mark.exercise("6.6", points=1, once=True)
def test_copies_stay(lab):
    """Private copies: reclaim does not take them."""
    with spaces(lab) as world:
        shown(world, 3, BOTH, READ)
        assert world.write(A, BASE, 21)
        read(world, B, 0, 1, 2)
        assert world.reclaim(9) == 3
        assert world.read(A, BASE) == 21, "a program's own copy was given back"
        assert world.read(B, BASE) == 100


# ---- out of memory ----


@pytest.mark.exercise("6.6", points=5, gate=True, once=True)
def test_who_is_chosen(lab):
    """The victim without memory: never a process that must not be chosen."""
    with outside(lab, Victims, "prompt") as run:
        require_victims(run, Random(lab.seed))


def eaters(
    lab, script: str | None, *names: str, succeeds: bool = True
) -> tuple[str, dict[str, int], int]:
    """Runs a script in a machine with the program under these names. Returns what was said, the
    numbers in it by their words, and how many pages are free in the end."""
    names = names or ("bin/eaters",)
    files = with_files(lab, dict.fromkeys(names, program(EATERS)))
    result = lab.run(script, memory=MEMORY, variables=("zones",), **files)
    if succeeds:
        result.check()
    said = result.serial.replace("\r", "")
    zones = result.variables["zones"]
    free = sum(struct.unpack_from("<I", zones, at + 12)[0] for at in (0, ZONE.size))
    return said, {word: int(number) for word, number in SAID.findall(said)}, free


@pytest.mark.exercise("6.6", points=3, gate=True, once=True)
def test_largest(lab):
    """The victim: the largest process, not the one that asks, and its pages are enough for the
    others."""
    script = f"run /bin/eaters largest {LARGE} {SMALL}"
    said, numbers, _ = eaters(lab, script, "bin/eaters", "bin/holder")
    killed = KILLED.findall(said)
    assert len(killed) == 1, f"killed: {killed}"
    pid, name, kib = int(killed[0][0]), killed[0][1], int(killed[0][2])
    assert numbers["large"] == 1009 and numbers["small"] == 5, f"they ended so: {numbers}"
    assert (pid, name) == (numbers["sleeper"], "holder"), f"it says {killed[0]}"
    assert 4 * LARGE <= kib <= 4 * (LARGE + 40), f"{kib} KiB, with {4 * LARGE} touched"


@pytest.mark.exercise("6.6", points=1, once=True)
@pytest.mark.parametrize("large, small", [(LARGE, SMALL), (6400, 1600)])
def test_leader_of_a_session(lab, large, small):
    """The leader of a session: its pages count an eighth, so that a process with more than that is
    killed first."""
    said, numbers, _ = eaters(lab, f"run /bin/eaters leader {large} {small}; run /bin/eaters eat 9")
    assert numbers["child"] == 1009 and numbers["leader"] == 1, f"they ended so: {numbers}"
    assert len(KILLED.findall(said)) == 1 and numbers["has"] == 9


@pytest.mark.exercise("6.6", points=1, once=True)
def test_large_leader_of_a_session(lab):
    """A large leader of a session: it is killed before a child with less than an eighth of its
    pages."""
    script = "run /bin/eaters leader 7250 2000; run /bin/eaters eat 9"
    said, numbers, _ = eaters(lab, script, succeeds=False)
    killed = [int(kib) for _, _, kib in KILLED.findall(said)]
    assert len(killed) == 1 and killed[0] >= 4 * 7250, f"KiB of what was killed: {killed}"
    assert numbers["has"] == 9, f"{numbers}"


@pytest.mark.exercise("6.6", points=2)
def test_one_is_enough(lab):
    """While one process is dying: no second one is killed. A zombie has no memory."""
    said, numbers, _ = eaters(lab, "run /bin/eaters two 3700 2200")
    assert len(KILLED.findall(said)) == 1, f"killed: {KILLED.findall(said)}"
    assert (numbers["one"], numbers["other"], numbers["large"]) == (5, 6, 1009), f"{numbers}"
    assert numbers["zombie"] == 3


@pytest.mark.exercise("6.6", points=1, once=True)
def test_borrowed_memory(lab):
    """A child of vfork that takes all memory: the child is killed, and its parent goes on."""
    _, numbers, _ = eaters(lab, "run /bin/eaters borrowed 500; run /bin/eaters eat 300")
    assert numbers["child"] == 1009, f"the child ended so: {numbers}"
    assert numbers["parent"] == 77 and numbers["has"] == 300


@pytest.mark.exercise("6.6", points=2, once=True)
def test_not_init(lab):
    """init: it is never killed, even if it is the largest."""
    said, numbers, _ = eaters(lab, None, "init")
    assert numbers["child"] == 1009, f"the child of init ended so: {numbers}"
    assert numbers["init"] == 1, "init has lost a page"
    assert all(int(pid) > 1 for pid, _, _ in KILLED.findall(said))


@pytest.mark.exercise("6.6", points=2, once=True)
def test_free_memory_afterwards(lab):
    """All memory is taken twice: afterwards as much is free as before."""
    _, _, expected = eaters(lab, "; ".join(["run /bin/eaters eat 10"] * 2))
    said, numbers, free = eaters(lab, "; ".join(["run /bin/eaters all"] * 2))
    assert len(KILLED.findall(said)) == 2, f"killed: {KILLED.findall(said)}"
    assert numbers["all"] == 1009 and said.count("alive 1\n") == 2
    assert free >= expected - FREE_AGAIN, f"{expected - free} pages are lost"
