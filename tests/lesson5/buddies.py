"""Exercise 5.2 against a model, which is in this process: free blocks, as the contract of
mm/buddy.h makes them from what is taken and given back."""

from __future__ import annotations

from random import Random

from tests.lesson4.support import fail
from tests.lesson5.support import DMA_END, FREE, ORDERS, USED, require_sound
from tests.lesson5.zones import FRAMES, NO_FRAME, NORMAL, Zones, in_words, largest_blocks
from tests.support.met import Met

HOLE = DMA_END + 1333  # a frame that is reserved
PIECES = (777, HOLE + 1 - DMA_END, 1333)  # the borders of what is handed over
PHASES = 2  # in each of which memory fills, and empties
STEPS = 90  # of half a phase
CASES = (
    *(f"a block of order {order} is taken" for order in range(ORDERS)),
    *(f"two blocks of order {order} become one" for order in range(ORDERS - 1)),
    *(f"a block is split {times} times" for times in (1, 2)),
    "a block is refused although pages are free",
    "the buddy is in use",
    "the buddy is free in part",
    "the buddy was free with this order, and is in use",
    "the buddy is reserved",
)


class Model:
    """The free blocks of zone Normal: their frames, by order."""

    def __init__(self, met: Met) -> None:
        self._met = met
        self.free: list[set[int]] = [set() for _ in range(ORDERS)]
        for frame, order in largest_blocks([f for f in range(DMA_END, FRAMES) if f != HOLE]):
            self.free[order].add(frame)
        self.taken: dict[int, int] = {}  # orders, by frame
        self._stale: dict[int, int] = {}  # the order that a frame in use had while it was free

    def pages(self) -> int:
        """How many are free."""
        return sum(len(frames) << order for order, frames in enumerate(self.free))

    def source(self, order: int) -> int | None:
        """The order of the blocks from which a block is taken; None where there is none."""
        return next((each for each in range(order, ORDERS) if self.free[each]), None)

    def take(self, frame: int, order: int) -> None:
        """A block was taken: the lowest part of one of the smallest that are large enough."""
        source = self.source(order)
        self.free[source].remove(frame)
        for half in range(order, source):
            self.free[half].add(frame + (1 << half))
        self.taken[frame] = order
        self._stale[frame] = source
        self._met(f"a block of order {order} is taken")
        if 1 <= source - order <= 2:
            self._met(f"a block is split {source - order} times")

    def give(self, frame: int) -> None:
        """A block was given back."""
        order = self.taken.pop(frame)
        while order < ORDERS - 1 and (buddy := frame ^ 1 << order) in self.free[order]:
            self._met(f"two blocks of order {order} become one")
            self.free[order].remove(buddy)
            frame &= ~(1 << order)
            order += 1
        if order < ORDERS - 1:
            self._note(frame ^ 1 << order, order)
        self.free[order].add(frame)

    def _note(self, buddy: int, order: int) -> None:
        """Why the buddy of a block of this order does not merge."""
        if buddy in self.taken:
            self._met("the buddy is in use")
            if self._stale.get(buddy) == order:
                self._met("the buddy was free with this order, and is in use")
        if any(buddy in frames for frames in self.free[:order]):
            self._met("the buddy is free in part")
        if buddy == HOLE:
            self._met("the buddy is reserved")


def random_operations(run: Zones, random: Random) -> None:
    """Each order, and phases in which memory fills and empties; each kind of buddy is met. Fails
    with the first operation after which the zone is not as it has to be."""
    met = Met(*CASES)
    run.begin()
    first, after_hole, hole = (DMA_END + each for each in PIECES)
    run.give_range(NORMAL, DMA_END, first - DMA_END)
    run.give_range(NORMAL, after_hole, FRAMES - after_hole)
    run.give_range(NORMAL, first, hole - first)
    model = Model(met)
    require_as(run, model, "the zone's frames were handed over")
    for order in reversed(range(ORDERS)):
        for _ in range(2):
            take(run, model, order, met)
        empty(run, model, random)
    for _ in range(PHASES):
        fill(run, model, random, met)
        require_sound(run.guest, "while memory is full")
        for _ in range(STEPS):
            if model.taken:
                give(run, model, random.choice([*model.taken]))
            if random.randrange(10) < 3:
                take(run, model, some_order(random), met)
    empty(run, model, random)
    met.require()


def fill(run: Zones, model: Model, random: Random, met: Met) -> None:
    """More is taken than given back."""
    for _ in range(STEPS):
        take(run, model, some_order(random), met)
        if model.taken and random.randrange(10) < 3:
            give(run, model, random.choice([*model.taken]))


def empty(run: Zones, model: Model, random: Random) -> None:
    """All is given back, in any order."""
    for frame in random.sample([*model.taken], len(model.taken)):
        give(run, model, frame)


def some_order(random: Random) -> int:
    """Small ones, mostly."""
    return random.randrange(1 + random.randrange(ORDERS))


def take(run: Zones, model: Model, order: int, met: Met) -> None:
    """Takes a block, and says of the result what is wrong."""
    source, frame = model.source(order), run.take(NORMAL, order)
    what = f"buddy_take of order {order}"
    if source is None:
        if frame != NO_FRAME:
            fail(f"{what}: no block of that order was free, and frame {frame} was handed out")
        if model.pages():
            met("a block is refused although pages are free")
        return
    if frame not in model.free[source]:
        blocks = in_words([(each, source) for each in sorted(model.free[source])])
        fail(f"{what}: expected the first page of one of the free blocks {blocks}, seen {frame}")
    model.take(frame, order)
    if run.state_and_order(frame) != (USED, order):
        fail(f"{what}: frame {frame} is not PAGE_USED, with that order")
    require_as(run, model, what)


def give(run: Zones, model: Model, frame: int) -> None:
    """Gives a block back."""
    what = f"buddy_give of frame {frame}, of order {model.taken[frame]}"
    run.give(NORMAL, frame)
    model.give(frame)
    require_as(run, model, what)


def require_as(run: Zones, model: Model, what: str) -> None:
    """The zone's lists and its count are the model's."""
    seen = run.free_blocks(NORMAL)
    for order, (frames, expected) in enumerate(zip(seen, model.free, strict=True)):
        if sorted(frames) != sorted(expected):
            fail(f"after {what}: free blocks of order {order}: {len(frames)}, not {len(expected)}")
        for frame in frames:
            if run.state_and_order(frame) != (FREE, order):
                fail(f"after {what}: frame {frame} is not PAGE_FREE, with order {order}")
    if run.free(NORMAL) != model.pages():
        fail(f"after {what}: the zone says {run.free(NORMAL)} free pages, not {model.pages()}")
