/* Times as the disk has them: seconds since 1970, before it negative, and nanoseconds. */
#include "fs/ext/mount.h"
#include "kernel/lib/divide.h"

#define NANOSECONDS 1000000000

/* Divides a positive number: 2^31 seconds before 1970 is the earliest time there is. The 2^34
 * seconds from there on are less than 2^64 ns; that those after 2262 are negative numbers makes no
 * difference here. */
int64_t ext_seconds(int64_t time, uint32_t *nanoseconds)
{
	const uint64_t base = (uint64_t)1 << 31;

	return (int64_t)(divide64((uint64_t)time + base * NANOSECONDS, NANOSECONDS, nanoseconds) -
			 base);
}

/* For i_dtime, which has neither fractions nor a sign. */
uint32_t ext_now_seconds(const struct ext_fs *fs)
{
	uint32_t nanoseconds;

	return (uint32_t)ext_seconds(ext_now(fs), &nanoseconds);
}

int64_t ext_time_kept(const struct ext_inode *inode, int64_t time)
{
	uint32_t nanoseconds;

	if (!inode->whole_seconds)
		return time;
	return ext_seconds(time, &nanoseconds) > INT32_MAX ? INT32_MAX * (int64_t)NANOSECONDS
							   : time - nanoseconds;
}
