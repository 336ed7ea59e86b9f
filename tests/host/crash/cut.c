/* A power cut: which of a record's requests reached the disk. */
#include "tests/host/crash/cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t cut_epoch(const struct disk_record *record, uint32_t position)
{
	while (position > 0 && record->entries[position - 1].sectors > 0)
		position--;
	return position;
}

static void miss(struct cut *cut, uint32_t request)
{
	if (cut->missing_count < MISSING_MAX)
		cut->missing[cut->missing_count++] = request;
}

static bool is_missing(const struct cut *cut, uint32_t request)
{
	for (uint32_t i = 0; i < cut->missing_count; i++)
		if (cut->missing[i] == request)
			return true;
	return false;
}

/* Whether the chosen way keeps request `index` of `count`; `chosen` is one of them. */
static bool keeps(unsigned way, uint32_t index, uint32_t chosen, struct random *random)
{
	switch (way) {
	case 0: /* one is missing */
		return index != chosen;
	case 1: /* only one is there */
		return index == chosen;
	case 2: /* the later ones are there */
		return index >= chosen;
	default:
		return random_below(random, 2) == 0;
	}
}

bool cut_subset(struct cut *cut, const struct disk_record *record, uint32_t position,
		struct random *random)
{
	uint32_t begin = cut_epoch(record, position), count = position - begin, chosen;
	unsigned way = (unsigned)random_below(random, 5);

	*cut = (struct cut){ .position = position, .torn = NOT_TORN };
	if (count == 0)
		return false;
	chosen = (uint32_t)random_below(random, count);
	for (uint32_t i = 0; i < count; i++)
		if (!keeps(way, i, chosen, random))
			miss(cut, begin + i);
	if (cut->missing_count == 0)
		miss(cut, begin + chosen);
	return true;
}

/* The superblock is two sectors, and its checksum is in the second: a drive that writes one of them
 * leaves what neither Linux nor this library mounts. The format has no answer to that. */
static bool has_superblock(const struct disk_entry *entry)
{
	return entry->lba <= 3 && entry->lba + entry->sectors > 2;
}

bool cut_torn(struct cut *cut, const struct disk_record *record, uint32_t position,
	      struct random *random)
{
	uint32_t begin = cut_epoch(record, position), sectors;

	if (position == begin)
		return false;
	*cut = (struct cut){ .position = position, .torn = NOT_TORN };
	if (random_below(random, 2) == 0)
		cut_subset(cut, record, position, random);
	cut->torn = begin + (uint32_t)random_below(random, position - begin);
	sectors = record->entries[cut->torn].sectors;
	if (sectors < 2 || has_superblock(&record->entries[cut->torn]))
		return false;
	cut->torn_first =
	    random_below(random, 2) == 0 ? 0 : 1 + (uint32_t)random_below(random, sectors - 1);
	cut->torn_count = 1 + (uint32_t)random_below(random, sectors - cut->torn_first);
	if (cut->torn_count == sectors)
		cut->torn_count--;
	for (uint32_t i = 0; i < cut->missing_count; i++)
		if (cut->missing[i] == cut->torn)
			cut->missing[i] = cut->missing[--cut->missing_count];
	return true;
}

void cut_apply(const struct cut *cut, const struct disk_record *record, uint32_t from)
{
	for (uint32_t i = from; i < cut->position; i++) {
		const struct disk_entry *entry = &record->entries[i];
		uint32_t first = i == cut->torn ? cut->torn_first : 0;
		uint32_t count = i == cut->torn ? cut->torn_count : entry->sectors;

		if (!is_missing(cut, i))
			memcpy(disk.bytes + (entry->lba + first) * SECTOR_SIZE,
			       record->bytes + entry->data + (size_t)first * SECTOR_SIZE,
			       (size_t)count * SECTOR_SIZE);
	}
}

void cut_print(const struct cut *cut, char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size, "%u", cut->position);

	for (uint32_t i = 0; i < cut->missing_count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%c%u", i == 0 ? '-' : ',',
					 cut->missing[i]);
	if (cut->torn != NOT_TORN && used < size)
		snprintf(text + used, size - used, "~%u:%u+%u", cut->torn, cut->torn_first,
			 cut->torn_count);
}

static uint32_t number(const char **text)
{
	char *end;
	uint32_t value = (uint32_t)strtoul(*text, &end, 10);

	*text = end;
	return value;
}

const char *cut_parse(struct cut *cut, const char *text)
{
	*cut = (struct cut){ .torn = NOT_TORN };
	cut->position = number(&text);
	if (*text == '-')
		do {
			text++;
			miss(cut, number(&text));
		} while (*text == ',');
	if (*text == '~') {
		text++;
		cut->torn = number(&text);
		text += *text == ':';
		cut->torn_first = number(&text);
		text += *text == '+';
		cut->torn_count = number(&text);
	}
	return text;
}
