/* Files and memory that threads have in common. */
#include "threads.h"

/* ---- files and memory ---- */

static int ends[2];

static void *read_byte(void *unused)
{
	char byte = 0;

	sem_post(&done);
	return (void *)(intptr_t)(read(ends[0], &byte, 1) == 1 ? byte : -errno);
}

/* One thread closes what another one reads from. */
void part_close(void)
{
	pthread_t thread;
	void *result;

	sem_init(&done, 0, 0);
	if (pipe(ends) != 0)
		return;
	thread = start(read_byte, NULL);
	sem_wait(&done);
	rest(20);
	say("close", close(ends[0]));
	say("write", write(ends[1], "x", 1));
	pthread_join(thread, &result);
	say("read", (intptr_t)result);
	close(ends[1]);
	say("closed for all", read(ends[0], &result, 1) < 0 ? errno : 0);
}

static void *copy_in(void *unused)
{
	long sum = 0;

	for (int i = 0; i < 20; i++) {
		size_t length = 64 * 1024;
		char *room =
		    mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t at = 0; at < length;) {
			ssize_t moved = read(ends[0], room + at, length - at);

			if (moved <= 0)
				return (void *)-1;
			at += moved;
		}
		for (size_t at = 0; at < length; at++)
			sum += room[at];
		munmap(room, length);
	}
	return (void *)sum;
}

static void *copy_out(void *unused)
{
	char page[5000];

	memset(page, 1, sizeof(page));
	for (long left = 20 * 64 * 1024; left > 0;) {
		ssize_t moved = write(ends[1], page, left < 5000 ? left : 5000);

		if (moved <= 0)
			return (void *)-1;
		left -= moved;
	}
	return NULL;
}

/* Maps, unmaps and forks, while two others copy. */
void part_memory(void)
{
	pthread_t reader, writer;
	void *sum;
	long ended = 0;
	unsigned state = seed;

	if (pipe(ends) != 0)
		return;
	reader = start(copy_in, NULL);
	writer = start(copy_out, NULL);
	for (int i = 0; i < 20; i++) {
		char *room =
		    mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (int j = 0; j < 1 << 20; j += 16384)
			room[j] = next_random(&state);
		pid_t child = fork();

		if (child == 0) {
			room[0] = 3;
			_exit(room[0]);
		}
		munmap(room, 1 << 20);
		ended += end_of(child);
		dawdle(&state);
	}
	pthread_join(writer, NULL);
	pthread_join(reader, &sum);
	say("children", ended);
	say("bytes", (long)sum);
	close(ends[0]);
	close(ends[1]);
}
