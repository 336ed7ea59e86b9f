/*
 * account FILE: where the blocks of an ext2, ext3 or ext4 went before its first file. A Linux
 * program; FILE is an image or a drive, and is only read.
 *
 *	group 0			group 1			group 2			group 3
 *	[S|D|r|b|i|T...|data]	[S|D|r|b|i|T...|data]	[b|i|T...|data	   ]	[S|D|r|b|i|...
 *
 *	S superblock		D descriptors of all groups		r room for more of them
 *	b bitmap of blocks	i bitmap of inodes			T table of inodes
 *
 * Each group has two bitmaps and its part of the inode tables; where they are does not matter. The
 * superblock and the descriptors are in group 0, and copies of them:
 *
 *	no feature	in every group
 *	sparse_super	in groups 0, 1 and the powers of 3, 5 and 7
 *	sparse_super2	in group 0 and the two groups of s_backup_bgs; 0 there is none
 *	meta_bg		the descriptors elsewhere: a block of them has those of a meta group, and
 *			is in the first, second and last group of it, if it has these. A meta
 *			group is as many groups as a block has room for descriptors.
 *			But the first s_first_meta_bg blocks of descriptors are with the
 *			superblock, in all groups of these meta groups that have one
 *
 * With blocks of 1 KiB block 0 is the boot sector's, and the groups begin with block 1. That is the
 * overhead, which statfs took off the total in 2010 (Linux takes off room and journal today, too).
 * The room for descriptors belongs to inode 7, and the journal to inode 8: df counts both as used.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "account"
#include "user/fail.h"
#include "fs/ext/disk.h"

#define SUPER_AT       1024
#define LOG_BLOCK_MAX  6
#define JOURNAL_DEVICE 0x8 /* s_feature_incompat: it is a journal, and no file system */
#define RESIZE_INODE   7
#define JOURNAL_INODE  8

struct account {
	uint32_t block;			  /* bytes of one */
	uint64_t blocks, free, reserved;  /* as the superblock says; reserved for root */
	uint64_t tables, bitmaps, copies; /* copies: superblocks, descriptors, the boot sector */
	uint64_t overhead;		  /* these three */
	uint64_t journal, room, others;	  /* others: directories and files */
	uint64_t used, available;	  /* as df has them */
};

static const char *name;
static int input;

static void read_at(uint64_t offset, void *to, size_t length)
{
	ssize_t count = pread(input, to, length, (off_t)offset);

	if (count < 0)
		fail(EXIT_FAILURE, "%s cannot be read at %" PRIu64 ": %s", name, offset,
		     strerror(errno));
	if ((size_t)count != length)
		fail(EXIT_FAILURE, "%s ends before byte %" PRIu64, name, offset + length);
}

static bool has_incompat(const struct ext_super_block *super, uint32_t feature)
{
	return super->s_feature_incompat & feature;
}

static bool has_ro_compat(const struct ext_super_block *super, uint32_t feature)
{
	return super->s_feature_ro_compat & feature;
}

/* The upper half of a count of blocks, which only 64bit has. */
static uint64_t wide(const struct ext_super_block *super, uint32_t low, uint32_t high)
{
	return low | (has_incompat(super, EXT_INCOMPAT_64BIT) ? (uint64_t)high << 32 : 0);
}

static uint64_t block_count(const struct ext_super_block *super)
{
	return wide(super, super->s_blocks_count_lo, super->s_blocks_count_hi);
}

static uint32_t inode_bytes(const struct ext_super_block *super)
{
	return super->s_rev_level ? super->s_inode_size : EXT_OLD_INODE_SIZE;
}

static uint32_t descriptor_bytes(const struct ext_super_block *super)
{
	return has_incompat(super, EXT_INCOMPAT_64BIT) ? super->s_desc_size : EXT_DESCRIPTOR_SMALL;
}

static bool is_power_of_2(uint32_t number)
{
	return number > 0 && (number & (number - 1)) == 0;
}

/* EXERCISE S10 (the account of mkfs): four functions. The opening has the layout; fs/ext/disk.h has
 * the structures. Nothing in a superblock is believed before problem_of has looked at it: a program
 * that divides by a 0 of the disk ends with a signal, and a sum of 32 bits wraps. Counts of blocks
 * have 64 bits. */

/* How many groups there are; the last one may be shorter. Only once it is known that there is a
 * block in them, and that a group has blocks. */
static uint64_t group_count(const struct ext_super_block *super)
{
	return (block_count(super) - super->s_first_data_block - 1) / super->s_blocks_per_group + 1;
}

/* What is wrong with a superblock, in words; NULL: it can be counted with. bigalloc is not known
 * here, and an external journal is not a file system. Blocks of 1 KiB to 64 KiB; s_first_data_block
 * is 1 for 1 KiB, otherwise 0. A bitmap is one block, so a group has at most 8 blocks or inodes for
 * each byte of it, and at least one block, and as many inodes as fill a block of their table.
 * Inodes have 128 bytes to a block, descriptors of 64bit 64 bytes to a block; both are powers of 2.
 * There is a block, and there are less than 2^32 groups, with s_inodes_count inodes in all. No more
 * blocks are free, or reserved, than there are. With meta_bg, s_first_meta_bg is at most the number
 * of blocks of descriptors. */
/* SOLUTION S10 { */
static const char *problem_of(const struct ext_super_block *super)
{
	if (super->s_magic != EXT_SUPER_MAGIC)
		return "no ext2, ext3 or ext4";
	if (has_incompat(super, JOURNAL_DEVICE))
		return "an external journal";
	if (has_ro_compat(super, EXT_RO_COMPAT_BIGALLOC))
		return "bigalloc is not known here";
	if (super->s_log_block_size > LOG_BLOCK_MAX)
		return "the size of a block";
	uint32_t block = 1024u << super->s_log_block_size, inode = inode_bytes(super);
	uint32_t descriptor = descriptor_bytes(super), bits = 8 * block;

	if (super->s_first_data_block != (block == 1024))
		return "the first block";
	if (super->s_blocks_per_group == 0 || super->s_blocks_per_group > bits)
		return "blocks of a group";
	if (!is_power_of_2(inode) || inode < EXT_OLD_INODE_SIZE || inode > block)
		return "the size of an inode";
	if (super->s_inodes_per_group < block / inode || super->s_inodes_per_group > bits)
		return "inodes of a group";
	if (!is_power_of_2(descriptor) || descriptor > block ||
	    (has_incompat(super, EXT_INCOMPAT_64BIT) && descriptor < EXT_DESCRIPTOR_LARGE))
		return "the size of a descriptor";
	uint64_t blocks = block_count(super);

	if (blocks <= super->s_first_data_block)
		return "the number of blocks";
	uint64_t groups = group_count(super);

	if (groups > UINT32_MAX || groups * super->s_inodes_per_group != super->s_inodes_count)
		return "the number of inodes";
	if (wide(super, super->s_free_blocks_count_lo, super->s_free_blocks_count_hi) > blocks)
		return "the number of free blocks";
	if (wide(super, super->s_r_blocks_count_lo, super->s_r_blocks_count_hi) > blocks)
		return "the number of reserved blocks";
	if (has_incompat(super, EXT_INCOMPAT_META_BG) &&
	    super->s_first_meta_bg > (groups * descriptor + block - 1) / block)
		return "the first meta group";
	return NULL;
}
/* } SOLUTION S10 */

/* Has a group a copy of the superblock? */
static bool has_copy(const struct ext_super_block *super, uint64_t group)
{
	/* SOLUTION S10 { */
	static const uint64_t bases[] = { 3, 5, 7 };

	if (super->s_feature_compat & EXT_COMPAT_SPARSE_SUPER2)
		return group == 0 || group == super->s_backup_bgs[0] ||
		       group == super->s_backup_bgs[1];
	if (group <= 1 || !has_ro_compat(super, EXT_RO_COMPAT_SPARSE_SUPER))
		return true;
	for (unsigned i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		uint64_t power = bases[i];

		while (power < group)
			power *= bases[i];
		if (power == group)
			return true;
	}
	return false;
	/* } SOLUTION S10 */
}

/* How many blocks of a group the superblock and descriptors take. */
static uint64_t copies_in(const struct ext_super_block *super, uint64_t group)
{
	/* SOLUTION S10 { */
	uint32_t block = 1024u << super->s_log_block_size;
	uint32_t in_block = block / descriptor_bytes(super), place = group % in_block;
	uint64_t blocks = (group_count(super) + in_block - 1) / in_block;
	bool has_super = has_copy(super, group);

	if (!has_incompat(super, EXT_INCOMPAT_META_BG))
		return has_super ? 1 + blocks : 0;
	if (group / in_block < super->s_first_meta_bg)
		return has_super ? 1 + super->s_first_meta_bg : 0;
	return has_super + (place == 0 || place == 1 || place == in_block - 1);
	/* } SOLUTION S10 */
}

/* Fills in tables, bitmaps, copies and overhead; block, blocks, free and reserved are there. A
 * table of inodes takes whole blocks in each group. */
static void count_overhead(const struct ext_super_block *super, struct account *account)
{
	/* SOLUTION S10 { */
	uint64_t groups = group_count(super);
	uint64_t bytes = (uint64_t)super->s_inodes_per_group * inode_bytes(super);

	account->tables = groups * ((bytes + account->block - 1) / account->block);
	account->bitmaps = 2 * groups;
	account->copies = super->s_first_data_block;
	for (uint64_t group = 0; group < groups; group++)
		account->copies += copies_in(super, group);
	account->overhead = account->tables + account->bitmaps + account->copies;
	/* } SOLUTION S10 */
}

/* The blocks that an inode of group 0 has, with those of its map. */
static uint64_t held_by(const struct ext_super_block *super, const struct account *account,
			uint32_t number)
{
	uint32_t width = descriptor_bytes(super);
	struct ext_group_desc group = { 0 };
	struct ext_disk_inode inode;

	read_at((super->s_first_data_block + 1) * (uint64_t)account->block, &group,
		width < sizeof(group) ? width : sizeof(group));
	uint64_t table = EXT_GET64(&group, bg_inode_table);

	if (number > super->s_inodes_per_group || table == 0 || table >= account->blocks)
		fail(EXIT_FAILURE, "%s is damaged: the inode table of group 0", name);
	read_at(table * account->block + (uint64_t)(number - 1) * inode_bytes(super), &inode,
		sizeof(inode));
	uint64_t units = inode.i_blocks_lo;

	if (has_ro_compat(super, EXT_RO_COMPAT_HUGE_FILE))
		units |= (uint64_t)inode.l_i_blocks_high << 32;
	return inode.i_flags & EXT_FLAG_HUGE_FILE ? units : units * 512 / account->block;
}

/* What df says, and what holds it. Everything must add up: a superblock that says otherwise is
 * damaged. */
static void count_used(const struct ext_super_block *super, struct account *account)
{
	account->journal = held_by(super, account, JOURNAL_INODE);
	account->room = held_by(super, account, RESIZE_INODE);
	if (account->overhead > account->blocks - account->free)
		fail(EXIT_FAILURE, "%s is damaged: the number of free blocks", name);
	account->used = account->blocks - account->free - account->overhead;
	if (account->journal > account->used || account->room > account->used - account->journal)
		fail(EXIT_FAILURE, "%s is damaged: the blocks of inodes 7 and 8", name);
	account->others = account->used - account->journal - account->room;
	if (account->free > account->reserved)
		account->available = account->free - account->reserved;
}

static void print_line(const char *what, uint64_t blocks)
{
	printf("%-40s %20" PRIu64 "\n", what, blocks);
}

static void print(const struct account *account)
{
	printf("%s: %" PRIu64 " blocks of %u bytes\n", name, account->blocks, account->block);
	print_line("inode tables", account->tables);
	print_line("bitmaps", account->bitmaps);
	print_line("superblocks and descriptors", account->copies);
	print_line("= overhead", account->overhead);
	print_line("journal", account->journal);
	print_line("room for descriptors", account->room);
	print_line("directories and files", account->others);
	print_line("= used", account->used);
	print_line("free", account->free);
	print_line("reserved for root", account->reserved);
	print_line("available", account->available);
}

int main(int count, char **words)
{
	struct ext_super_block super;

	if (count != 2) {
		fputs("usage: account FILE\n", stderr);
		return 2;
	}
	name = words[1];
	input = open(name, O_RDONLY);
	if (input < 0)
		fail(EXIT_FAILURE, "%s cannot be opened: %s", name, strerror(errno));
	read_at(SUPER_AT, &super, sizeof(super));
	const char *problem = problem_of(&super);

	if (problem)
		fail(EXIT_FAILURE, "%s cannot be counted: %s", name, problem);
	struct account account = {
		.block = 1024u << super.s_log_block_size,
		.blocks = block_count(&super),
		.free = wide(&super, super.s_free_blocks_count_lo, super.s_free_blocks_count_hi),
		.reserved = wide(&super, super.s_r_blocks_count_lo, super.s_r_blocks_count_hi),
	};

	count_overhead(&super, &account);
	count_used(&super, &account);
	print(&account);
	return 0;
}
