/*
 * CRC-32C (Castagnoli polynomial, bits reversed), eight bytes a step, and the older CRC-32.
 *
 * A CRC is the remainder of a division of polynomials: shift right, and subtract (XOR) the
 * polynomial 0x82f63b78 when a 1 has left. What eight such steps do to a byte is in a table; what
 * the byte becomes when one to seven zero bytes follow it is in seven more. The remainder of eight
 * bytes is the XOR of eight entries, because the division is linear. Of four bytes:
 *
 *	bytes 12 34 56 78	tables[3][12] ^ tables[2][34] ^ tables[1][56] ^ tables[0][78]
 *
 * The tables are made at the first call. Any context; nobody sleeps.
 */
#include "fs/jbd2/checksum.h"

#define CASTAGNOLI 0x82f63b78u
#define ETHERNET   0x04c11db7u
#define ZEROS	   256u /* a multiple of 16 */

static uint32_t tables[8][256];

static void make_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t rest = byte;

		for (int bit = 0; bit < 8; bit++)
			rest = rest >> 1 ^ (rest & 1 ? CASTAGNOLI : 0);
		tables[0][byte] = rest;
	}
	for (uint32_t byte = 0; byte < 256; byte++)
		for (int zeros = 1; zeros < 8; zeros++) {
			uint32_t rest = tables[zeros - 1][byte];

			tables[zeros][byte] = rest >> 8 ^ tables[0][rest & 0xff];
		}
}

/* What four bytes become when `zeros` bytes follow them. */
static inline uint32_t of_word(uint32_t four, unsigned zeros)
{
	return tables[zeros + 3][four & 0xff] ^ tables[zeros + 2][four >> 8 & 0xff] ^
	       tables[zeros + 1][four >> 16 & 0xff] ^ tables[zeros][four >> 24];
}

/* Four bytes at any place, of any type. */
typedef uint32_t word __attribute__((may_alias, aligned(1)));

/* Without what it ends in of whole pieces of ZEROS bytes that are 0. */
static size_t without_zeros(const uint8_t *bytes, size_t length)
{
	for (; length >= ZEROS; length -= ZEROS) {
		const word *end = (const word *)(bytes + length), *at = end - ZEROS / sizeof(*at);

		for (; at < end; at += 4)
			if (at[0] | at[1] | at[2] | at[3])
				return length;
	}
	return length;
}

/* Most of a block is often zeros, at its end: they take a tenth of the time. */
uint32_t crc32c(uint32_t crc, const void *data, size_t length)
{
	const uint8_t *bytes = data, *end = bytes + without_zeros(bytes, length);
	size_t zeros = length - (end - bytes);

	if (tables[7][255] == 0) /* the last one: a task may be pre-empted half-way */
		make_tables();
	for (const uint8_t *last = end - 2 * sizeof(word); bytes <= last;
	     bytes += 2 * sizeof(word)) {
		const word *words = (const word *)bytes;

		crc = of_word(words[0] ^ crc, 4) ^ of_word(words[1], 0);
	}
	while (bytes < end)
		crc = crc >> 8 ^ tables[0][(crc ^ *bytes++) & 0xff];
	return zeros ? crc32c_zeros(crc, zeros) : crc;
}

/* What 2^i bytes of 0 make of each value of each four bits of a remainder; the rest follows,
 * because the division is linear. */
static uint32_t doubled[32][8][16];

static uint32_t after(uint32_t crc, unsigned i)
{
	uint32_t result = 0;

	for (unsigned place = 0; place < 8; place++, crc >>= 4)
		result ^= doubled[i][place][crc & 15];
	return result;
}

/* 2^i bytes are twice as many as 2^(i - 1). */
static void make_doubled(unsigned i)
{
	for (uint32_t place = 0; place < 8; place++)
		for (uint32_t value = 1; value < 16; value++) {
			uint32_t crc = value << 4 * place;

			doubled[i][place][value] =
			    i ? after(after(crc, i - 1), i - 1) : crc >> 8 ^ tables[0][crc & 0xff];
		}
}

uint32_t crc32c_zeros(uint32_t crc, size_t count)
{
	if (tables[7][255] == 0)
		make_tables();
	for (unsigned i = 0; count >> i; i++) {
		if (doubled[i][7][15] == 0)
			make_doubled(i);
		if (count >> i & 1)
			crc = after(crc, i);
	}
	return crc;
}

/* A checksum that is in what it sums up: when it was made its field was 0. */
uint32_t crc32c_without(uint32_t crc, const void *data, size_t length, size_t at, size_t size)
{
	const uint8_t *rest = (const uint8_t *)data + at + size;
	const uint32_t zero = 0;

	crc = crc32c(crc32c(crc, data, at), &zero, size);
	return crc32c(crc, rest, length - at - size);
}

uint32_t crc32_big_endian(uint32_t crc, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	while (length-- > 0) {
		crc ^= (uint32_t)*bytes++ << 24;
		for (int bit = 0; bit < 8; bit++)
			crc = crc << 1 ^ (crc & 0x80000000u ? ETHERNET : 0);
	}
	return crc;
}
