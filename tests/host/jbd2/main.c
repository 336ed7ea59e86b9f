/*
 * The journal, on the host.
 *   jbd2_host property SEED SEEDS		random sessions, cut at every write (session.h)
 *   jbd2_host image IMAGE BLOCKSIZE WIDE CHECKSUMS	see commands.h
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/jbd2/commands.h"
#include "tests/host/jbd2/session.h"

#define SESSIONS      3 /* on one disk */
#define IMAGE_BUFFERS 256u

static struct session session;

static void property(uint64_t seed, uint64_t count)
{
	uint64_t states = 0, calls = 0, damaged = 0;

	for (uint64_t each = seed; each < seed + count; each++) {
		session_create(&session, each);
		disk.device.sectors = disk.limit = session.size / SECTOR_SIZE;
		for (int i = 0; i < SESSIONS; i++) {
			session_run(&session);
			calls += session.calls;
			states += try_cuts(&session, each);
			damaged += try_damage(&session, each);
		}
		free(session.base);
	}
	printf("sessions %ju calls %ju states %ju damaged %ju\n", count * SESSIONS, calls, states,
	       damaged);
}

int main(int count, char **arguments)
{
	if (count < 2)
		fail("usage: see tests/host/jbd2/main.c");
	disk.device.name = "hdc";
	disk.mode = DISK_PRIVATE;
	disk.bad_sector = NO_SECTOR;
	disk.budget = UINT64_MAX;
	console_on = strcmp(arguments[1], "image") == 0;
	bcache_init(console_on ? IMAGE_BUFFERS : BUFFERS);
	if (count == 4 && strcmp(arguments[1], "property") == 0)
		property(strtoull(arguments[2], NULL, 0), strtoull(arguments[3], NULL, 0));
	else if (count == 6 && strcmp(arguments[1], "image") == 0)
		work_on_image(arguments[2], (uint32_t)strtoul(arguments[3], NULL, 0),
			      arguments[4][0] == '1', arguments[5][0] == '1');
	else
		fail("unknown arguments");
	return 0;
}
