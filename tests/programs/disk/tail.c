/* tail FILE STEP...: what becomes of a file's last page, step by step:
 *	w OFFSET LENGTH		write
 *	d OFFSET LENGTH		write past the cache
 *	m OFFSET LENGTH		write by an area that was mapped at the first m
 *	t SIZE			truncate
 *	b			sync, and say how many blocks of 512 bytes the file has */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 65536

int main(int count, char **words)
{
	static char data[MOST] __attribute__((aligned(4096)));
	int file = count > 1 ? open(words[1], O_RDWR | O_CREAT, 0644) : -1, error = file < 0;
	char *area = NULL;
	struct stat status;

	memset(data, 'x', MOST);
	for (int i = 2; i < count && !error; i++) {
		char step = words[i][0];

		if (step == 'w' && (i += 2) < count)
			error |= pwrite(file, data, atoi(words[i]), atoi(words[i - 1])) < 0;
		else if (step == 'd' && (i += 2) < count) {
			int direct = open(words[1], O_WRONLY | O_DIRECT);

			error |= pwrite(direct, data, atoi(words[i]), atoi(words[i - 1])) < 0;
			close(direct);
		} else if (step == 'm' && (i += 2) < count) {
			if (!area)
				area = mmap(NULL, MOST, PROT_WRITE, MAP_SHARED, file, 0);
			memset(area + atoi(words[i - 1]), 'm', atoi(words[i]));
		} else if (step == 't' && ++i < count)
			error |= ftruncate(file, atoi(words[i]));
		else if (step == 'b') {
			error |= fsync(file) || fstat(file, &status);
			printf("%s %lld\n", words[1], (long long)status.st_blocks);
		}
	}
	if (error)
		perror(words[1]);
	return error;
}
