/* punch FILE OFFSET LENGTH: a hole in a file, whose size stays. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
	int file = count == 4 ? open(words[1], O_RDWR) : -1;

	if (file < 0 || fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, atoi(words[2]),
				  atoi(words[3])) < 0) {
		perror("punch FILE OFFSET LENGTH");
		return 1;
	}
	return 0;
}
