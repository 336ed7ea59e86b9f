/*
 * boot/load_elf.c: every refusal, every truncation, and random damage, against a plain model.
 *
 * Physical memory is a large reservation in which only the load area may be touched, so a write (or
 * a wild read) anywhere else ends the program at once. The file is allocated to the byte, for the
 * sanitizer to see reads beyond its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/lib/elf.h"
#include "boot/load_elf.h"
#include "tests/host/unit.h"

#define AREA_START 0x100000u
#define AREA_SIZE  0x4000u
#define POISON	   0xcc
#define NO_ENTRY   0x5eed5eedu
#define SEGMENTS   3u
#define RESERVED   ((size_t)(sizeof(void *) == 8 ? 8ull << 30 : 256ull << 20))

/* The sample: header, three program headers, then data. The first two segments share a sector. */
struct sample {
	struct elf_header header;
	struct elf_program_header segments[SEGMENTS];
	uint8_t data[0x400];
};

enum { TEXT, NOTE, DATA };

#define TEXT_OFFSET 0x123u
#define TEXT_SIZE   0x259u
#define DATA_OFFSET (TEXT_OFFSET + TEXT_SIZE)
#define DATA_SIZE   0x21u
#define DATA_MEMORY 0x432u
#define TEXT_PLACE  (AREA_START + 0x10)
#define DATA_PLACE  (AREA_START + 0x1003)
#define SAMPLE_SIZE (DATA_OFFSET + DATA_SIZE) /* nothing lies behind the last segment */

static uint8_t *memory; /* where physical address 0 is */

static struct load_area load_area(void)
{
	return (struct load_area){ AREA_START, AREA_START + AREA_SIZE, memory };
}

static void reserve_memory(void)
{
	memory =
	    mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	REQUIRE(memory != MAP_FAILED, "no room for %zu bytes of address space", RESERVED);
	REQUIRE(mprotect(memory + AREA_START, AREA_SIZE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	memset(memory + AREA_START, POISON, AREA_SIZE);
}

static struct sample make_sample(struct random *random)
{
	struct sample sample = {
		.header = { .magic = ELF_MAGIC,
			    .class = ELF_CLASS_32,
			    .data = ELF_DATA_LITTLE,
			    .version = 1,
			    .type = ELF_TYPE_EXECUTABLE,
			    .machine = ELF_MACHINE_386,
			    .file_version = 1,
			    .entry = TEXT_PLACE + 7,
			    .phoff = offsetof(struct sample, segments),
			    .ehsize = sizeof(struct elf_header),
			    .phentsize = sizeof(struct elf_program_header),
			    .phnum = SEGMENTS },
		.segments = { [TEXT] = { .type = ELF_SEGMENT_LOAD,
					 .offset = TEXT_OFFSET,
					 .paddr = TEXT_PLACE,
					 .filesz = TEXT_SIZE,
					 .memsz = TEXT_SIZE },
			      [NOTE] = { .type = 4, .offset = 0xffffff00, .filesz = 0xffffff00 },
			      [DATA] = { .type = ELF_SEGMENT_LOAD,
					 .offset = DATA_OFFSET,
					 .paddr = DATA_PLACE,
					 .filesz = DATA_SIZE,
					 .memsz = DATA_MEMORY } },
	};

	for (size_t i = 0; i < sizeof(sample.data); i++)
		sample.data[i] = random_next(random);
	return sample;
}

/* --- the model: what should happen, in 64-bit arithmetic --- */

struct outcome {
	bool good;
	uint8_t memory[AREA_SIZE];
};

static bool segment_is_good(const struct elf_program_header *segment, uint64_t bytes)
{
	return (uint64_t)segment->offset + segment->filesz <= bytes &&
	       segment->filesz <= segment->memsz &&
	       (segment->memsz == 0 ||
		(segment->paddr >= AREA_START &&
		 (uint64_t)segment->paddr + segment->memsz <= AREA_START + AREA_SIZE));
}

static bool header_is_good(const struct elf_header *header, uint64_t bytes)
{
	return header->magic == ELF_MAGIC && header->class == ELF_CLASS_32 &&
	       header->data == ELF_DATA_LITTLE && header->machine == ELF_MACHINE_386 &&
	       header->type == ELF_TYPE_EXECUTABLE &&
	       header->phentsize == sizeof(struct elf_program_header) && header->phnum > 0 &&
	       header->phoff % 4 == 0 && (uint64_t)header->phoff + header->phnum * 32ull <= bytes;
}

/* Copies the segment into the outcome; false when a byte is taken already. */
static bool place(struct outcome *outcome, bool *taken, const uint8_t *file,
		  const struct elf_program_header *segment)
{
	for (uint64_t i = 0; i < segment->memsz; i++) {
		uint64_t at = segment->paddr - AREA_START + i;

		if (taken[at])
			return false;
		taken[at] = true;
		outcome->memory[at] = i < segment->filesz ? file[segment->offset + i] : 0;
	}
	return true;
}

static bool place_all(struct outcome *outcome, const uint8_t *file, uint64_t bytes)
{
	bool taken[AREA_SIZE] = { false }, has_entry = false;
	struct elf_header header;
	struct elf_program_header segment;

	memcpy(&header, file, sizeof(header));
	for (unsigned i = 0; i < header.phnum; i++) {
		memcpy(&segment, file + header.phoff + i * sizeof(segment), sizeof(segment));
		if (segment.type != ELF_SEGMENT_LOAD)
			continue;
		if (!segment_is_good(&segment, bytes) || !place(outcome, taken, file, &segment))
			return false;
		has_entry |= header.entry >= segment.paddr &&
			     header.entry < (uint64_t)segment.paddr + segment.filesz;
	}
	return has_entry;
}

static void predict(struct outcome *outcome, const uint8_t *file, uint64_t bytes)
{
	struct elf_header header;

	memset(outcome->memory, POISON, AREA_SIZE);
	outcome->good = false;
	if (bytes < sizeof(header))
		return;
	memcpy(&header, file, sizeof(header));
	outcome->good = header_is_good(&header, bytes) && place_all(outcome, file, bytes);
	if (!outcome->good)
		memset(outcome->memory, POISON, AREA_SIZE);
}

/* --- one try --- */

/* Loads, holds the result against the model, poisons the memory again. Returns load_elf's sentence.
 */
static const char *try_load(const void *image, uint32_t bytes)
{
	static struct outcome outcome;
	struct load_area area = load_area();
	uint32_t entry = NO_ENTRY;
	uint8_t *file = malloc(bytes ? bytes : 1);

	memcpy(file, image, bytes);
	predict(&outcome, file, bytes);
	const char *wrong = load_elf(file, bytes, &area, &entry);

	REQUIRE(!wrong == outcome.good, "load_elf says: %s", wrong ? wrong : "good");
	REQUIRE(memcmp(memory + AREA_START, outcome.memory, AREA_SIZE) == 0,
		"memory is not as expected after: %s", wrong ? wrong : "good");
	REQUIRE(wrong || entry == ((const struct elf_header *)file)->entry, "entry is %#x", entry);
	REQUIRE(!wrong || entry == NO_ENTRY, "entry was written, although: %s", wrong);
	REQUIRE(memcmp(file, image, bytes) == 0, "the file was changed");
	if (!wrong)
		memset(memory + AREA_START, POISON, AREA_SIZE);
	free(file);
	return wrong;
}

/* --- the tests --- */

static void test_good(struct random *random, uint32_t rounds)
{
	struct sample sample = make_sample(random);

	(void)rounds;
	reserve_memory();
	REQUIRE(!try_load(&sample, SAMPLE_SIZE), "the sample was refused");
	sample.segments[DATA].paddr = TEXT_PLACE + TEXT_SIZE;
	REQUIRE(!try_load(&sample, SAMPLE_SIZE), "neighbours were refused");
	sample.segments[DATA].memsz = AREA_START + AREA_SIZE - sample.segments[DATA].paddr;
	REQUIRE(!try_load(&sample, SAMPLE_SIZE), "a segment up to the area's end was refused");
	sample.segments[DATA].filesz = 0;
	REQUIRE(!try_load(&sample, SAMPLE_SIZE), "a segment of zeros was refused");
	sample.segments[DATA] = (struct elf_program_header){ .type = ELF_SEGMENT_LOAD };
	REQUIRE(!try_load(&sample, SAMPLE_SIZE), "an empty segment, as ld makes it, was refused");
}

/* A sample with one thing wrong; the field at `offset`, of `size` bytes, becomes `value`. */
struct refusal {
	size_t offset;
	size_t size;
	uint32_t value;
	const char *sentence;
};

#define HEADER(field)                                                                              \
	offsetof(struct sample, header.field), sizeof(((struct sample *)0)->header.field)
#define SEGMENT(number, field) offsetof(struct sample, segments[number].field), 4

static const char not_elf[] = "the file does not begin with 0x7f ELF",
		  not_386[] = "the file is not for 32-bit x86",
		  not_executable[] = "the file is not an executable (is it an object file?)",
		  no_headers[] = "the file has no program headers",
		  headers_unaligned[] = "the program headers are not at a multiple of four",
		  headers_beyond[] = "the program headers reach beyond the end of the file",
		  segment_beyond[] = "a segment reaches beyond the end of the file",
		  larger_in_file[] = "a segment is larger in the file than in memory",
		  too_low[] = "a segment is below 1 MiB",
		  no_room[] = "a segment does not fit into the memory that is free",
		  overlapping[] = "two segments overlap in memory",
		  bad_entry[] = "the entry point is not a physical address inside a segment";

static const struct refusal refusals[] = {
	{ HEADER(magic), 0x464c457e, not_elf },
	{ HEADER(magic), 0, not_elf },
	{ HEADER(class), 2, not_386 },
	{ HEADER(data), 2, not_386 },
	{ HEADER(machine), 62, not_386 },
	{ HEADER(type), 1, not_executable },
	{ HEADER(type), 3, not_executable },
	{ HEADER(phnum), 0, no_headers },
	{ HEADER(phentsize), 31, no_headers },
	{ HEADER(phentsize), 0, no_headers },
	{ HEADER(phoff), 53, headers_unaligned },
	{ HEADER(phoff), SAMPLE_SIZE & ~3u, headers_beyond },
	{ HEADER(phoff), 0xfffffffc, headers_beyond },
	{ HEADER(phoff), 0xffffffa0, headers_beyond }, /* with three headers it wraps to 0 */
	{ HEADER(phnum), 0xffff, headers_beyond },
	{ HEADER(entry), TEXT_PLACE - 1, bad_entry },
	{ HEADER(entry), TEXT_PLACE + TEXT_SIZE, bad_entry },
	{ HEADER(entry), DATA_PLACE + DATA_SIZE, bad_entry }, /* in the zeros */
	{ HEADER(entry), 0xc0100010, bad_entry },
	{ HEADER(entry), 0, bad_entry },
	{ SEGMENT(TEXT, type), 4, bad_entry },
	{ SEGMENT(TEXT, offset), SAMPLE_SIZE + 1, segment_beyond },
	{ SEGMENT(TEXT, offset), 0u - TEXT_SIZE, segment_beyond },
	{ SEGMENT(DATA, offset), DATA_OFFSET + 1, segment_beyond },
	{ SEGMENT(DATA, filesz), DATA_SIZE + 1, segment_beyond },
	{ SEGMENT(DATA, filesz), 0xffffffff, segment_beyond },
	{ SEGMENT(TEXT, memsz), TEXT_SIZE - 1, larger_in_file },
	{ SEGMENT(DATA, memsz), 0, larger_in_file },
	{ SEGMENT(TEXT, paddr), AREA_START - 1, too_low },
	{ SEGMENT(TEXT, paddr), 0x7c00, too_low },
	{ SEGMENT(DATA, paddr), 0, too_low },
	{ SEGMENT(DATA, paddr), AREA_START + AREA_SIZE - DATA_MEMORY + 1, no_room },
	{ SEGMENT(DATA, paddr), AREA_START + AREA_SIZE, no_room },
	{ SEGMENT(DATA, paddr), 0u - DATA_MEMORY, no_room }, /* its end wraps to 0 */
	{ SEGMENT(DATA, paddr), 0xffffffff, no_room },
	{ SEGMENT(DATA, memsz), 0u - DATA_PLACE + TEXT_PLACE, no_room },
	{ SEGMENT(DATA, memsz), 0xffffffff, no_room },
	{ SEGMENT(DATA, paddr), TEXT_PLACE, overlapping },
	{ SEGMENT(DATA, paddr), TEXT_PLACE + TEXT_SIZE - 1, overlapping },
	{ SEGMENT(TEXT, paddr), DATA_PLACE + DATA_MEMORY - 1, overlapping },
	{ SEGMENT(TEXT, paddr), DATA_PLACE + 1, overlapping },
};

static void require_refusal(const struct sample *sample, const char *sentence)
{
	const char *wrong = try_load(sample, SAMPLE_SIZE);

	REQUIRE(wrong && strcmp(wrong, sentence) == 0, "load_elf says '%s' instead of '%s'", wrong,
		sentence);
}

/* Which segments overlap, and in which order they stand, does not matter. */
static void refuse_overlaps(const struct sample *good)
{
	for (unsigned one = 0; one < SEGMENTS; one++) {
		for (unsigned other = 0; other < SEGMENTS; other++) {
			struct sample sample = *good;

			sample.segments[TEXT] = sample.segments[DATA] = good->segments[NOTE];
			sample.segments[one] = sample.segments[other] = good->segments[TEXT];
			if (one != other)
				require_refusal(&sample, overlapping);
			else
				REQUIRE(!try_load(&sample, SAMPLE_SIZE), "one segment");
		}
	}
}

static void test_refusals(struct random *random, uint32_t rounds)
{
	const struct sample good = make_sample(random);

	(void)rounds;
	reserve_memory();
	for (unit_round = 0; unit_round < sizeof(refusals) / sizeof(refusals[0]); unit_round++) {
		const struct refusal *refusal = &refusals[unit_round];
		struct sample sample = good;

		memcpy((uint8_t *)&sample + refusal->offset, &refusal->value, refusal->size);
		require_refusal(&sample, refusal->sentence);
	}
	refuse_overlaps(&good);
}

static const char *cause_at_length(uint32_t bytes)
{
	if (bytes < sizeof(struct elf_header))
		return "the file is shorter than an ELF header";
	return bytes < offsetof(struct sample, data) ? headers_beyond : segment_beyond;
}

static void test_truncations(struct random *random, uint32_t rounds)
{
	struct sample sample = make_sample(random);

	(void)rounds;
	reserve_memory();
	for (unit_round = 0; unit_round < SAMPLE_SIZE; unit_round++) {
		const char *wrong = try_load(&sample, unit_round),
			   *cause = cause_at_length(unit_round);

		REQUIRE(wrong && strcmp(wrong, cause) == 0, "load_elf says '%s' instead of '%s'",
			wrong, cause);
	}
}

/* Changes one field of the headers, most often to a value near one that matters. */
static void mutate(struct sample *sample, struct random *random)
{
	const uint32_t values[] = { 0,
				    0xffffffff,
				    0x80000000,
				    AREA_START,
				    AREA_START + AREA_SIZE,
				    TEXT_PLACE,
				    DATA_PLACE,
				    SAMPLE_SIZE,
				    AREA_SIZE,
				    random_next(random),
				    random_wide(random) };
	uint32_t value = values[random_below(random, sizeof(values) / sizeof(values[0]))];
	size_t offset = random_below(random, offsetof(struct sample, data));

	if (random_below(random, 3) == 0) {
		((uint8_t *)sample)[offset] = value;
		return;
	}
	/* Beyond the identification: whole words, of which most are a program header's. */
	offset = 16 + random_below(random, (offsetof(struct sample, data) - 16) / 4) * 4;
	value += random_below(random, 5) - 2;
	memcpy((uint8_t *)sample + offset, &value, sizeof(value));
}

static void test_mutations(struct random *random, uint32_t rounds)
{
	const struct sample good = make_sample(random);
	uint32_t accepted = 0;

	reserve_memory();
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		struct sample sample = good;

		for (uint64_t changes = 1 + random_below(random, 3); changes > 0; changes--)
			mutate(&sample, random);
		accepted += !try_load(&sample, SAMPLE_SIZE - random_below(random, 2));
	}
	REQUIRE(accepted > rounds / 50 && accepted < rounds / 2, "%u of %u were accepted", accepted,
		rounds);
}

const struct unit_test load_elf_tests[] = {
	{ "load_elf_good", test_good },
	{ "load_elf_refusals", test_refusals },
	{ "load_elf_truncations", test_truncations },
	{ "load_elf_mutations", test_mutations },
	{ NULL, NULL },
};
