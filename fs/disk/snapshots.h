/* Snapshots of drives, made by a line of text: "hdb hdc" (drivers/disk/snapshot.h). */
#pragma once

/*
 * Does what one line says:
 *
 *	ORIGIN STORE [P|N [CHUNK]]	makes a snapshot, persistent or not, with chunks of CHUNK
 *					sectors; everything that is dirty is written before
 *	remove dm-0			ends it
 *
 * -EINVAL for other lines, -ENODEV for a drive that is not there, -EBUSY for a store that is
 * mounted and for a snapshot that is in use, and what snapshot_create returns; each is said on the
 * console. May sleep.
 */
int snapshots_do(const char *line);
