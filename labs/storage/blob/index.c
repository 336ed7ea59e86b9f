/*
 * The blob store's index: where the last record of each key is, by open addressing in a table that
 * is at most half full. A deleted key keeps its slot until the table grows.
 *
 * It can be saved to a file of its own. The log is the truth: a saved index says up to which record
 * it goes, and the walk goes on from there. It fits only the log it was made from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "labs/storage/blob/inside.h"

#define INDEX_MAGIC 0x78646e69u
#define SLOTS_FIRST 1024u

struct index_head {
	uint32_t magic, crc;
	uint64_t generation, tail, session, count;
};

static uint32_t slot_of(const struct blob_store *store, uint64_t key)
{
	uint32_t at = (key * 0x9e3779b97f4a7c15u) >> 32;

	for (;; at++) {
		const struct entry *entry = &store->slots[at &= store->slot_count - 1];

		if (entry->offset == 0 || entry->key == key)
			return at;
	}
}

int blob_grow(struct blob_store *store)
{
	struct entry *old = store->slots;
	uint32_t count = store->slot_count, room = count ? 2 * count : SLOTS_FIRST;

	if (2 * store->taken < count)
		return 0;
	store->slots = calloc(room, sizeof(*store->slots));
	if (!store->slots) {
		store->slots = old;
		return -ENOMEM;
	}
	store->slot_count = room;
	store->taken = 0;
	for (uint32_t i = 0; i < count; i++)
		if (old[i].offset && old[i].length != GONE) {
			store->slots[slot_of(store, old[i].key)] = old[i];
			store->taken++;
		}
	free(old);
	return 0;
}

struct entry *blob_find(const struct blob_store *store, uint64_t key)
{
	struct entry *entry = &store->slots[slot_of(store, key)];

	return entry->offset && entry->length != GONE ? entry : NULL;
}

int blob_set_entry(struct blob_store *store, uint64_t key, uint64_t offset, uint32_t length)
{
	if (blob_grow(store) < 0)
		return -ENOMEM;
	struct entry *entry = &store->slots[slot_of(store, key)];

	if (entry->offset == 0)
		store->taken++;
	else if (entry->length != GONE) {
		store->figures.objects--;
		store->figures.live_bytes -= record_bytes(entry->length);
	}
	if (length != GONE) {
		store->figures.objects++;
		store->figures.live_bytes += record_bytes(length);
	}
	*entry = (struct entry){ .key = key, .offset = offset, .length = length };
	return 0;
}

void blob_load_index(struct blob_store *store, struct blob_device *index)
{
	ALIGNED uint8_t sector[BLOB_SECTOR];
	struct index_head head;

	if (index->size < BLOB_SECTOR || index->read(index, 0, sector, BLOB_SECTOR) != 0)
		return;
	memcpy(&head, sector, sizeof(head));
	uint64_t bytes = in_sectors(head.count * sizeof(struct entry));

	if (head.magic != INDEX_MAGIC || head.generation != store->super.generation ||
	    head.session > store->super.session || head.count > UINT32_MAX / sizeof(struct entry) ||
	    BLOB_SECTOR + bytes > index->size || head.tail > area_end(store))
		return;
	struct entry *entries = NULL;
	uint32_t crc = head.crc;

	if (posix_memalign((void **)&entries, SUPER_STEP, bytes + BLOB_SECTOR) != 0)
		entries = NULL;

	head.crc = 0;
	if (entries && (bytes == 0 || index->read(index, BLOB_SECTOR, entries, bytes) == 0) &&
	    crc == blob_crc32c(blob_crc32c(0, &head, sizeof(head)), entries, bytes)) {
		for (uint64_t i = 0; i < head.count; i++)
			blob_set_entry(store, entries[i].key, entries[i].offset, entries[i].length);
		store->tail = head.tail;
		store->last_session = head.session;
	}
	free(entries);
}

int blob_save(struct blob_store *store, struct blob_device *index)
{
	struct index_head head = { INDEX_MAGIC,
				   0,
				   store->super.generation,
				   store->tail,
				   store->super.session,
				   store->figures.objects };
	uint64_t bytes = in_sectors(head.count * sizeof(struct entry));
	uint8_t *data = NULL;

	if (posix_memalign((void **)&data, SUPER_STEP, BLOB_SECTOR + bytes) != 0)
		data = NULL;
	else
		memset(data, 0, BLOB_SECTOR + bytes);
	struct entry *entry = data ? (struct entry *)(data + BLOB_SECTOR) : NULL;
	int error = data ? store->device->sync(store->device) : -ENOMEM;

	for (uint32_t i = 0; data && i < store->slot_count; i++)
		if (store->slots[i].offset && store->slots[i].length != GONE)
			*entry++ = store->slots[i];
	if (!error) {
		head.crc =
		    blob_crc32c(blob_crc32c(0, &head, sizeof(head)), data + BLOB_SECTOR, bytes);
		memcpy(data, &head, sizeof(head));
		error = index->write(index, 0, data, BLOB_SECTOR + bytes);
	}
	free(data);
	return error ? error : index->sync(index);
}
