"""Exercise 1.4, the boot loader: disks that fail, damaged files, and segments of every shape."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from labs.tools.machine.qemu_command import DiskError, Drive
from tests.lesson1.loading import (
    AREA,
    AREA_SIZE,
    PAGE,
    SECTOR,
    STAGE2,
    Bios,
    DiskCall,
    boot_disk,
    handler,
    random_stage2,
    require_loaded,
    require_refused,
    sample,
    stage2_sectors,
)
from tests.lesson1.support import KERNEL, Executable, Segment, loaded_segments
from tests.support.remote import halted

BOOT_SECTOR = 0x7C00
TRIES = 3
SCREEN = 0x10  # the BIOS's interrupt for a letter of a message
HIGH = 0xFFFFFFFF


# The boot sector


def booted(lab, stage2: bytes, **fields: object):
    """A machine with this second stage on its disk."""
    image = boot_disk(lab, "disk.img", stage2)
    return halted(lab, lab.config("", boot="disk", image=image, **fields))


@pytest.mark.exercise("1.4", points=2)
def test_drive_number(lab):
    """A boot from the BIOS's second drive: that drive is read, and its number is passed on."""
    random = Random(lab.seed)
    stages = [random_stage2(lab, random) for _ in range(2)]
    images = [boot_disk(lab, f"disk{i}.img", stage) for i, stage in enumerate(stages)]
    drives = (Drive(images[1], 1),)
    config = lab.config("", boot="disk", image=images[0], drives=drives)
    with halted(lab, config) as guest:
        guest.run_to(BOOT_SECTOR)
        junk = {name: random.getrandbits(32) for name in ("eax", "ebx", "ecx", "esi", "edi", "ebp")}
        guest.set(edx=random.getrandbits(24) << 8 | 0x81, **junk)
        guest.run_to(STAGE2)
        assert guest.read(STAGE2, len(stages[1])) == stages[1], "the wrong drive was read"
        assert guest.registers()["edx"] & 0xFF == 0x81, "DL is lost"


@pytest.mark.exercise("1.4", points=2)
@pytest.mark.parametrize("failures", [1, 2])
def test_read_is_tried_again(lab, failures):
    """A read that fails and works later: each attempt asks for the whole range again."""
    random = Random(lab.seed)
    stage2 = random_stage2(lab, random)
    with booted(lab, stage2) as guest:
        guest.run_to(BOOT_SECTOR)
        bios = Bios(guest)
        while call := bios.next_call(STAGE2):
            if call.function == 0x42 and len(bios.reads()) <= failures:  # the carry flag counts
                status = 0 if len(bios.reads()) == 1 else random.randint(1, 255)
                bios.refuse(status, random.randint(0, 3))
        assert len(bios.reads()) == failures + 1, f"{len(bios.reads())} reads"
        wanted = DiskCall(0x42, 0x80, 16, stage2_sectors(lab), STAGE2, 1)
        assert set(bios.reads()) == {wanted}, f"{bios.reads()}, and not {wanted} each time"
        assert guest.read(STAGE2, len(stage2)) == stage2


@pytest.mark.exercise("1.4", points=2)
def test_disk_that_always_fails(lab):
    """A drive that always fails: three attempts with a reset between them, then a message with the
    last status. The reset may fail, too, and it is the second drive all the time."""
    random = Random(lab.seed)
    *others, status = random.sample(range(0x10, 0x100), 3 * TRIES)
    stage2 = random_stage2(lab, random)
    drives = (Drive(boot_disk(lab, "other.img", stage2), 1),)
    with booted(lab, stage2, drives=drives) as guest:
        guest.run_to(BOOT_SECTOR)
        guest.set(edx=0x81)
        bios = Bios(guest)
        while call := bios.next_call(STAGE2, handler(guest, SCREEN)):
            if call.function == 0x42:
                count = len(bios.reads())
                assert count <= TRIES, "it tries and tries"
                bios.refuse(status if count == TRIES else others.pop(), random.randint(0, 3))
            elif call.function == 0:
                assert len(bios.calls) <= 2 * TRIES + 1, "it resets the drive again and again"
                bios.refuse(others.pop())
        functions = [call.function for call in bios.calls]
        assert functions.count(0x42) == TRIES, f"the calls were {functions}"
        between = functions[functions.index(0x42) :]
        assert between[:5] == [0x42, 0, 0x42, 0, 0x42], f"the calls were {functions}"
        wrong = [call for call in bios.calls if call.drive != 0x81]
        assert not wrong, f"DL was 0x81; a call is for another drive: {wrong[0]}"
        said = guest.finish()
    assert "cannot read stage 2" in said, f"it said {said!r}"
    assert f"status {status:02x}" in said, f"the last status was {status:#x}; it said {said!r}"


@pytest.mark.exercise("1.4", points=1)
def test_bad_sector(lab):
    """A sector of the second stage that cannot be read: an error. Without the bad sector everything
    is read."""
    stage2 = random_stage2(lab, Random(lab.seed))
    require_jump(lab, stage2)
    image = boot_disk(lab, "disk.img", stage2)
    lba = Random(lab.seed).randint(1, stage2_sectors(lab))
    drive = Drive(image, 0, errors=(DiskError("read", lba),))
    said = lab.run("", boot="disk", image=None, drives=(drive,)).serial
    assert "cannot read stage 2" in said, f"it said {said!r}"


def require_jump(lab, stage2: bytes) -> None:
    """This second stage is read, and jumped to."""
    with booted(lab, stage2) as guest:
        guest.run_to(STAGE2)
        assert guest.read(STAGE2, len(stage2)) == stage2, "these are not the sectors from LBA 1 on"


@pytest.mark.exercise("1.4", points=2)
def test_second_stage_without_its_mark(lab):
    """A second stage without its mark: a message, and no jump. With the mark there is a jump."""
    random = Random(lab.seed)
    require_jump(lab, random_stage2(lab, random))
    stage2 = bytearray(random_stage2(lab, random, b"STG\0"))
    stage2[-SECTOR : -SECTOR + 4] = b"STG2"
    with booted(lab, bytes(stage2)) as guest:
        guest.run_to(BOOT_SECTOR)
        reached = guest.run_to(STAGE2, handler(guest, SCREEN))
        assert reached != STAGE2, "it jumps to what is not the second stage"
        said = guest.finish()
    assert "stage 2 is incomplete" in said, f"it said {said!r}"


@pytest.mark.exercise("1.4", points=1)
def test_every_byte_of_the_mark(lab):
    """The mark of the second stage: all of its four bytes are compared, after a first read and
    after retries."""
    random = Random(lab.seed)
    good = random_stage2(lab, random)
    with booted(lab, good) as guest:
        guest.run_to(BOOT_SECTOR)
        sector, registers = guest.read(BOOT_SECTOR, SECTOR), guest.registers()
        bios = Bios(guest)
        for failures in range(TRIES):
            for byte in (None, 1, 2, 3, 4):
                stage2 = bytearray(good)
                if byte:
                    stage2[-byte] ^= random.randint(1, 255)
                guest.write(BOOT_SECTOR, sector)
                guest.set(**registers)
                reached = read_after(bios, failures, bytes(stage2))
                assert (reached == STAGE2) is (byte is None), (
                    f"after {failures} failed reads the mark is {stage2[-4:].hex()} (hexadecimal); "
                    f"the second stage is {'' if reached == STAGE2 else 'not '}entered"
                )


def read_after(bios: Bios, failures: int, stage2: bytes) -> int:
    """Lets reads fail, and then one that reads this. Where the boot sector goes: to the second
    stage, or to the BIOS with a letter of a message."""
    screen, before = handler(bios.guest, SCREEN), len(bios.reads())
    while call := bios.next_call(STAGE2, screen):
        assert len(bios.reads()) <= before + TRIES, "it tries and tries"
        if call.function == 0x42 and len(bios.reads()) <= before + failures:
            bios.refuse(0x40)
        else:
            bios.succeed(stage2 if call.function == 0x42 else b"")
    return bios.guest.linear()


# load_elf: good files


@pytest.mark.exercise("1.4", points=2, host=True)
def test_segments_anywhere_in_the_file(lab):
    """Segments anywhere in the file: offsets that are not multiples of a sector, shared sectors and
    any order all work."""
    require_loaded(lab, [shuffled(Random(lab.seed + i)) for i in range(12)])


def shuffled(random: Random) -> Executable:
    """Some segments in random order, with random gaps in the file and in memory."""
    offset, address, segments = 0x200, AREA, []
    for _ in range(random.randint(1, 6)):
        data = random.randbytes(random.randint(1, 900))
        offset, address = offset + random.randint(0, 700), address + random.randint(0, 300)
        tail = random.choice([0, random.randint(1, 800)])
        segments.append(Segment(address, data, offset, memory=len(data) + tail))
        offset, address = offset + len(data), address + len(data) + tail
    entered = random.choice(segments)
    random.shuffle(segments)
    return Executable(entered.address + len(entered.data) - 1, segments)


@pytest.mark.exercise("1.4", points=2, host=True)
def test_tail_is_zero(lab):
    """Memory from p_filesz to p_memsz: it is zeroed, and not a byte more."""
    random = Random(lab.seed)
    text = Segment(AREA, random.randbytes(100), 200)
    tails = [
        Segment(AREA + 512, random.randbytes(30), 300, memory=30 + random.randint(1, 2000)),
        Segment(AREA + 513, random.randbytes(3), 300, memory=7),
        Segment(AREA + 517, b"", 300, memory=1001),
        Segment(AREA + 512, random.randbytes(9), 300, memory=AREA_SIZE - 512),
    ]
    require_loaded(lab, [Executable(AREA + 1, [text, tail]) for tail in tails])


@pytest.mark.exercise("1.4", points=1, host=True)
@pytest.mark.parametrize("size", [37, 512, 511 << 10, 1300 << 10])
def test_sizes(lab, size):
    """Kernels of 37 bytes, a sector, 511 KiB and 1.3 MiB: each is loaded whole."""
    data = Random(lab.seed).randbytes(size)
    executable = Executable(AREA + size - 1, [Segment(AREA, data, 84)])
    require_loaded(lab, [executable], end=AREA + size)


@pytest.mark.exercise("1.4", points=1, host=True)
def test_only_pt_load_counts(lab):
    """Segments other than PT_LOAD, and empty ones: they are ignored, whatever they say."""
    random = Random(lab.seed)
    text = Segment(AREA, random.randbytes(100), 400)
    wild = Segment(0x123, b"", 0xFFFFFF00, memory=HIGH, kind=4, file_size=0xFFFFFF00)
    empty = Segment(0, b"", 0)
    inside = Segment(AREA + 50, b"", 0)
    note = Segment(AREA, b"", 0, memory=1, kind=4)
    orders = [wild, text, empty], [text, wild], [text, inside], [inside, text], [note, text]
    require_loaded(lab, [Executable(AREA, order) for order in orders])


@pytest.mark.exercise("1.4", points=2, host=True)
def test_headers_anywhere(lab):
    """Program headers at any multiple of four, hundreds of them, with meaningless virtual
    addresses: all are read."""
    random = Random(lab.seed)
    good = sample(random)
    places = [56, len(good.file()) + 3 & ~3, 0x1000 + 4 * random.randrange(0x1000)]
    first, second = good.segments
    wild = [replace(each, virtual=random.getrandbits(32)) for each in (second, first)]
    executables = [
        *(replace(good, header_offset=at, headers_at=at) for at in places),
        replace(good, segments=wild),
        *(crowd(random, count) for count in (40, 256, random.randint(257, 400))),
    ]
    require_loaded(lab, executables)


def crowd(random: Random, count: int) -> Executable:
    """So many segments, one next to another; the last one is entered."""
    data, at = random.randbytes(40 + count), 52 + 32 * count
    segments = [Segment(AREA + 40 * i, data[i : i + 40], at + i) for i in range(count)]
    return Executable(segments[-1].address, segments)


@pytest.mark.exercise("1.4", points=1)
def test_kernel_in_memory(lab):
    """The kernel's segments in memory that was full of junk: each is at its place before the first
    instruction."""
    segments = loaded_segments(lab.build(KERNEL).read_bytes())
    image = lab.build("build/lesson1/boot.img")
    with halted(lab, lab.config("", boot="disk", image=image)) as guest:
        guest.run_to(BOOT_SECTOR)
        for address, _, size in segments:
            guest.write(address, b"\xcc" * size)
        guest.run_to("_start")
        for address, data, size in segments:
            found = guest.read(address, size)
            assert found[: len(data)] == data, f"the segment at {address:#x}"
            assert not any(found[len(data) :]), f"the zeros of the segment at {address:#x}"


# load_elf: damaged files


@pytest.mark.exercise("1.4", points=2, host=True)
def test_file_cut_short(lab):
    """A file that is cut at any length: it is refused, and nothing is read beyond its end."""
    file = sample(Random(lab.seed)).file()
    lengths = {*range(0, 120, 3), 51, 52, 84, 115, 116, *range(120, len(file), 37), len(file) - 1}
    for chosen in batches(sorted(lengths)):
        require_refused(lab, [file[:length] for length in chosen])


def batches(items: list) -> list[list]:
    """A few at a time: the driver's output has a limit."""
    return [items[i : i + 60] for i in range(0, len(items), 60)]


@pytest.mark.exercise("1.4", points=2, host=True)
def test_header(lab):
    """A file that is not ELF, not for i386, not executable or without program headers: it is
    refused."""
    random = Random(lab.seed)
    good = sample(random)
    length, high = len(good.file()), random.randint(1, 255) << 8
    magics = [bytearray(good.magic) for _ in good.magic]
    for index, magic in enumerate(magics):
        magic[index] ^= random.randint(1, 255)
    bad = [
        *(replace(good, magic=bytes(magic)) for magic in magics),
        *(replace(good, bits=bits) for bits in (0, 2, random.randint(3, 255))),
        *(replace(good, order=order) for order in (0, 2, random.randint(3, 255))),
        *(replace(good, machine=machine) for machine in (0, 62, 3 | high, high)),
        *(replace(good, kind=kind) for kind in (0, 1, 3, 4, 2 | high, high)),
        replace(good, header_count=0),
        *(replace(good, header_size=size) for size in (0, 31, 33, 56, 32 | high)),
        replace(good, header_count=0xFFFF),
        replace(good, header_count=0x801),
        replace(good, header_offset=length & ~3),
        replace(good, header_offset=0xFFFFFFC0),
        replace(good, header_offset=0xFFFFFFFC),
    ]
    sentences = require_refused(lab, [executable.file() for executable in bad])
    assert len(set(sentences)) >= 4, f"say what is wrong, each time: {sorted(set(sentences))}"


@pytest.mark.exercise("1.4", points=1, host=True)
def test_headers_that_are_not_aligned(lab):
    """Program headers that are not aligned to four bytes: the file is refused."""
    good = sample(Random(lab.seed))
    bad = [replace(good, header_offset=at, headers_at=at) for at in (53, 54, 55, 0x7E, 0x81)]
    require_refused(lab, [executable.file() for executable in bad])


@pytest.mark.exercise("1.4", points=1, host=True)
def test_messages(lab):
    """Error messages: each kind of mistake has a sentence of its own."""
    random = Random(lab.seed)
    good = sample(random)
    first, second = good.segments
    size = len(second.data)
    files = [
        replace(good, kind=1).file(),
        with_data(random, file_size=size + 1),
        with_data(random, memory=size - 1),
        with_data(random, address=AREA + AREA_SIZE),
        with_data(random, address=first.address),
        replace(good, entry=second.address + size).file(),
    ]
    sentences = require_refused(lab, files)
    assert len(set(sentences)) == len(files), (
        f"mistakes of {len(files)} kinds, and {len(set(sentences))} sentences: {sorted(sentences)}"
    )


def with_data(random: Random, **fields: object) -> bytes:
    """The sample with fields of its second segment changed."""
    good = sample(random)
    return replace(good, segments=(good.segments[0], replace(good.segments[1], **fields))).file()


@pytest.mark.exercise("1.4", points=2, host=True)
def test_segment_beyond_the_file(lab):
    """A segment beyond the file's end, also by an addition that wraps, or larger in the file than
    in memory: it is refused."""
    random = Random(lab.seed)
    data = sample(random).segments[1]
    size = len(data.data)
    require_refused(
        lab,
        [
            with_data(random, file_size=size + 1),
            with_data(random, file_size=HIGH, memory=HIGH),
            with_data(random, data=b"", offset=data.offset + 1, file_size=size),
            with_data(random, data=b"", offset=-size % 2**32, file_size=size),
            with_data(random, data=b"", offset=HIGH, file_size=1, memory=1),
            with_data(random, memory=size - 1),
            with_data(random, memory=0),
        ],
    )


@pytest.mark.exercise("1.4", points=2, host=True)
def test_segment_outside_the_area(lab):
    """A segment below 1 MiB, above the area's end or across 4 GiB: it is refused."""
    random = Random(lab.seed)
    end, size = AREA + AREA_SIZE, 0x432
    places = [0, 0x7C00, 0x8000, AREA - 1, AREA - size, end - size + 1, end - 1, end, end + PAGE]
    places += [-size % 2**32, HIGH, 0x80000000]
    files = [with_data(random, address=place) for place in places]
    files += [with_data(random, memory=memory) for memory in (HIGH, 0xFFF00000, AREA_SIZE)]
    require_refused(lab, files)


@pytest.mark.exercise("1.4", points=1, host=True)
def test_other_areas(lab):
    """The area for segments: its bounds come from the arguments, and it may begin below 1 MiB."""
    random = Random(lab.seed)
    for start in (0x2000 + random.randrange(0x8000), AREA + random.randrange(1, 0x8000)):
        end = start + 0x1003 + 0x432
        good = sample(random, start)
        first, second = good.segments
        lowest = replace(good, segments=(replace(first, address=start), second), entry=start)
        require_loaded(lab, [good, lowest], end, start)
        bad = [replace(first, address=start - 1), replace(second, address=second.address + 1)]
        require_refused(
            lab,
            [
                replace(good, segments=(bad[0], second)).file(),
                replace(good, segments=(first, bad[1])).file(),
                sample(random, AREA + 0x10000).file(),
            ],
            end,
            start,
        )


@pytest.mark.exercise("1.4", points=1, host=True)
def test_overlap(lab):
    """Two segments that share a byte, or of which one contains the other, in any order: they are
    refused. Adjacent segments are allowed."""
    random = Random(lab.seed)
    good = sample(random)
    first, second = good.segments
    ends = (first.address + len(first.data), second.address + second.memory)
    moved = [replace(second, address=at) for at in (first.address, ends[0] - 1, first.address + 9)]
    pairs = [(first, other) for other in moved]
    pairs.append((replace(first, address=ends[1] - 1), second))
    inner = replace(first, address=first.address + PAGE)
    pairs.append((inner, replace(second, address=inner.address - 9, memory=2 * PAGE)))
    pairs += [(right, left) for left, right in pairs]
    entered = [replace(good, segments=p, entry=p[0].address) for p in pairs]
    apart = replace(second, address=AREA + 0x2000)
    entered += [replace(each, segments=insert(each.segments, apart)) for each in entered]
    require_refused(lab, [executable.file() for executable in entered])
    neighbours = (first, replace(second, address=ends[0]))
    require_loaded(lab, [replace(good, segments=p) for p in (neighbours, neighbours[::-1])])


def insert(pair: tuple[Segment, Segment], between: Segment) -> tuple[Segment, ...]:
    """Three segments."""
    return (pair[0], between, pair[1])


@pytest.mark.exercise("1.4", points=1, host=True)
def test_entry_point(lab):
    """The entry point: a physical address at which a segment has bytes from the file."""
    good = sample(Random(lab.seed))
    first, second = good.segments
    outside = [0, first.address - 1, first.address + len(first.data), 0xC0000000 + first.address]
    outside.append(second.address + len(second.data))
    files = [replace(good, entry=entry).file() for entry in outside]
    notes = Segment(AREA + 0x2000, first.data, first.offset, kind=4), replace(first, kind=4)
    files += [
        replace(good, segments=(note, second), entry=note.address + 1).file() for note in notes
    ]
    require_refused(lab, files)
    inside = [first.address, second.address + len(second.data) - 1]
    require_loaded(lab, [replace(good, entry=entry) for entry in inside])
