/* The overlay: what the block cache has of sectors that are read or written past it. */
#include "fs/cache/bcache.h"
#include "kernel/lib/string.h"

/* Copies what a block and `count` sectors from lba on have in common, up or (is_write) down. */
static void overlay_buffer(struct cached_block *buffer, uint64_t lba, unsigned count, uint8_t *data,
			   bool is_write)
{
	uint32_t sectors = buffer->size / SECTOR_SIZE;
	uint64_t first = buffer->block * sectors, end = first + sectors;
	uint64_t from = lba > first ? lba : first, to = lba + count < end ? lba + count : end;
	uint8_t *cached = buffer->data + (from - first) * SECTOR_SIZE;

	data += (from - lba) * SECTOR_SIZE;
	bcache_seal(buffer);
	if (buffer->device)
		memcpy(is_write ? cached : data, is_write ? data : cached,
		       (uint32_t)(to - from) * SECTOR_SIZE);
	bcache_put(buffer);
}

void bcache_overlay(struct block_device *device, uint64_t lba, unsigned count, void *data,
		    bool is_write)
{
	for (unsigned shift = 1; shift <= 3; shift++) /* blocks of 2, 4 and 8 sectors */
		for (uint64_t block = lba >> shift; block << shift < lba + count; block++) {
			struct cached_block *buffer =
			    bcache_find(device, block, SECTOR_SIZE << shift);

			if (buffer)
				overlay_buffer(buffer, lba, count, data, is_write);
		}
}
