/*
 * memory: what Linux promises about a program's memory, one line a promise. The same program on
 * Linux and on our kernel; both must print "ok" only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static int number;
static sigjmp_buf back;
static siginfo_t last;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	(void)signal;
	last = *info;
	siglongjmp(back, 1);
}

/* The signal that an access gets, or 0. */
static int touch(volatile char *address, int write)
{
	if (sigsetjmp(back, 1))
		return last.si_signo;
	if (write)
		*address = 7;
	else
		(void)*address;
	return 0;
}

static int faults(volatile char *address, int write, int signal, int code)
{
	return touch(address, write) == signal && last.si_code == code &&
	       last.si_addr == (void *)address;
}

static char *map(size_t pages, int protection)
{
	return mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int status_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

/* ---- mappings ---- */

static void test_mappings(void)
{
	char *memory = map(8, PROT_READ | PROT_WRITE);

	ok(memory[0] == 0 && memory[8 * PAGE - 1] == 0, "memory is zero");
	memset(memory, 1, 8 * PAGE);
	ok(munmap(memory + 3 * PAGE, PAGE) == 0, "a hole in the middle");
	ok(faults(memory + 3 * PAGE + 5, 0, SIGSEGV, SEGV_MAPERR), "the hole faults: MAPERR");
	ok(memory[3 * PAGE - 1] == 1 && memory[4 * PAGE] == 1, "what is beside the hole stays");
	ok(mprotect(memory, 3 * PAGE, PROT_READ) == 0 && touch(memory, 0) == 0,
	   "read-only can be read");
	ok(faults(memory + PAGE, 1, SIGSEGV, SEGV_ACCERR), "and not written: ACCERR");
	ok(mprotect(memory, PAGE, PROT_NONE) == 0 && faults(memory, 0, SIGSEGV, SEGV_ACCERR),
	   "PROT_NONE cannot be read");
	ok(mprotect(memory, PAGE, PROT_READ | PROT_WRITE) == 0 && memory[1] == 1 &&
	       touch(memory, 1) == 0,
	   "and comes back as it was");
	errno = 0;
	ok(mprotect(memory + 2 * PAGE, 3 * PAGE, PROT_NONE) == -1 && errno == ENOMEM &&
	       touch(memory + 2 * PAGE, 0) == SIGSEGV,
	   "mprotect over a hole: ENOMEM, and the part before it is done");
	ok(munmap(memory, 8 * PAGE) == 0 && munmap(memory, 8 * PAGE) == 0,
	   "munmap over holes, and of nothing");
	ok(munmap(memory + 1, PAGE) == -1 && errno == EINVAL, "munmap inside a page");
	ok(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	       errno == EINVAL,
	   "a length of 0");
	ok(mmap(NULL, 0xc0000000u, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	       errno == ENOMEM,
	   "more than there are addresses");
	char *large = map(0x10000, PROT_READ | PROT_WRITE);

	ok(large != MAP_FAILED && touch(large + 0x7000000, 1) == 0,
	   "256 MiB, one page of them touched");
	munmap(large, 0x10000 * PAGE);
}

static void test_moves(void)
{
	char *memory = map(4, PROT_READ | PROT_WRITE);

	for (unsigned i = 0; i < 4; i++)
		memory[i * PAGE] = i + 1;
	char *more = mremap(memory, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);

	ok(more != MAP_FAILED && more[3 * PAGE] == 4 && more[4 * PAGE] == 0, "mremap to more");
	ok(mremap(more, 64 * PAGE, 2 * PAGE, 0) == more && touch(more + 2 * PAGE, 0) == SIGSEGV,
	   "mremap to less");
	more[PAGE] = 9;
	ok(madvise(more, 2 * PAGE, MADV_DONTNEED) == 0 && more[PAGE] == 0, "DONTNEED makes zeros");
	munmap(more, 2 * PAGE);
	char *start = sbrk(0);

	ok(sbrk(3 * PAGE) == start && start[3 * PAGE - 1] == 0, "the heap grows");
	memset(start, 5, 3 * PAGE);
	sbrk(-2 * (int)PAGE - 10);
	sbrk(2 * PAGE + 10);
	ok(start[PAGE - 11] == 5 && start[PAGE] == 0 && start[3 * PAGE - 1] == 0,
	   "and is zero where it was given back");
	sbrk(-3 * (int)PAGE);
}

/* As the kernel is called: the libraries' mmap does not take an offset with zeros. */
static void test_offsets(void)
{
	char *memory = (char *)syscall(SYS_mmap2, 0, PAGE, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 5);
	int file = open("/proc/self/exe", O_RDONLY);

	ok(memory != MAP_FAILED && touch(memory, 1) == 0, "zeros have no offset");
	munmap(memory, PAGE);
	errno = 0;
	ok(syscall(SYS_mmap2, 0, 2 * PAGE, PROT_READ, MAP_PRIVATE, file, 0xffffffff) == -1 &&
	       errno == EOVERFLOW,
	   "an offset that wraps: EOVERFLOW");
	close(file);
	errno = 0;
	ok(madvise(map(1, PROT_READ), PAGE, 99) == -1 && errno == EINVAL, "advice that is none");
}

/* ---- copies ---- */

static void test_copies(void)
{
	char *memory = map(64, PROT_READ | PROT_WRITE), *shared;
	int pipes[2];

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(memory, 1, 32 * PAGE);
	pid_t child = fork();

	if (child == 0) {
		int good = memory[0] == 1 && memory[40 * PAGE] == 0;

		memory[0] = 2;
		memory[40 * PAGE] = 2;
		shared[0] = 3;
		pid_t grandchild = fork();

		if (grandchild == 0) {
			good &= memory[0] == 2;
			memory[0] = 4;
			_exit(good);
		}
		good &= status_of(grandchild) == 1 << 8 && memory[0] == 2;
		_exit(good);
	}
	memory[PAGE] = 8;
	ok(status_of(child) == 1 << 8, "three generations, each with its own");
	ok(memory[0] == 1 && memory[40 * PAGE] == 0 && memory[PAGE] == 8, "the first is as it was");
	ok(shared[0] == 3, "shared memory is shared");
	child = fork();
	if (child == 0)
		_exit(mprotect(memory, PAGE, PROT_READ) == 0 &&
		      mprotect(memory, PAGE, PROT_READ | PROT_WRITE) == 0 && (memory[0] = 6) == 6);
	ok(status_of(child) == 1 << 8 && memory[0] == 1, "mprotect does not unshare");
	(void)!pipe(pipes);
	(void)!write(pipes[1], "kernel", 6);
	child = fork();
	if (child == 0)
		_exit(read(pipes[0], memory + 2 * PAGE, 6) == 6 && memory[2 * PAGE] == 'k');
	ok(status_of(child) == 1 << 8 && memory[2 * PAGE] == 1,
	   "the kernel's writes are copied, too");
	(void)!write(pipes[1], "kernel", 6);
	ok(read(pipes[0], memory + 50 * PAGE - 3, 6) == 6 && memory[50 * PAGE] == 'n',
	   "read to pages that are not there yet");
	(void)!write(pipes[1], "kernel", 6);
	errno = 0;
	ok(read(pipes[0], (void *)0x20000, 6) == -1 && errno == EFAULT, "read to a hole");
	close(pipes[0]);
	close(pipes[1]);
	munmap(memory, 64 * PAGE);
}

/* ---- the stack ---- */

static __attribute__((noinline)) int deep(unsigned levels)
{
	volatile char room[1000];

	room[0] = levels;
	return levels ? deep(levels - 1) + (room[0] == (char)levels) : 0;
}

static void test_stack(void)
{
	ok(deep(6000) == 6000, "6 MB of stack");
	pid_t child = fork();

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		deep(20000);
		_exit(0);
	}
	ok(status_of(child) == SIGSEGV, "20 MB of stack: SIGSEGV");
	child = fork();
	if (child == 0) {
		unsigned good;

		__asm__ volatile(
		    "mov %%esp, %%ebx; sub $0x20000, %%esp; and $-4096, %%esp; pusha; popa;"
		    "mov %%ebx, %%esp; mov $1, %0"
		    : "=r"(good)
		    :
		    : "ebx", "memory");
		_exit(good);
	}
	ok(status_of(child) == 1 << 8, "PUSHA far below");
}

/* ---- files ---- */

static void test_files(void)
{
	int file = open("/tmp/memory-test", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char text[PAGE];

	memset(text, 'a', sizeof(text));
	(void)!write(file, text, PAGE);
	(void)!write(file, text, 100);
	char *own = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	char *shared = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	ok(own != MAP_FAILED && own[0] == 'a' && shared[PAGE + 99] == 'a', "a file is seen");
	ok(shared[PAGE + 100] == 0 && shared[2 * PAGE - 1] == 0, "zeros after its end");
	ok(faults(shared + 2 * PAGE, 0, SIGBUS, BUS_ADRERR), "SIGBUS beyond its last page");
	own[0] = 'b';
	ok(shared[0] == 'a' && pread(file, text, 1, 0) == 1 && text[0] == 'a',
	   "private stays private");
	shared[1] = 'c';
	ok(pread(file, text, 2, 0) == 2 && text[1] == 'c', "shared is the file");
	(void)!pwrite(file, "d", 1, 2);
	ok(shared[2] == 'd' && own[2] == 'a', "write() is seen, but not in a copy");
	ok(own[PAGE + 5] == 'a' && pwrite(file, "e", 1, PAGE + 5) == 1 && own[PAGE + 5] == 'e',
	   "and in a page that is no copy yet");
	close(file);
	unlink("/tmp/memory-test");
	ok(shared[1] == 'c', "a mapping outlives close and unlink");
	ok(msync(shared, 3 * PAGE, MS_SYNC) == 0, "msync");
	munmap(shared, 3 * PAGE);
	munmap(own, 3 * PAGE);
}

static void test_length_of_file(void)
{
	int file = open("/tmp/memory-test", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char text[PAGE] = "text";

	(void)!write(file, text, PAGE);
	char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ok(touch(shared, 1) == 0 && ftruncate(file, 0) == 0 &&
	       faults(shared, 0, SIGBUS, BUS_ADRERR),
	   "a file that is cut: SIGBUS");
	ok(ftruncate(file, PAGE) == 0 && shared[0] == 0, "and zeros when it grows again");
	close(file);
}

static void test_read_only_file(void)
{
	int file = open("/tmp/memory-test", O_RDONLY);

	errno = 0;
	ok(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED && errno == EACCES,
	   "a read-only file is not mapped to be written");
	char *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	errno = 0;
	ok(shared != MAP_FAILED && mprotect(shared, PAGE, PROT_READ | PROT_WRITE) == -1 &&
	       errno == EACCES && touch(shared, 1) == SIGSEGV,
	   "nor does mprotect make it so");
	char *own = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	ok(mprotect(own, PAGE, PROT_READ | PROT_WRITE) == 0 && touch(own, 1) == 0,
	   "but a private mapping of it");
	errno = 0;
	ok(msync(shared, PAGE, MS_SYNC | MS_ASYNC) == -1 && errno == EINVAL, "msync of both kinds");
	errno = 0;
	ok(munmap(shared, PAGE) == 0 && msync(shared, PAGE, MS_SYNC) == -1 && errno == ENOMEM,
	   "msync of a hole");
	munmap(own, PAGE);
	unlink("/tmp/memory-test");
	close(file);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	mkdir("/tmp", 0777);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	test_mappings();
	test_moves();
	test_offsets();
	test_copies();
	test_stack();
	test_files();
	test_length_of_file();
	test_read_only_file();
	ok(faults((char *)16, 0, SIGSEGV, SEGV_MAPERR), "a null pointer with an offset");
	ok(faults((char *)0xc0100000, 0, SIGSEGV, SEGV_MAPERR), "the kernel is not there");
	printf("1..%d\n", number);
	return 0;
}
