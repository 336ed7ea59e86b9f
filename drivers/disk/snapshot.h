/*
 * Writable snapshots of drives: a device dm-0 that has what another drive, its origin, had at the
 * time when the snapshot was made. Both may be written, and neither sees what the other one writes.
 *
 * What differs is in chunks on a third device, the store (drivers/disk/snapshot_store.c). When it
 * is full, or fails, the snapshot is invalid from then on: each of its requests gets EIO, and the
 * origin goes on. Tasks, and start-up.
 */
#pragma once

#include "drivers/disk/snapshot_store.h"

#define SNAPSHOTS 2u /* at a time: each needs two of four drives */

/*
 * Makes a snapshot of a drive, or goes on with the one that is on the store. `chunk` in sectors, 0:
 * SNAPSHOT_CHUNK, or what the store says. Without is_persistent the table is in memory only. The
 * store's contents are lost, unless it has a table, and is_persistent.
 *
 * Errors, said on the console: -EINVAL for devices and chunks that cannot be used, -EBUSY when one
 * of the devices has to do with a snapshot already, or all places are taken, -ENOSPC when the store
 * is too small, -EUCLEAN for a store that is damaged, belongs to another drive, or whose snapshot
 * is invalid, -ENOMEM, and those of the drives.
 */
int snapshot_create(struct block_device *origin, struct block_device *store, unsigned chunk,
		    bool is_persistent, struct snapshot **made);

/* Ends a snapshot; what only it has is lost, and the store is no longer one. Nobody may use its
 * device any more: from then on it gives ENXIO. */
void snapshot_remove(struct snapshot *snapshot);

/* The one in a place (below SNAPSHOTS), or NULL. */
struct snapshot *snapshot_at(unsigned place);
