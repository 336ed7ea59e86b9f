/*
 * largefork: forks a process of 200 MiB, and says how many TSC cycles that took, how many pages of
 * memory, and whether the child finds the same.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096u
#define PAGES (200u << 20 >> 12)

static uint64_t stamps(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static long free_pages(void)
{
	struct sysinfo info;

	sysinfo(&info);
	return info.freeram / PAGE * info.mem_unit;
}

/* Waits until the parent has looked; then every 100th page must be as it was. */
static void child(const int *go, const char *memory)
{
	char byte;
	int wrong = 0;

	(void)!read(go[0], &byte, 1);
	for (uint32_t page = 0; page < PAGES; page += 100)
		wrong += memory[page * PAGE] != (char)(page + 1);
	_exit(wrong > 99 ? 99 : wrong);
}

int main(void)
{
	char *memory =
	    mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int go[2], status = -1;

	if (memory == MAP_FAILED || pipe(go) != 0)
		return 1;
	for (uint32_t page = 0; page < PAGES; page++)
		memory[page * PAGE] = (char)(page + 1);
	long before = free_pages();
	uint64_t start = stamps();
	pid_t pid = fork();

	if (pid == 0)
		child(go, memory);
	uint64_t end = stamps();
	long after = free_pages();

	memory[0] = 77;
	(void)!write(go[1], "x", 1);
	waitpid(pid, &status, 0);
	printf("pages %u\nstamps %llu\ntaken %ld\nchild %d\n", PAGES, end - start, before - after,
	       status >> 8);
	return 0;
}
