/*
 * Errors of write-back: nobody waits when they occur, so they are told later. Of a file, or of a
 * whole mount. As with Linux's errseq each open file is told a given error once; and one that
 * nobody has been told yet is told to a file that is opened later, too, because who wrote may have
 * closed the file long ago. Nothing here sleeps.
 *
 *	write, close, EIO	open, fsync: EIO	fsync: 0	open, fsync: 0
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct write_errors {
	uint32_t count;	 /* so far */
	int last;	 /* a negated errno */
	bool is_unknown; /* the last one was told to nobody */
};

static inline void errors_note(struct write_errors *errors, int error)
{
	errors->count++;
	errors->last = error;
	errors->is_unknown = true;
}

/* How many a file that is opened now needs not be told. */
static inline uint32_t errors_sample(const struct write_errors *errors)
{
	return errors->count - errors->is_unknown;
}

/* The last error if it came after the first *seen, which becomes all of them; else 0. */
static inline int errors_tell(struct write_errors *errors, uint32_t *seen)
{
	if (*seen == errors->count)
		return 0;
	*seen = errors->count;
	errors->is_unknown = false;
	return errors->last;
}
