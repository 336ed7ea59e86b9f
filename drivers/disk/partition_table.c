/*
 * Partitions of a drive, by the table in its first sector (MBR, master boot record).
 *
 * The sector ends with 0x55 0xaa. Four entries of 16 bytes begin at byte 446:
 *
 *	byte 0		0x80: to boot from; else 0		byte 8	first sector, 32 bits
 *	byte 4		type; 0: the entry is empty		byte 12	sectors, 32 bits
 *
 * They are hda1 to hda4. An entry of an extended type holds further ones, hda5 and so on, which are
 * a chain: each of them has a table of its own, with itself and the place of the next table:
 *
 *	MBR	extended: 1000 to 9000
 *	1000	logical: +63, that is 1063		next: +4000, that is 1000 + 4000
 *	5000	logical: +63, that is 5063		next: none
 *
 * A logical partition counts from its own table, a next table from the first one. A chain may be
 * damaged, and be a circle: it ends after PARTITIONS_PER_DRIVE tables at the latest. An entry of
 * type 0xee says that the drive has a GPT instead (partition_gpt.c).
 *
 * A boot sector that only has code there is no table: byte 0 of an entry is something else then.
 */
#include "drivers/disk/partition.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"

#define TABLE	  446
#define ENTRIES	  4
#define SIGNATURE 510

#define TYPE_EMPTY    0x00
#define TYPE_EXTENDED 0x05 /* and 0x0f, and Linux's own 0x85 */
#define TYPE_GPT      0xee

struct entry {
	uint8_t boot;
	uint8_t first_chs[3];
	uint8_t type;
	uint8_t last_chs[3];
	uint32_t start;
	uint32_t sectors;
} __attribute__((packed));

static bool is_extended(const struct entry *entry)
{
	return (entry->type & 0x7f) == TYPE_EXTENDED || entry->type == 0x0f;
}

/* Reads a table. Returns whether the sector has one. */
static bool read_mbr_table(struct block_device *drive, uint64_t lba, struct entry *entries)
{
	uint8_t sector[SECTOR_SIZE];

	if (block_read(drive, lba, 1, sector, BLOCK_OTHER) < 0 || sector[SIGNATURE] != 0x55 ||
	    sector[SIGNATURE + 1] != 0xaa)
		return false;
	memcpy(entries, sector + TABLE, ENTRIES * sizeof(*entries));
	for (unsigned i = 0; i < ENTRIES; i++)
		if (entries[i].boot & 0x7f)
			return false;
	return true;
}

/* The chain of tables in an extended partition: of the entries in each the first that is not a link
 * is the logical partition, the first link leads to the next table. */
static void add_logical(struct block_device *drive, uint64_t first, unsigned *number)
{
	uint64_t lba = first;

	while (*number < PARTITIONS_PER_DRIVE) {
		struct entry entries[ENTRIES];
		uint64_t next = 0;

		if (!read_mbr_table(drive, lba, entries)) {
			printk("%s: no table of logical partitions at sector %llu\n", drive->name,
			       lba);
			return;
		}
		for (unsigned i = 0; i < 2; i++)
			if (is_extended(&entries[i]))
				next = next ? next : first + entries[i].start;
			else if (entries[i].type != TYPE_EMPTY && entries[i].sectors > 0)
				partition_add(drive, ++*number, lba + entries[i].start,
					      entries[i].sectors);
		if (!next)
			return;
		lba = next;
	}
	printk("%s: more logical partitions than %u, or a circle of them\n", drive->name,
	       PARTITIONS_PER_DRIVE);
}

void partitions_register(struct block_device *drive)
{
	struct entry entries[ENTRIES];
	unsigned last = ENTRIES;

	if (!read_mbr_table(drive, 0, entries))
		return;
	for (unsigned i = 0; i < ENTRIES; i++)
		if (entries[i].type == TYPE_GPT) {
			gpt_register(drive);
			return;
		}
	for (unsigned i = 0; i < ENTRIES; i++)
		if (is_extended(&entries[i]))
			add_logical(drive, entries[i].start, &last);
		else if (entries[i].type != TYPE_EMPTY)
			partition_add(drive, i + 1, entries[i].start, entries[i].sectors);
}

void partitions_reread(struct block_device *drive)
{
	partitions_remove(drive);
	partitions_register(drive);
}
