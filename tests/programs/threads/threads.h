/* What the files of this program share. */
#pragma once

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define TURNS	400
#define ROOM	4

extern unsigned seed;
extern char myself[4096]; /* the path of this program */
extern int key;		  /* of System V's objects; it and the next one are this run's own */
extern sem_t done;	  /* posted by threads that have come somewhere */

/* One line of output. */
void say(const char *what, long value);

unsigned next_random(unsigned *state);

/* Gives the processor away now and then, or sleeps for a while. */
void dawdle(unsigned *state);

void rest(long milliseconds);

pthread_t start(void *(*function)(void *), void *argument);

/* Runs the function in THREADS threads, with their numbers, and waits for all. */
void each(void *(*function)(void *));

/* A thread that sleeps until it is cancelled: in sem_wait, or with NULL in pause. */
void *sleep_for_ever(void *semaphore);

/* The end of a child: its exit code, or 1000 and its signal. */
long end_of(pid_t child);

/* Sends a byte with `size` bytes of control data (at most 64), and says that it has `length` of
 * them. Returns what sendmsg did, or its error. */
long send_control(int end, int type, const void *data, size_t size, size_t length);

/* For `threads -tasks`: how many tasks there may be. Returns the program's status. */
int limit_tasks(void);

void part_join(void);
void part_detach(void);
void part_ids(void);
void part_mutex(void);
void part_condition(void);
void part_barrier(void);
void part_semaphore(void);
void part_readers(void);
void part_cancel(void);
void part_signals(void);
void part_pending(void);
void part_end(void);
void part_frames(void);
void part_borrow(void);
void part_last(void);
void part_stop(void);
void part_fork(void);
void part_close(void);
void part_memory(void);
void part_processes(void);
void part_robust(void);
void part_change(void);
void part_checking(void);
void part_systemv(void);
void part_attach(void);
void part_posix(void);
void part_proc(void);
void part_timers(void);
void part_inherit(void);
void part_circle(void);
void part_pipes(void);
void part_sockets(void);
void part_terminals(void);
void part_settings(void);
void part_wide(void);
void part_answers(void);
void part_random(void);
void part_events(void);
void part_watches(void);
void part_system(void);
void part_use(void);
void part_datagrams(void);
void part_areas(void);
void part_written(void);
void part_semaphores(void);
void part_credentials(void);
void part_messages(void);
void part_clones(void);
void part_sends(void);
void part_jobs(void);
void part_large(void);
void part_refusals(void);
void part_resets(void);
