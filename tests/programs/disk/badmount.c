/* mount and umount2 with pointers that are not the program's: each answer in a line. */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL	((void *)0xc0100000)
#define NOTHING ((void *)16)

int main(void)
{
	void *const bad[] = { KERNEL, NOTHING };

	for (unsigned i = 0; i < 2; i++) {
		void *words[] = { "/dev/hdb", "/mnt", "ext4", 0, "errors=continue" };

		for (unsigned j = 0; j < 5; j++) {
			void *kept = words[j];

			if (j == 3) /* the flags */
				continue;
			words[j] = bad[i];
			long result = syscall(SYS_mount, words[0], words[1], words[2], 0, words[4]);

			printf("%u %d\n", j, result == 0 ? 0 : errno);
			if (result == 0)
				syscall(SYS_umount2, "/mnt", 0);
			words[j] = kept;
		}
		printf("umount %d\n", syscall(SYS_umount2, bad[i], 0) == 0 ? 0 : errno);
	}
	return 0;
}
