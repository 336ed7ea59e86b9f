/*
 * Reservation: the page cache reserves blocks for a program now, and allocates them later. For all
 * others they are not free (ext_options.reserved). It must find them then, so only blocks count of
 * groups whose bitmaps were looked at, from the first one on:
 *
 *	group		0	1	2	3	room for 1500 is asked:
 *	free		900	800	1000	1000	1 is damaged, so 2 is
 *	looked at	yes	bad	yes	no	looked at; 1900 in all
 */
#include "fs/ext/allocation.h"

/* What is free in the next group counts from now on, unless its bitmap is damaged. One that was
 * never written is made. */
static int look_at_next(struct ext_fs *fs)
{
	struct ext_bitmap bitmap;
	int error = ext_bitmap_get_free(fs, fs->looked_at, &bitmap);

	bcache_put(bitmap.buffer);
	ext_bitmap_note_unreadable(fs, fs->looked_at, EXT_BITMAP_BLOCKS, error);
	if (!error)
		fs->sure += bitmap.free;
	else if (!ext_is_left_alone(fs, fs->looked_at))
		return error;
	fs->looked_at++;
	return 0;
}

int ext_room(struct ext_fs *fs, uint64_t wanted, uint64_t *room)
{
	int error = 0;

	while (fs->sure < wanted && fs->looked_at < fs->summary.groups && !error) {
		error = ext_begin(fs, EXT_CREDITS);
		if (!error)
			error = ext_end(fs, look_at_next(fs));
	}
	*room = ext_sure_blocks(fs);
	return error;
}
