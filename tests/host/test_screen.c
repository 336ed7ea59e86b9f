/* drivers/console/vga_screen.c and vga_escape.c: what characters and sequences do to the screen,
 * and that none leads out of it. */
#include "drivers/console/vga_screen.h"
#include "tests/host/unit.h"

#define GUARD 80u /* cells on each side of the screen, which must stay as they are */
#define BLANK 0x0720
#define DIRT  0x5aa5

static uint16_t memory[GUARD + VGA_CELLS + GUARD];
static uint16_t *const cells = memory + GUARD;
static struct vga_screen screen;

static void put(const char *text)
{
	while (*text)
		vga_screen_put(&screen, *text++);
}

/* Colours are the usual ones: those of the last text are forgotten. */
static void begin(uint32_t position)
{
	for (unsigned i = 0; i < GUARD + VGA_CELLS + GUARD; i++)
		memory[i] = i >= GUARD && i < GUARD + VGA_CELLS ? BLANK : DIRT;
	vga_screen_initialize(&screen, cells);
	screen.position = position;
	put("\033[m");
}

/* The cell in this row and column must hold the character, in these colours. */
static void expect(unsigned row, unsigned column, char character, uint8_t colours)
{
	uint16_t cell = cells[row * TEXT_COLUMNS + column];

	REQUIRE(cell == (colours << 8 | character), "row %u, column %u holds %04x, not %02x%02x",
		row, column, cell, colours, character);
}

/* A round each. After each text: where the cursor is, and one cell. */
static const struct {
	const char *text;
	unsigned row, column;
	unsigned cell_row, cell_column;
	char character;
	uint8_t colours;
} table[] = {
	{ "ab\r\nc", 1, 1, 1, 0, 'c', 0x07 },
	{ "ab\nc", 1, 3, 1, 2, 'c', 0x07 },
	{ "ab\bc", 0, 2, 0, 1, 'c', 0x07 },
	{ "\ba\tb", 0, 9, 0, 8, 'b', 0x07 },
	{ "\033[3;5Hx", 2, 5, 2, 4, 'x', 0x07 },
	{ "\033[5;5H\033[Hx", 0, 1, 0, 0, 'x', 0x07 },
	{ "\033[99;99Hx", 24, 79, 24, 79, 'x', 0x07 },
	{ "\033[24;80Hx\r\ny", 24, 1, 24, 0, 'y', 0x07 },
	{ "\033[1;80Hxy", 1, 1, 1, 0, 'y', 0x07 },
	{ "\033[1;80Hx\033[7my", 1, 1, 1, 0, 'y', 0x70 },
	{ "\033[1;80Hx\033[Dy", 0, 79, 0, 78, 'y', 0x07 },
	{ "\033[2;2H\033[2Bx\033[A\033[3C\033[Dy", 2, 5, 2, 4, 'y', 0x07 },
	{ "\033[9999999999Ax", 0, 1, 0, 0, 'x', 0x07 },
	{ "abc\033[2D\033[K", 0, 1, 0, 1, ' ', 0x07 },
	{ "abc\033[2D\033[1K", 0, 1, 0, 2, 'c', 0x07 },
	{ "abc\033[2K", 0, 3, 0, 0, ' ', 0x07 },
	{ "a\r\nb\r\nc\033[2;1H\033[J", 1, 0, 2, 0, ' ', 0x07 },
	{ "a\r\nb\r\nc\033[2;1H\033[1J", 1, 0, 2, 0, 'c', 0x07 },
	{ "a\r\nb\033[H\033[2J", 0, 0, 1, 0, ' ', 0x07 },
	{ "\033[1;34ma", 0, 1, 0, 0, 'a', 0x09 },
	{ "\033[31;46ma", 0, 1, 0, 0, 'a', 0x34 },
	{ "\033[31;46m\033[39;49ma", 0, 1, 0, 0, 'a', 0x07 },
	{ "\033[1;7ma", 0, 1, 0, 0, 'a', 0x70 },
	{ "\033[7;27ma\033[7m\033[mb", 0, 2, 0, 1, 'b', 0x07 },
	{ "\033[7;7;7;7;7;7;7;7;0;0ma", 0, 1, 0, 0, 'a', 0x70 },
	{ "\033[?1049ha", 0, 1, 0, 0, 'a', 0x07 },
	{ "\033[?25;7;2Ha", 0, 1, 0, 0, 'a', 0x07 },
	{ "\0337a\033[1\nb", 1, 2, 1, 1, 'b', 0x07 },
	{ "\033[12\033[2;1Ha", 1, 1, 1, 0, 'a', 0x07 },
	{ "\033[25;1Hx\r\nylast", 24, 5, 23, 0, 'x', 0x07 },
};

static void test_sequences(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	for (unit_round = 0; unit_round < sizeof(table) / sizeof(table[0]); unit_round++) {
		const char *text = table[unit_round].text;
		unsigned row, column;

		begin(0);
		put(text);
		row = screen.position / TEXT_COLUMNS;
		column = screen.position % TEXT_COLUMNS;
		REQUIRE(row == table[unit_round].row && column == table[unit_round].column,
			"the cursor is in row %u, column %u", row, column);
		expect(table[unit_round].cell_row, table[unit_round].cell_column,
		       table[unit_round].character, table[unit_round].colours);
	}
}

/* Bytes of sequences, in any order, from any cursor. */
static void test_random(struct random *random, uint32_t rounds)
{
	static const char bytes[] =
	    "\033\033\033[[[?;;0123456789AABBCCDDHHJKm\n\r\b\tx\177\200\377";

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		begin(random_below(random, VGA_CELLS));
		for (unsigned i = 0; i < 200; i++) {
			vga_screen_put(&screen, bytes[random_below(random, sizeof(bytes))]);
			REQUIRE(screen.position < VGA_CELLS, "the cursor is at cell %u",
				screen.position);
		}
		for (unsigned i = 0; i < GUARD; i++)
			REQUIRE(memory[i] == DIRT && memory[GUARD + VGA_CELLS + i] == DIRT,
				"written outside the screen");
	}
}

const struct unit_test screen_tests[] = {
	{ "screen_sequences", test_sequences },
	{ "screen_random", test_random },
	{ NULL, NULL },
};
