/*
 * eater: takes all of something, in a child, and says how that ended.
 *
 *	eater memory	touches page after page
 *	eater forks	each process makes two more
 *	eater maps	maps every second page, until there is no area left
 *	eater mappings	maps 64 MiB at a time, and touches one page of each, until there is no room
 *	eater recursion	calls itself without an end
 *	eater families	forks with much memory, and all write to it
 *	eater vfork	touches page after page in a child of vfork
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static char *map(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void eat_memory(void)
{
	for (;;) {
		char *memory = map(1 << 20);

		if (memory == MAP_FAILED)
			_exit(3);
		for (unsigned at = 0; at < 1 << 20; at += PAGE)
			memory[at] = 1;
	}
}

static void eat_forks(void)
{
	int made = 0;

	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (child == 0)
			i = -1; /* from the beginning */
		else if (child > 0)
			made++;
		else
			usleep(1000);
	}
	while (wait(NULL) > 0)
		;
	_exit(made);
}

static void eat_in_vfork(void)
{
	if (vfork() == 0)
		eat_memory();
	_exit(7);
}

static void eat_maps(void)
{
	unsigned areas = 0;
	char *memory = mmap(NULL, 1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (areas < 1u << 17 && mprotect(memory + areas * 2 * PAGE, PAGE, PROT_READ) == 0)
		areas++;
	_exit(areas > 1000 ? 4 : 5);
}

static void eat_mappings(void)
{
	unsigned count = 0;

	for (char *memory; (memory = map(64 << 20)) != MAP_FAILED; count++)
		memory[1 << 20] = 1;
	_exit(count > 40 ? 4 : 5);
}

static __attribute__((noinline)) int deeper(volatile char *above)
{
	volatile char room[500];

	room[0] = above[0];
	return deeper(room) + room[0];
}

static void eat_stack(void)
{
	char room = 1;

	_exit(deeper(&room));
}

static void eat_families(void)
{
	char *memory = map(8 << 20);

	memset(memory, 1, 8 << 20);
	for (int i = 0; i < 6; i++)
		fork();
	memset(memory, 2, 8 << 20);
	while (wait(NULL) > 0)
		;
	_exit(6);
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	int status;
	pid_t child = fork();

	if (child == 0) {
		setpgid(0, 0);
		alarm(20);
		if (strcmp(what, "memory") == 0)
			eat_memory();
		else if (strcmp(what, "forks") == 0)
			eat_forks();
		else if (strcmp(what, "maps") == 0)
			eat_maps();
		else if (strcmp(what, "mappings") == 0)
			eat_mappings();
		else if (strcmp(what, "recursion") == 0)
			eat_stack();
		else if (strcmp(what, "families") == 0)
			eat_families();
		else if (strcmp(what, "vfork") == 0)
			eat_in_vfork();
		_exit(1);
	}
	waitpid(child, &status, 0);
	kill(-child, 9);
	printf("eater %s: %s %d\n", what, WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return 0;
}
