/* Linux's system calls for files and processes. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/file.h"
#include "kernel/abi/unistd.h"

#define STDIN_FILENO  0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2

extern char **environ;

/* Any call, by its number (sys/syscall.h), with up to six arguments. */
long syscall(long number, ...);

/* ---- files ---- */

ssize_t read(int descriptor, void *buffer, size_t length);
ssize_t write(int descriptor, const void *buffer, size_t length);
ssize_t pread(int descriptor, void *buffer, size_t length, off_t offset);
ssize_t pwrite(int descriptor, const void *buffer, size_t length, off_t offset);
off_t lseek(int descriptor, off_t offset, int whence);
int close(int descriptor);
int dup(int descriptor);
int dup2(int from, int to);
int pipe(int descriptors[2]);
int ftruncate(int descriptor, off_t length);
int fsync(int descriptor);
void sync(void);
int isatty(int descriptor);

int access(const char *path, int mode);
int unlink(const char *path);
int rmdir(const char *path);
int link(const char *from, const char *to);
int symlink(const char *target, const char *path);
ssize_t readlink(const char *path, char *target, size_t size);
int rename(const char *from, const char *to);
int chdir(const char *path);
char *getcwd(char *path, size_t size);

/* ---- processes ---- */

pid_t fork(void);
int execve(const char *path, char *const arguments[], char *const environment[]);
int execv(const char *path, char *const arguments[]);
/* Looks in PATH for a name without a slash. */
int execvp(const char *name, char *const arguments[]);
void _exit(int status) __attribute__((noreturn));
pid_t getpid(void);
pid_t getppid(void);
pid_t gettid(void);
uid_t getuid(void);
int setpgid(pid_t pid, pid_t group);
pid_t getpgrp(void);
pid_t setsid(void);
pid_t tcgetpgrp(int terminal);
int tcsetpgrp(int terminal, pid_t group);
unsigned alarm(unsigned seconds);
unsigned sleep(unsigned seconds);
int pause(void);

/* Moves the end of the heap. Returns where it was, or (void *)-1. */
void *sbrk(ptrdiff_t by);

/* ---- options, as POSIX's getopt reads them ---- */

extern char *optarg;
extern int optind, opterr, optopt;

int getopt(int count, char *const arguments[], const char *options);
