/*
 * most: the most memory that a program has had (getrusage) is told, whatever took pages away
 * meanwhile. The same on Linux.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (16u << 20)
#define WAYS 6u

static char *map(void)
{
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long most(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* A child cuts the file that is mapped. */
static void by_a_cut(char *memory, int file)
{
	int status;
	pid_t child;

	munmap(memory, SIZE);
	ftruncate(file, SIZE);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	memset(memory, 1, SIZE);
	child = fork();
	if (child == 0)
		_exit(ftruncate(file, 0));
	waitpid(child, &status, 0);
}

static void by_another_mapping(char *memory, int file)
{
	mmap(memory, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void by_a_move(char *memory, int file)
{
	char *other = map();

	mremap(other, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, memory);
}

static void by_advice(char *memory, int file)
{
	madvise(memory, SIZE, MADV_DONTNEED);
}

static void by_a_segment(char *memory, int file)
{
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);

	shmat(id, memory, SHM_REMAP);
	shmctl(id, IPC_RMID, NULL);
}

static void by_detaching(char *memory, int file)
{
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
	char *segment = shmat(id, NULL, 0);

	munmap(memory, SIZE);
	memset(segment, 1, SIZE);
	shmdt(segment);
	shmctl(id, IPC_RMID, NULL);
}

/* Whatever takes pages away, the most that there were is known. */
int main(void)
{
	static void (*const ways[WAYS])(char *,
					int) = { by_a_cut,  by_another_mapping, by_a_move,
						 by_advice, by_a_segment,	by_detaching };
	int file = open("/tmp/most", O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (unsigned i = 0; i < WAYS; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			char *memory = map();
			long before = most();

			memset(memory, 1, SIZE);
			ways[i](memory, file);
			_exit(most() - before < 15360);
		}
		waitpid(child, &status, 0);
		printf("%sok %u the most memory, before it was taken away\n",
		       status == 0 ? "" : "not ", i + 1);
	}
	unlink("/tmp/most");
	printf("1..%u\n", WAYS);
	return 0;
}
