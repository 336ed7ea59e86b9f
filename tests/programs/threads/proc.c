/* What /proc says of a program's tasks and memory. */
#include "threads.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>

#define PAGES 16

/* The number after a word at the start of a line of a file; -1: there is none. */
static long number_in(const char *path, const char *word)
{
	char line[512];
	long number = -1;
	FILE *file = fopen(path, "r");

	while (file && number < 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0)
			number = atol(line + strlen(word));
	if (file)
		fclose(file);
	return number;
}

/* The line of maps that an address is in, or the number of a word below that line in smaps. */
static long look_up(const void *address, const char *word, char *name)
{
	char line[512];
	unsigned start, end;
	bool is_inside = false;
	long number = -1;
	FILE *file = fopen("/proc/self/smaps", "r");

	while (file && number < 0 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%x-%x %*s", &start, &end) == 2 && line[8] == '-') {
			is_inside = start <= (uintptr_t)address && (uintptr_t)address < end;
			if (is_inside && sscanf(line, "%*s %*s %*s %*s %*s %[^\n]", name) != 1)
				*name = '\0';
		} else if (is_inside && strncmp(line, word, strlen(word)) == 0) {
			number = atol(line + strlen(word));
		}
	}
	if (file)
		fclose(file);
	return number;
}

static void tell(const char *what, const void *address)
{
	static const char *const words[] = { "Size:", "Rss:", "Anonymous:", "Private_Dirty:" };
	char name[512] = "";

	for (int i = 0; i < 4; i++) {
		long number = look_up(address, words[i], name);

		if (i == 0)
			printf("%s: %s\n", what, name);
		if (what[0] != '[')
			say(words[i], number);
	}
}

static void *look_at_status(void *unused)
{
	say("Threads", number_in("/proc/self/status", "Threads:"));
	say("one Tgid", number_in("/proc/self/status", "Tgid:") == getpid());
	say("one Pid", number_in("/proc/self/status", "Pid:") == getpid());
	say("rights", number_in("/proc/self/status", "NoNewPrivs:") ==
			  prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	if (fork() == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		say("rights", number_in("/proc/self/status", "NoNewPrivs:"));
		_exit(0);
	}
	wait(NULL);
	return NULL;
}

/* How many names a directory has besides "." and ".."; -1: it is none. */
static long names_in(const char *path)
{
	DIR *directory = opendir(path);
	long count = -2;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return directory ? count : -1;
}

static void *in_folder(void *other)
{
	char path[64], name[32], text[32] = "";
	int id = syscall(SYS_gettid), length;
	struct stat one, two;

	say("tasks", names_in("/proc/self/task"));
	pthread_setname_np(pthread_self(), "worker");
	snprintf(path, sizeof(path), "/proc/self/task/%d", id);
	chdir(path);
	FILE *file = fopen("comm", "r");

	fgets(text, sizeof(text), file);
	fclose(file);
	printf("comm: %s", text);
	say("of the program", number_in("status", "Tgid:") == getpid());
	say("its own", number_in("status", "Pid:") == id);
	say("threads", number_in("status", "Threads:"));
	say("no further", access("task", F_OK) ? errno : 0);
	say("above", number_in("../../status", "Pid:") == getpid());
	say("of others", access("../1", F_OK) ? errno : 0);
	say("descriptors", names_in("fd") == names_in("/proc/self/fd"));
	length = snprintf(name, sizeof(name), "/proc/%d/task/%d", getpid(), id);
	say("where", strncmp(getcwd(path, sizeof(path)), name, length + 1));
	snprintf(path, sizeof(path), "/proc/%d", id);
	say("another directory",
	    stat(".", &one) == 0 && stat(path, &two) == 0 && one.st_ino != two.st_ino);
	chdir("/");
	return NULL;
}

static void threads_as_folders(void)
{
	sem_t never;

	sem_init(&never, 0, 0);
	pthread_t thread = start(sleep_for_ever, &never);

	pthread_join(start(in_folder, NULL), NULL);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	for (int i = 0; i < 100 && names_in("/proc/self/task") > 1; i++)
		rest(10); /* on Linux a thread has its folder a moment longer */
	say("alone", names_in("/proc/self/task"));
}

/* A descriptor's link, and what fdinfo says. */
static void descriptor(const char *what, int file)
{
	char path[64], line[64];
	struct stat state;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	lstat(path, &state);
	printf("%s %o %d\n", what, state.st_mode, (int)state.st_size);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	say("mode", stat(path, &state) == 0 ? state.st_mode : -errno);
	FILE *info = fopen(path, "r");

	while (info && fgets(line, sizeof(line), info))
		if (strncmp(line, "pos:", 4) == 0 || strncmp(line, "flags:", 6) == 0)
			printf("%s", line);
	if (info)
		fclose(info);
}

static void descriptors(void)
{
	int both = open("/tmp/threads.fdinfo", O_RDWR | O_CREAT | O_APPEND, 0600), pair[2];
	int one = open("/tmp/threads.fdinfo", O_WRONLY | O_CLOEXEC);

	lseek(both, 12345678901, SEEK_SET);
	(void)!pipe2(pair, O_NONBLOCK);
	descriptor("both", both);
	descriptor("written", one);
	descriptor("read", pair[0]);
	descriptor("place", open("/tmp", O_PATH));
	say("closed", open("/proc/self/fdinfo/999", O_RDONLY) < 0 ? errno : 0);
	unlink("/tmp/threads.fdinfo");
	close(both);
	close(one);
	close(pair[0]);
	close(pair[1]);
}

static long position_in(int info)
{
	char text[256] = "";

	if (pread(info, text, sizeof(text) - 1, 0) <= 0)
		return -errno;
	return atol(text + strlen("pos:\t"));
}

/* A text is made when it is read, and again for a reader that begins again. */
static void texts(void)
{
	int file = open("/tmp", O_RDONLY | O_DIRECTORY), of_child;
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	int info = open(path, O_RDONLY);

	say("at first", position_in(info));
	close(file);
	file = open("/tmp/threads.texts", O_RDWR | O_CREAT, 0600);
	lseek(file, 1234, SEEK_SET);
	say("later", position_in(info));
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	of_child = open(path, O_RDONLY);
	waitpid(child, NULL, 0);
	say("ended", read(of_child, &byte, 1) < 0 ? errno : 0);
	unlink("/tmp/threads.texts");
	close(file);
	close(info);
	close(of_child);
}

/* Two files are one only if their numbers are. */
static void numbers_of_inodes(void)
{
	enum { CHILDREN = 3, DESCRIPTORS = 60, FILES_MOST = 1000 };
	static const char *const folders[] = { "", "fd/", "fdinfo/" };
	static ino_t seen[FILES_MOST];
	int zero = open("/dev/zero", O_RDONLY), count = 0, same = 0;
	pid_t children[CHILDREN];
	struct stat state;
	char path[400];

	for (int i = 0; i < DESCRIPTORS; i++)
		dup2(zero, zero + 1 + i);
	for (int i = 0; i < CHILDREN; i++)
		if ((children[i] = fork()) == 0)
			pause();
	for (int i = 0; i < 3 * CHILDREN; i++) {
		int length = sprintf(path, "/proc/%d/%s", children[i / 3], folders[i % 3]);
		DIR *folder = opendir(path);
		struct dirent *entry;

		while (folder && count < FILES_MOST && (entry = readdir(folder))) {
			snprintf(path + length, sizeof(path) - length, "%s", entry->d_name);
			if (entry->d_name[0] == '.' || lstat(path, &state) != 0)
				continue;
			for (int j = 0; j < count; j++)
				same += seen[j] == state.st_ino;
			seen[count++] = state.st_ino;
		}
		closedir(folder);
	}
	say("as many", count > 2 * CHILDREN * DESCRIPTORS && count < FILES_MOST);
	say("the same number", same);
	for (int i = 0; i < CHILDREN; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	for (int i = 0; i <= DESCRIPTORS; i++)
		close(zero + i);
}

void part_proc(void)
{
	int local = 0, id = shmget(IPC_PRIVATE, 4096, 0600);
	int file = open("/tmp/threads.mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *memory =
	    mmap(NULL, (PAGES + 2) * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *heap = sbrk(4096);

	memory += 4096;
	pthread_join(start(look_at_status, NULL), NULL);
	mprotect(memory, PAGES * 4096, PROT_READ | PROT_WRITE);
	for (int i = 0; i < 5; i++)
		memory[i * 2 * 4096] = 1;
	tell("private memory", memory);
	if (ftruncate(file, PAGES * 4096) != 0)
		say("ftruncate", errno);
	char *mapped = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	mapped[0] = mapped[8192] = 1;
	tell("a file", mapped);
	munmap(mapped, PAGES * 4096);
	mapped = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	mapped[0] = 1;
	tell("a file, private", mapped);
	unlink("/tmp/threads.mapped");
	close(file);
	munmap(mapped, PAGES * 4096);
	heap[0] = 1;
	tell("[heap]", heap);
	tell("[stack]", &local);
	tell("[shared]", mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	tell("[segment]", shmat(id, NULL, 0));
	shmctl(id, IPC_RMID, NULL);
	say("statm", number_in("/proc/self/statm", "") > 0);
	threads_as_folders();
	numbers_of_inodes();
	descriptors();
	texts();
}
