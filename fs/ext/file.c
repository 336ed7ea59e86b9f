/*
 * The contents of files: ext_read follows the map.
 *
 * A disk only reads whole sectors, and a map answers for one run of blocks. So a read is cut at
 * both kinds of boundaries. 10000 bytes from offset 5000, in blocks of 4096, of which 1 and 2 are
 * at disk block 700 and 3 is at 900:
 *
 *	5000  to 5120	  120 bytes	the end of a sector: read aside, and copied
 *	5120  to 12288	14 sectors	straight into the caller's buffer
 *	12288 to 14848	 5 sectors	the same, from block 900
 *	14848 to 15000	  152 bytes	the beginning of a sector: aside
 *
 * Data is not cached: the lab counts one request for each read of a sector. What is a hole, or was
 * allocated but never written, reads as zeros without a request. Waits for the drive.
 */
#include "fs/ext/mapping.h"
#include "kernel/lib/string.h"

/* Reads as much as one sector gives, aside. The sector is on the stack: not on that of whole ones,
 * which page faults read. */
static __attribute__((noinline)) int read_part(struct block_device *device, uint64_t position,
					       void *to, uint32_t length)
{
	uint32_t skip = position % SECTOR_SIZE;
	uint8_t sector[SECTOR_SIZE];
	int error = block_read(device, position / SECTOR_SIZE, 1, sector, BLOCK_DATA);

	if (error)
		return error;
	length = ext_shorter(length, SECTOR_SIZE - skip);
	memcpy(to, sector + skip, length);
	return length;
}

int ext_read_mapped(const struct ext_fs *fs, const struct ext_mapping *mapping, uint64_t offset,
		    void *to, uint32_t length)
{
	uint32_t skip = offset & (fs->summary.block_size - 1);
	uint64_t position = (mapping->physical << fs->block_shift) + skip;

	/* Compared in blocks, because the bytes of a long hole may not fit 64 bits. */
	if (mapping->length <= ((uint64_t)skip + length) >> fs->block_shift)
		length = (uint32_t)(mapping->length << fs->block_shift) - skip;
	if (mapping->physical == 0 || mapping->unwritten) {
		memset(to, 0, length);
		return length;
	}
	if (position % SECTOR_SIZE != 0 || length < SECTOR_SIZE)
		return read_part(fs->device, position, to, length);
	length &= -SECTOR_SIZE;
	int error =
	    block_read(fs->device, position / SECTOR_SIZE, length / SECTOR_SIZE, to, BLOCK_DATA);

	return error ? error : (int)length;
}

/* A long symbolic link is metadata: its block may be newer in the cache than on the disk. A NUL in
 * a target would end the path there, and drop what follows. */
static int read_target(const struct ext_inode *inode, uint32_t offset, void *to, uint32_t length)
{
	const uint8_t *target = (const uint8_t *)inode->map;
	struct cached_block *block = NULL;
	int error = ext_is_short_symlink(inode) ? 0 : ext_block_get(inode, 0, &block);

	if (error)
		return error;
	if (block)
		target = block->data;
	for (uint32_t i = 0; i < inode->size && !error; i++)
		if (target[i] == '\0')
			error = ext_corrupt_inode(inode, "NUL at %u of %ju in a link's target", i,
						  inode->size);
	memcpy(to, target + offset, length);
	return bcache_done(block, error ? error : (int)length);
}

/* An error after some bytes is an error: the caller cannot tell which bytes are valid. */
int ext_read(const struct ext_inode *inode, uint64_t offset, void *buffer, uint32_t length)
{
	struct ext_mapping mapping;
	uint32_t done = 0;

	if (offset >= inode->size)
		return 0;
	length = ext_shorter(length, inode->size - offset);
	if (ext_is_symlink(inode))
		return read_target(inode, (uint32_t)offset, buffer, length);
	while (done < length) {
		int part = ext_map(inode, (offset + done) >> inode->fs->block_shift, &mapping);

		if (!part)
			part = ext_read_mapped(inode->fs, &mapping, offset + done,
					       (uint8_t *)buffer + done, length - done);
		if (part < 0)
			return part;
		done += part;
	}
	return done;
}
