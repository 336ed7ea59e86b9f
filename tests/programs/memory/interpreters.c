/*
 * interpreters: programs whose interpreter (PT_INTERP) is not as it should be. One line a promise,
 * the same on Linux.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER	"/tmp/interpreters"
#define PROGRAM FOLDER "/program"
#define LIBRARY FOLDER "/library"
#define MISSING FOLDER "/missing"
#define TEXT	FOLDER "/text"
#define FAR	8192 /* of a file: beyond its first pages */
#define RAN	1000 /* and the status with which it ended */

struct image {
	Elf32_Ehdr header;
	Elf32_Phdr segments[3];
	unsigned char code[32];
};

static int number;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static void write_file(const char *path, const void *bytes, size_t length, off_t offset, int mode)
{
	int file = open(path, O_WRONLY | O_CREAT, mode);

	if (pwrite(file, bytes, length, offset) != (ssize_t)length)
		exit(1);
	close(file);
}

/* A program at an address, which ends with a status; its segments of another type are for names. */
static struct image program(unsigned address, unsigned char status)
{
	struct image image = {
		.header = {
			.e_ident = { ELFMAG0, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, 1 },
			.e_type = ET_EXEC,
			.e_machine = EM_386,
			.e_version = 1,
			.e_entry = address + offsetof(struct image, code),
			.e_phoff = offsetof(struct image, segments),
			.e_ehsize = sizeof(Elf32_Ehdr),
			.e_phentsize = sizeof(Elf32_Phdr),
			.e_phnum = 3,
		},
		/* mov eax, 1; mov ebx, status; int 0x80 */
		.code = { 0xb8, 1, 0, 0, 0, 0xbb, status, 0, 0, 0, 0xcd, 0x80 },
	};

	image.segments[0] = (Elf32_Phdr){
		.p_type = PT_LOAD,
		.p_vaddr = address,
		.p_filesz = sizeof(image),
		.p_memsz = sizeof(image),
		.p_flags = PF_R | PF_X,
		.p_align = 4096,
	};
	return image;
}

/* What becomes of a program with this name of an interpreter at an offset of its file: an error of
 * exec, or RAN and its status. */
static int run_with(const void *name, unsigned length, unsigned offset, unsigned claimed)
{
	struct image image = program(0x08048000, 1);
	int status;

	image.segments[1] =
	    (Elf32_Phdr){ .p_type = PT_INTERP, .p_offset = offset, .p_filesz = claimed };
	/* As on Linux, a second one counts for nothing. */
	image.segments[2] = (Elf32_Phdr){ .p_type = PT_INTERP, .p_offset = offset, .p_filesz = 0 };
	unlink(PROGRAM);
	write_file(PROGRAM, &image, sizeof(image), 0, 0755);
	write_file(PROGRAM, name, length, offset, 0755);
	pid_t child = fork();

	if (child == 0) {
		execl(PROGRAM, PROGRAM, NULL);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	return WEXITSTATUS(status) >= 150 ? RAN + WEXITSTATUS(status) : WEXITSTATUS(status);
}

static int run_named(const char *name)
{
	return run_with(name, strlen(name) + 1, 512, strlen(name) + 1);
}

static void test_names(void)
{
	static char text[FAR];

	memset(text, '/', sizeof(text));
	ok(run_named(MISSING) == ENOENT, "an interpreter that is not there");
	ok(run_with("", 1, 512, 0) == ENOEXEC, "a name of no bytes");
	ok(run_with("", 1, 512, 1) == ENOEXEC, "a name that is only a NUL");
	int empty = run_with("\0", 2, 512, 2); /* Linux takes it for the working directory */

	ok(empty == ENOENT || empty == EACCES, "an empty name");
	ok(run_with(MISSING, sizeof(MISSING), 512, sizeof(MISSING) - 1) == ENOEXEC,
	   "without a NUL");
	ok(run_with(text, 4097, 512, 4097) == ENOEXEC, "a name longer than a page");
	ok(run_with(text, FAR, 512, 0xffffffff) == ENOEXEC, "a name of 4 GiB");
	ok(run_with(MISSING, sizeof(MISSING), FAR, sizeof(MISSING)) == ENOENT,
	   "a name far from the file's beginning");
	ok(run_with(MISSING, sizeof(MISSING), FAR, 100) == EIO, "a name that the file's end cuts");
	ok(run_with("", 0, 1 << 30, 100) == EIO, "a name beyond the file's end");
}

/* An interpreter that may be anywhere leaves the middle of the space to the program: some (clisp)
 * want much of it in one piece. It ends with 150, and one more if it is in the upper half. */
static void test_place(void)
{
	static const unsigned char code[] = {
		0xe8, 0, 0, 0, 0,    0x5b, 0xc1, 0xeb, 0x1f, 0x81, 0xc3,
		150,  0, 0, 0, 0xb8, 1,	   0,	 0,    0,    0xcd, 0x80,
	}; /* call next; next: pop ebx; shr ebx, 31; add ebx, 150; mov eax, 1; int 0x80 */
	struct image library = program(0, 0);

	library.header.e_type = ET_DYN;
	memcpy(library.code, code, sizeof(code));
	write_file(LIBRARY, &library, sizeof(library), 0, 0755);
	ok(run_named(LIBRARY) == RAN + 151, "one that may be anywhere is high");
	unlink(LIBRARY);
}

static void test_files(void)
{
	const struct image library = program(0x09000000, 150);
	struct image both = program(0x09000000, 151);

	write_file(TEXT, "No program, but longer than the header of one would be. 1234", 60, 0,
		   0755);
	ok(run_named(TEXT) == ELIBBAD, "an interpreter that is no program");
	truncate(TEXT, 20);
	ok(run_named(TEXT) == EIO, "one that is shorter than a header");
	truncate(TEXT, 0);
	ok(run_named(TEXT) == EIO, "one that is empty");
	ok(run_named(FOLDER) == EACCES, "a directory");
	ok(run_named(FOLDER "/text/x") == ENOTDIR, "a name in what is no directory");
	write_file(LIBRARY, &library, sizeof(library), 0, 0644);
	ok(run_named(LIBRARY) == EACCES, "one that may not be run");
	chmod(LIBRARY, 0755);
	ok(run_named(LIBRARY) == RAN + 150, "a program as an interpreter");
	ok(run_with(LIBRARY, sizeof(LIBRARY), FAR, sizeof(LIBRARY)) == RAN + 150,
	   "and with its name far from the beginning");
	both.segments[1] = (Elf32_Phdr){ .p_type = PT_INTERP, .p_filesz = 1 };
	write_file(LIBRARY, &both, sizeof(both), 0, 0755);
	ok(run_named(LIBRARY) == RAN + 151, "an interpreter's own interpreter counts for nothing");
}

int main(void)
{
	mkdir("/tmp", 0777);
	mkdir(FOLDER, 0777);
	test_names();
	test_place();
	test_files();
	unlink(PROGRAM);
	unlink(LIBRARY);
	unlink(TEXT);
	rmdir(FOLDER);
	printf("1..%d\n", number);
	return 0;
}
