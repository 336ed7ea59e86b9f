/* Reading directories: getdents64 gives as many entries as fit. */
#include <dirent.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/libc/syscall.h"

#define ROOM 2048

struct directory {
	int descriptor;
	int position, length; /* bytes in the entries */
	char entries[ROOM] __attribute__((aligned(8)));
};

DIR *opendir(const char *path)
{
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (descriptor < 0)
		return NULL;
	DIR *directory = malloc(sizeof(*directory));

	if (!directory) {
		close(descriptor);
		return NULL;
	}
	directory->descriptor = descriptor;
	directory->position = directory->length = 0;
	return directory;
}

struct dirent *readdir(DIR *directory)
{
	if (directory->position == directory->length) {
		directory->position = 0;
		directory->length = result_of(_syscall3(SYS_getdents64, directory->descriptor,
							(long)directory->entries, ROOM));
		if (directory->length <= 0) {
			directory->length = 0;
			return NULL;
		}
	}
	struct dirent *entry = (struct dirent *)(directory->entries + directory->position);

	directory->position += entry->d_reclen;
	return entry;
}

int closedir(DIR *directory)
{
	int status = close(directory->descriptor);

	free(directory);
	return status;
}
