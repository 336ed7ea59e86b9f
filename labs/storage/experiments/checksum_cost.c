/*
 * checksum_cost: what the checksum of each kind of metadata costs, in steps of the processor's
 * counter (with -icount: instructions). The functions are the kernel's own.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fs/ext/inodes.h"

#define COUNT 200u

static struct ext_fs fs;
static uint8_t block[4096];

/* What the functions that only compute do not call. */
int ext_corrupt(const struct ext_fs *of, const char *where, const char *format, ...)
{
	(void)of, (void)where, (void)format;
	return -1;
}

int ext_corrupt_inode(const struct ext_inode *inode, const char *format, ...)
{
	(void)inode, (void)format;
	return -1;
}

static void descriptor(void)
{
	ext_group_checksum(&fs, 1, (const struct ext_group_desc *)block);
}

static void inode(void)
{
	ext_inode_checksum(&fs, 12, (const struct ext_disk_inode_large *)block);
}

static void superblock(void)
{
	ext_super_checksum((const struct ext_super_block *)block);
}

static void whole(void)
{
	crc32c(fs.seed, block, sizeof(block));
}

static void report(const char *what, void (*call)(void))
{
	call();
	uint64_t start = __builtin_ia32_rdtsc();

	for (unsigned i = 0; i < COUNT; i++)
		call();
	printf("%s %llu\n", what, (unsigned long long)((__builtin_ia32_rdtsc() - start) / COUNT));
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)(i * 7);
	fs.inode_size = 256;
	fs.summary.descriptor_size = 64;
	((struct ext_disk_inode_large *)block)->i_extra_isize = 32;
	fs.super.s_feature_ro_compat = EXT_RO_COMPAT_GDT_CSUM;
	report("descriptor-crc16", descriptor);
	fs.super.s_feature_ro_compat = EXT_RO_COMPAT_METADATA_CSUM;
	report("descriptor-crc32c", descriptor);
	report("inode-crc32c", inode);
	report("superblock-crc32c", superblock);
	report("block-crc32c", whole);
	return 0;
}
