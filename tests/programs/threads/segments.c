/* Memory that processes share by a key or by a name: System V's segments, and files in /dev/shm. */
#include "threads.h"

#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>

#define LENGTH 10000

static long attachments(int id)
{
	struct shmid_ds state;

	return shmctl(id, IPC_STAT, &state) == 0 ? (long)state.shm_nattch : -errno;
}

static long error_of(long result)
{
	return result == -1 ? errno : 0;
}

/* Two processes find a segment by its key. It is gone with its last attachment. */
void part_systemv(void)
{
	int id = shmget(key, LENGTH, IPC_CREAT | IPC_EXCL | 0600);
	struct shmid_ds state;

	say("again", error_of(shmget(key, LENGTH, IPC_CREAT | IPC_EXCL | 0600)));
	say("the same", shmget(key, 0, 0) == id);
	say("too large", error_of(shmget(key, LENGTH + 1, 0)));
	say("another key", error_of(shmget(key + 1, LENGTH, 0)));
	say("of no size", error_of(shmget(key + 1, 0, IPC_CREAT)));
	say("before", attachments(id));
	char *memory = shmat(id, NULL, 0);
	pid_t child = fork();

	if (child == 0) {
		char *other = shmat(shmget(key, LENGTH, 0), NULL, 0);

		other[LENGTH - 1] = memory[0] + 5;
		_exit(attachments(id));
	}
	memory[0] = 1;
	say("attachments", end_of(child));
	say("written by the child", memory[LENGTH - 1] == 5 || memory[LENGTH - 1] == 6);
	say("now", attachments(id));
	shmctl(id, IPC_STAT, &state);
	say("size", state.shm_segsz);
	say("mode", state.shm_perm.mode);
	say("by me", state.shm_cpid == getpid());
	say("last by the child", state.shm_lpid == child);
	state.shm_perm.mode = 0640;
	say("set", error_of(shmctl(id, IPC_SET, &state)));
	say("remove", error_of(shmctl(id, IPC_RMID, NULL)));
	shmctl(id, IPC_STAT, &state);
	say("goes with the last", state.shm_perm.mode);
	say("key", error_of(shmget(key, 0, 0)));
	say("detach", error_of(shmdt(memory)));
	say("gone", error_of(shmctl(id, IPC_STAT, &state)));
	say("detached already", error_of(shmdt(memory)));
}

/* Where a segment may go. */
void part_attach(void)
{
	int id = shmget(IPC_PRIVATE, 3 * 4096, 0600);
	char *first = shmat(id, NULL, 0), *second = shmat(id, NULL, SHM_RDONLY);

	say("two places", first != second && first[5] == 0);
	first[5] = 7;
	say("one memory", second[5]);
	say("no command", error_of(shmctl(id, 77, NULL)));
	say("no segment", error_of((long)shmat(-1, NULL, 0)));
	say("in use", error_of((long)shmat(id, first, 0)));
	say("inside a page", error_of((long)shmat(id, first + 1, 0)));
	say("remap nowhere", error_of((long)shmat(id, NULL, SHM_REMAP)));
	say("writable", error_of(mprotect(second, 4096, PROT_READ | PROT_WRITE)));
	say("detach second", error_of(shmdt(second)));
	say("rounded", shmat(id, second + 9, SHM_RND) == second);
	say("the middle", error_of(munmap(second + 4096, 4096)));
	say("attachments", attachments(id));
	say("inside", error_of(shmdt(second + 4096)));
	say("both ends", error_of(shmdt(second)));
	say("attachments", attachments(id));
	say("over it", shmat(id, first, SHM_REMAP) == first);
	say("still there", first[5]);
	pid_t child = fork();

	if (child == 0)
		_exit(attachments(id) + 10 * (shmdt(first) == 0) + attachments(id));
	say("in a child", end_of(child));
	say("attachments", attachments(id));
	shmctl(id, IPC_RMID, NULL);
	shmdt(first);
	say("gone", attachments(id));
}

/* shm_open and sem_open: by a name. A run that was ended may have left them. */
void part_posix(void)
{
	sem_unlink("/threads");
	shm_unlink("/memory");
	sem_t *named = sem_open("/threads", O_CREAT | O_EXCL, 0600, 0);
	int file = shm_open("/memory", O_RDWR | O_CREAT | O_EXCL, 0600);
	struct stat state;

	say("truncate", error_of(ftruncate(file, LENGTH)));
	int *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	pid_t child = fork();

	if (child == 0) {
		int again = shm_open("/memory", O_RDWR, 0);
		int *other = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);

		other[2000] = 77;
		sem_post(sem_open("/threads", 0));
		_exit(pwrite(again, "abcd", 4, 0));
	}
	sem_wait(named);
	say("seen", memory[2000]);
	say("child", end_of(child));
	say("written", memory[0]);
	fstat(file, &state);
	say("size", state.st_size);
	say("unlink", error_of(shm_unlink("/memory")));
	say("no name", error_of(shm_open("/memory", O_RDWR, 0)));
	say("still seen", memory[2000]);
	close(file);
	munmap(memory, LENGTH);
	sem_close(named);
	say("unlink", error_of(sem_unlink("/threads")));
}
