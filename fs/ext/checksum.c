/*
 * CRC-32C (Castagnoli polynomial, bits reversed), as the metadata_csum feature uses it.
 *
 * The remainder of a division of polynomials, a bit at a time: shift right, and subtract (XOR) the
 * polynomial 0x82f63b78 when a 1 has left. The ext file system starts with all ones and does not
 * invert the result, so a checksum can be continued over several pieces.
 */
#include "fs/ext/internal.h"

/* Bit by bit: it runs over one superblock a mount, which is not worth a table. */
uint32_t ext_crc32c(uint32_t crc, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	while (length-- > 0) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}
