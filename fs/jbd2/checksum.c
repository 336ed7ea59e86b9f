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
static inline uint32_t of_word(uint32_t word, unsigned zeros)
{
	return tables[zeros + 3][word & 0xff] ^ tables[zeros + 2][word >> 8 & 0xff] ^
	       tables[zeros + 1][word >> 16 & 0xff] ^ tables[zeros][word >> 24];
}

uint32_t crc32c(uint32_t crc, const void *data, size_t length)
{
	const uint8_t *bytes = data;
	uint32_t words[2];

	if (tables[0][1] == 0)
		make_tables();
	for (; length >= sizeof(words); length -= sizeof(words), bytes += sizeof(words)) {
		__builtin_memcpy(words, bytes, sizeof(words)); /* two instructions, and no call */
		crc = of_word(words[0] ^ crc, 4) ^ of_word(words[1], 0);
	}
	while (length-- > 0)
		crc = crc >> 8 ^ tables[0][(crc ^ *bytes++) & 0xff];
	return crc;
}

/* The product of two remainders: bit 31 is 1, bit 30 is x. */
static uint32_t multiply(uint32_t one, uint32_t other)
{
	uint32_t product = 0;

	for (; one; one <<= 1) {
		if (one & 0x80000000u)
			product ^= other;
		other = other >> 1 ^ (other & 1 ? CASTAGNOLI : 0);
	}
	return product;
}

/* powers[i] is what 2^i bytes multiply by: x^(8 * 2^i). */
uint32_t crc32c_zeros(uint32_t crc, size_t count)
{
	static uint32_t powers[32] = { 0x80000000u >> 8 };

	for (unsigned i = 0; count >> i; i++) {
		if (powers[i] == 0)
			powers[i] = multiply(powers[i - 1], powers[i - 1]);
		if (count >> i & 1)
			crc = multiply(crc, powers[i]);
	}
	return crc;
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
