/* mm/memory_map.c: memory_map_normalize against a model that paints a map byte by byte. */
#include <stdlib.h>
#include <string.h>

#include "mm/memory_map.h"
#include "tests/host/unit.h"

#define WINDOW	   256u /* bytes of the address space in which ranges begin */
#define CANVAS	   (3 * WINDOW)
#define MOST	   100u /* ranges; the kernel's own array holds 64 */
#define GUARD_TYPE 0xdeadbeef

static const uint64_t origins[] = { 0, 0xfff00, 0xffffff80, 0u - (uint64_t)WINDOW };

/* The types of the CANVAS bytes from origin on. The last byte of all is nobody's: a range is cut
 * there. */
struct canvas {
	uint64_t origin;
	uint64_t size;
	uint32_t types[CANVAS];
};

static void paint(struct canvas *canvas, const struct boot_memory_range *range)
{
	uint64_t first = range->base - canvas->origin;

	for (uint64_t i = 0; i < range->length && first + i < canvas->size; i++)
		if (range->type > canvas->types[first + i])
			canvas->types[first + i] = range->type;
}

static void paint_all(struct canvas *canvas, const struct boot_memory_range *ranges, uint32_t count)
{
	uint64_t to_end = UINT64_MAX - canvas->origin;

	canvas->size = to_end < CANVAS ? to_end : CANVAS;
	memset(canvas->types, 0, sizeof(canvas->types));
	for (uint32_t i = 0; i < count; i++)
		paint(canvas, &ranges[i]);
}

/* Reads the canvas from left to right as maximal pieces of one type. Returns how many. */
static uint32_t read_off(const struct canvas *canvas, struct boot_memory_range *out)
{
	uint32_t count = 0, before = 0;

	for (uint64_t i = 0; i < canvas->size; before = canvas->types[i++]) {
		if (canvas->types[i] == 0)
			continue;
		if (canvas->types[i] == before)
			out[count - 1].length++;
		else
			out[count++] =
			    (struct boot_memory_range){ canvas->origin + i, 1, canvas->types[i] };
	}
	return count;
}

static uint64_t random_length(struct random *random, uint64_t origin)
{
	if (random_below(random, 8) == 0)
		return 0;
	if (origin >> 63 && random_below(random, 4) == 0)
		return random_next(random) | 1ull << 63; /* wraps */
	return random_below(random, random_below(random, 2) ? 8 : WINDOW);
}

static void make_ranges(struct random *random, uint64_t origin, struct boot_memory_range *ranges,
			uint32_t count)
{
	uint32_t types = 1 + random_below(random, 5);

	for (uint32_t i = 0; i < count; i++)
		ranges[i] = (struct boot_memory_range){ origin + random_below(random, WINDOW),
							random_length(random, origin),
							1 + random_below(random, types) };
}

/* The output has exactly the promised 2 * n entries, for the sanitizer to guard. */
static void try_ranges(const struct canvas *canvas, const struct boot_memory_range *ranges,
		       uint32_t count)
{
	static struct boot_memory_range expected[CANVAS];
	struct boot_memory_range *out = calloc(2 * count + 1, sizeof(*out));
	uint32_t wanted = read_off(canvas, expected);

	out[2 * count].type = GUARD_TYPE;
	uint32_t got = memory_map_normalize(ranges, count, out);

	REQUIRE(got == wanted, "%u pieces instead of %u", got, wanted);
	REQUIRE(out[2 * count].type == GUARD_TYPE, "more than twice as many pieces as ranges");
	for (uint32_t i = 0; i < got; i++)
		REQUIRE(out[i].base == expected[i].base && out[i].length == expected[i].length &&
			    out[i].type == expected[i].type,
			"piece %u is %#llx + %#llx type %u instead of %#llx + %#llx type %u", i,
			(unsigned long long)out[i].base, (unsigned long long)out[i].length,
			out[i].type, (unsigned long long)expected[i].base,
			(unsigned long long)expected[i].length, expected[i].type);
	free(out);
}

static void test_random(struct random *random, uint32_t rounds)
{
	struct canvas canvas;
	struct boot_memory_range ranges[MOST];

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		uint32_t few = random_below(random, 12), many = random_below(random, MOST + 1);
		uint32_t count = unit_round % 64 == 0 ? many : few;

		canvas.origin = origins[random_below(random, 4)];
		make_ranges(random, canvas.origin, ranges, count);
		paint_all(&canvas, ranges, count);
		try_ranges(&canvas, ranges, count);
	}
}

/* As many pieces as n ranges can give: each lies inside the one before, so every border shows. */
static void test_nested(struct random *random, uint32_t rounds)
{
	struct boot_memory_range in[MOST], out[2 * MOST];

	(void)random, (void)rounds;
	for (uint32_t i = 0; i < MOST; i++)
		in[i] = (struct boot_memory_range){ 16 * i, 32 * (2 * MOST - i), i + 1 };
	uint32_t pieces = memory_map_normalize(in, MOST, out);

	REQUIRE(pieces == 2 * MOST - 1, "%u pieces", pieces);
}

/* What a PC of 64 MB tells, with a hole, an overlap and the last page below 4 GiB. */
static void test_pc(struct random *random, uint32_t rounds)
{
	const struct boot_memory_range in[] = {
		{ 0xfffc0000, 0x40000, 2 }, { 0x100000, 0x3ee0000, 1 }, { 0xf0000, 0x10000, 2 },
		{ 0x9fc00, 0x400, 2 },	    { 0, 0xa0000, 1 },		{ 0x3fe0000, 0x20000, 2 },
	};
	const struct boot_memory_range expected[] = {
		{ 0, 0x9fc00, 1 },	    { 0x9fc00, 0x400, 2 },     { 0xf0000, 0x10000, 2 },
		{ 0x100000, 0x3ee0000, 1 }, { 0x3fe0000, 0x20000, 2 }, { 0xfffc0000, 0x40000, 2 },
	};
	struct boot_memory_range out[12];

	(void)random, (void)rounds;
	REQUIRE(memory_map_normalize(in, 6, out) == 6, "the number of pieces");
	for (unsigned i = 0; i < 6; i++)
		REQUIRE(out[i].base == expected[i].base && out[i].length == expected[i].length &&
			    out[i].type == expected[i].type,
			"piece %u", i);
	REQUIRE(memory_map_normalize(in, 0, out) == 0, "pieces out of nothing");
}

const struct unit_test memory_map_tests[] = {
	{ "memory_map_random", test_random },
	{ "memory_map_nested", test_nested },
	{ "memory_map_pc", test_pc },
	{ NULL, NULL },
};
