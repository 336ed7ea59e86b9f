/* Pipes: how much goes into one, and that what is written at once stays together. */
#include "threads.h"

#include <sys/uio.h>

#define ONE	1000 /* a record is two pieces, together less than PIPE_BUF */
#define TWO	2000
#define WRITERS 3
#define RECORDS 200

static char bytes[1 << 16];

/* Vectors fill pages as one write of their bytes does. */
static void packed(void)
{
	static const unsigned pairs[][2] = { { 2717, 1841 }, { 1, 4095 }, { 4000, 4000 } };
	int ends[2];

	say("pipe", pipe2(ends, O_NONBLOCK));
	for (int i = 0; i < 3; i++) {
		struct iovec both[] = { { bytes, pairs[i][0] }, { bytes, pairs[i][1] } };

		say("write", write(ends[1], bytes, 4608));
		say("vectors", writev(ends[1], both, 2));
		say("read", read(ends[0], bytes, 4096));
		say("more", write(ends[1], bytes, 1000));
		say("fill", write(ends[1], bytes, sizeof(bytes)));
		say("read", read(ends[0], bytes, sizeof(bytes)));
	}
	struct iovec bad[] = { { bytes, 100 }, { (void *)16, 100 } };

	say("half of it", writev(ends[1], bad, 2));
	bad[0].iov_base = (void *)16;
	say("nothing", writev(ends[1], bad, 2) < 0 ? -errno : 0);
	say("read", read(ends[0], bytes, sizeof(bytes)));
	close(ends[0]);
	close(ends[1]);
}

static void write_records(int end, char name)
{
	char piece[TWO];
	struct iovec both[] = { { piece, ONE }, { piece, TWO } };

	memset(piece, name, TWO);
	for (int i = 0; i < RECORDS; i++)
		writev(end, both, 2);
	_exit(0);
}

/* Several processes write records of two pieces: no record is in another one. */
static void together(void)
{
	static char record[ONE + TWO];
	int ends[2], whole = 0, torn = 0;
	pid_t writers[WRITERS];

	say("pipe", pipe(ends));
	for (int i = 0; i < WRITERS; i++)
		if ((writers[i] = fork()) == 0)
			write_records(ends[1], 'a' + i);
	close(ends[1]);
	for (ssize_t got = 0, more;
	     (more = read(ends[0], record + got, sizeof(record) - got)) > 0;) {
		got += more;
		if (got < ONE + TWO)
			continue;
		got = 0;
		if (memcmp(record, record + 1, sizeof(record) - 1) == 0)
			whole++;
		else
			torn++;
	}
	for (int i = 0; i < WRITERS; i++)
		say("end", end_of(writers[i]));
	say("whole", whole);
	say("torn", torn);
	close(ends[0]);
}

void part_pipes(void)
{
	packed();
	together();
}
