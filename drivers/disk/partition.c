/*
 * A partition as a block device: a range of a drive.
 *
 *	hdb		0 ......... 2048 ................. 3047 .......... 19999
 *	hdb1			    0 .................... 999
 *
 * What it needs of its own is a name, a number (Linux's: the drive's plus the partition's) and
 * statistics; drivers/disk/queue.c moves its requests. Its structure is made once for a number, and
 * stays: what is in the table may go and come again (fs/disk/block_files.c says when).
 */
#include "drivers/disk/partition.h"

#include "kernel/report/printk.h"
#include "mm/kmalloc.h"

struct partition {
	struct block_device block;
	char name[8];
	struct partition *next;
};

static struct partition *partitions; /* of all drives, those that are not there any more, too */

static struct partition *partition_of(const struct block_device *drive, unsigned number)
{
	struct partition *each = partitions;

	while (each && each->block.number != drive->number + number)
		each = each->next;
	if (each || !(each = kmalloc(sizeof(*each))))
		return each;
	each->next = partitions;
	partitions = each;
	return each;
}

void partition_add(struct block_device *drive, unsigned number, uint64_t start, uint64_t sectors)
{
	struct partition *partition;

	if (start == 0 || start >= drive->sectors || sectors == 0 ||
	    sectors > drive->sectors - start) {
		printk("%s%u: %llu sectors from %llu are not on the drive; left out\n", drive->name,
		       number, sectors, start);
		return;
	}
	partition = partition_of(drive, number);
	if (!partition)
		return;
	snprintk(partition->name, sizeof(partition->name), "%s%u", drive->name, number);
	partition->block = (struct block_device){
		.name = partition->name,
		.number = drive->number + number,
		.sectors = sectors,
		.whole = drive,
		.start = start,
	};
	block_register(&partition->block);
	printk("%s: %llu sectors from %llu\n", partition->name, sectors, start);
}

void partitions_remove(struct block_device *drive)
{
	for (struct partition *each = partitions; each; each = each->next)
		if (each->block.whole == drive)
			block_unregister(&each->block);
}
