/*
 * The GUID partition table (UEFI specification 2.10, chapter 5): with checksums, and twice.
 *
 *	sector 0	an MBR with one entry of type 0xee, for programs that know nothing else
 *	sector 1	header		says where its entries are, and both checksums
 *	sector 2	entries		128 bytes each: type, identity, first and last sector, ...
 *	...
 *	last - 32	the entries again
 *	last		header again: where the other header is damaged, this one is used
 *
 * Entry i is partition i + 1; one whose type is all zeros is empty. Nothing in a header is used
 * before its own checksum was right, nothing in the entries before theirs was.
 */
#include "drivers/disk/partition.h"

#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

#define HEADER_SIZE   92u
#define ENTRY_SIZE    128u
#define ENTRIES_LIMIT 512u /* of 128 bytes: 64 KiB */
#define ENTRIES_ORDER 4

struct header {
	char signature[8]; /* "EFI PART" */
	uint32_t revision;
	uint32_t size;	   /* of the header, in bytes */
	uint32_t checksum; /* of the header, with 0 here */
	uint32_t reserved;
	uint64_t own_sector;
	uint64_t other_sector;
	uint64_t first_usable, last_usable;
	uint8_t identity[16];
	uint64_t entries_sector;
	uint32_t entries;
	uint32_t entry_size;
	uint32_t entries_checksum;
} __attribute__((packed));

struct entry {
	uint8_t type[16];
	uint8_t identity[16];
	uint64_t first, last; /* sectors, both included */
	uint64_t flags;
	uint16_t name[36];
} __attribute__((packed));

/* The polynomial of Ethernet, bits reversed. */
uint32_t crc32(uint32_t crc, const uint8_t *bytes, uint32_t length)
{
	crc = ~crc;
	while (length--) {
		crc ^= *bytes++;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* Reads the header at this sector. Returns NULL, or what is wrong with it. */
static const char *read_gpt_header(struct block_device *drive, uint64_t lba, struct header *header)
{
	uint8_t sector[SECTOR_SIZE];

	if (block_read(drive, lba, 1, sector, BLOCK_OTHER) < 0)
		return "cannot be read";
	memcpy(header, sector, sizeof(*header));
	if (memcmp(header->signature, "EFI PART", 8) != 0)
		return "has no signature";
	if (header->size < HEADER_SIZE || header->size > SECTOR_SIZE)
		return "has a wrong size";
	memset(sector + offsetof(struct header, checksum), 0, sizeof(header->checksum));
	if (crc32(0, sector, header->size) != header->checksum)
		return "has a wrong checksum";
	if (header->own_sector != lba)
		return "belongs to another sector";
	if (header->entry_size != ENTRY_SIZE || header->entries > ENTRIES_LIMIT)
		return "has entries of another form";
	return NULL;
}

/* Reads the entries, into ENTRIES_LIMIT of them. Returns NULL, or what is wrong with them. The
 * header was checked, so there is room for all of them, and its checksum covers theirs. */
static const char *read_gpt_entries(struct block_device *drive, const struct header *header,
				    struct entry *entries)
{
	uint32_t bytes = header->entries * ENTRY_SIZE;
	unsigned sectors = (bytes + SECTOR_SIZE - 1) / SECTOR_SIZE;

	if (sectors > 0 &&
	    block_read(drive, header->entries_sector, sectors, entries, BLOCK_OTHER) < 0)
		return "has entries that cannot be read";
	if (crc32(0, (const uint8_t *)entries, bytes) != header->entries_checksum)
		return "has entries with a wrong checksum";
	return NULL;
}

/* Registers the partitions of the table whose header is at this sector, if all of it is sound. */
static bool use_table(struct block_device *drive, uint64_t lba, struct entry *entries)
{
	static const uint8_t empty[16];
	struct header header;
	const char *wrong = read_gpt_header(drive, lba, &header);

	if (!wrong)
		wrong = read_gpt_entries(drive, &header, entries);
	if (wrong) {
		printk("%s: the GPT header at sector %llu %s\n", drive->name, lba, wrong);
		return false;
	}
	for (unsigned i = 0; i < header.entries && i < PARTITIONS_PER_DRIVE; i++)
		if (memcmp(entries[i].type, empty, sizeof(empty)) != 0)
			partition_add(drive, i + 1, entries[i].first,
				      entries[i].last - entries[i].first + 1);
	return true;
}

/* The header at the end of the drive is for the day when the first one is damaged. */
void gpt_register(struct block_device *drive)
{
	struct entry *entries = page_alloc(ENTRIES_ORDER);

	if (!entries)
		return;
	if (!use_table(drive, 1, entries) && !use_table(drive, drive->sectors - 1, entries))
		printk("%s: both copies of the GPT are damaged; no partitions\n", drive->name);
	page_free(entries, ENTRIES_ORDER);
}
