/* Jobs: the processes of a pipeline, in the foreground, in the background, or stopped. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/sh/sh.h"

#define JOBS	  16
#define TEXT_ROOM 64

struct job {
	pid_t processes[PROCESSES_MAX]; /* 0: has ended */
	pid_t group;			/* with job control: the first process's pid */
	pid_t last;			/* its status is the job's */
	int count, alive;		/* alive 0: the place is free, or will be once told */
	int status;
	bool stopped, background;
	char text[TEXT_ROOM];
};

static struct job jobs[JOBS];

bool jobs_controlled;

/* What the terminal's keys send, and what a shell must not die of. */
static const int keys[] = { SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU };

static void handle_keys(void (*handler)(int))
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		signal(keys[i], handler);
}

void jobs_start(void)
{
	jobs_controlled = true;
	handle_keys(SIG_IGN);
	setpgid(0, 0);
	tcsetpgrp(STDIN_FILENO, getpid());
}

void jobs_enter(pid_t group, bool foreground)
{
	if (jobs_controlled) {
		setpgid(0, group);
		if (foreground)
			tcsetpgrp(STDIN_FILENO, group ? group : getpid());
		handle_keys(SIG_DFL);
	}
	jobs_controlled = false;
	memset(jobs, 0, sizeof(jobs));
}

static int number_of(const struct job *job)
{
	return job - jobs + 1;
}

/* ---- what becomes of the processes ---- */

static int status_of(int status)
{
	if (WIFSTOPPED(status))
		return STATUS_SIGNAL + WSTOPSIG(status);
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static struct job *job_of(pid_t process, int *index)
{
	for (struct job *job = jobs; job < jobs + JOBS; job++)
		for (*index = 0; *index < job->count; ++*index)
			if (job->processes[*index] == process)
				return job;
	return NULL;
}

static void note(pid_t process, int status)
{
	int index;
	struct job *job = job_of(process, &index);

	if (!job)
		return;
	job->stopped = WIFSTOPPED(status);
	if (process == job->last || job->stopped)
		job->status = status;
	if (!job->stopped) {
		job->processes[index] = 0;
		job->alive--;
	}
}

/* Waits for one of the shell's processes, however it goes. Returns whether there is any. */
static bool await(int options)
{
	int status;
	pid_t process;

	do
		process = waitpid(-1, &status, options | (jobs_controlled ? WUNTRACED : 0));
	while (process < 0 && errno == EINTR);
	if (process > 0)
		note(process, status);
	return process > 0;
}

static void show(const struct job *job)
{
	const char *state = job->alive == 0 ? "done" : job->stopped ? "stopped" : "running";

	printf("[%d] %-8s %s\n", number_of(job), state, job->text);
}

/* Lets the job have the terminal until it ends or stops. Returns its status. */
static int await_job(struct job *job)
{
	job->background = false;
	while (job->alive > 0 && !job->stopped && await(0))
		;
	if (jobs_controlled)
		tcsetpgrp(STDIN_FILENO, getpgrp());
	if (job->stopped) {
		job->background = true;
		show(job);
	} else {
		job->count = 0;
		if (WIFSIGNALED(job->status) && WTERMSIG(job->status) != SIGPIPE)
			fprintf(stderr, "%s\n", strsignal(WTERMSIG(job->status)));
	}
	return status_of(job->status);
}

void jobs_poll(bool tell)
{
	while (await(WNOHANG))
		;
	for (struct job *job = jobs; job < jobs + JOBS; job++) {
		if (job->count == 0 || job->alive > 0)
			continue;
		if (tell)
			show(job);
		job->count = 0;
	}
}

static struct job *free_job(void)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		for (struct job *job = jobs; job < jobs + JOBS; job++)
			if (job->count == 0)
				return job;
		jobs_poll(false);
	}
	fprintf(stderr, "sh: too many jobs; the first is forgotten\n");
	return jobs;
}

int jobs_add(const pid_t *processes, int count, const char *text, bool background)
{
	struct job *job = free_job();

	memcpy(job->processes, processes, count * sizeof(*processes));
	job->count = job->alive = count;
	job->group = processes[0];
	job->last = processes[count - 1];
	job->stopped = false;
	job->status = 0;
	snprintf(job->text, sizeof(job->text), "%s", text);
	if (!background)
		return await_job(job);
	job->background = true;
	last_background = job->last;
	if (jobs_controlled)
		printf("[%d] %d\n", number_of(job), job->last);
	return 0;
}

/* ---- the commands ---- */

/* The job that a word such as %2 names; the latest without a word. */
static struct job *find(const char *word)
{
	for (struct job *job = jobs + JOBS - 1; job >= jobs; job--)
		if (job->count > 0 && (!word || number_of(job) == atoi(word + (*word == '%'))))
			return job;
	fprintf(stderr, "sh: there is no such job\n");
	return NULL;
}

/* Lets a stopped job go on. */
static void go_on(struct job *job)
{
	job->stopped = false;
	if (jobs_controlled)
		kill(-job->group, SIGCONT);
}

int jobs_list(int count, char **words)
{
	(void)count, (void)words;
	while (await(WNOHANG))
		;
	for (struct job *job = jobs; job < jobs + JOBS; job++) {
		if (job->count > 0)
			show(job);
		if (job->alive == 0)
			job->count = 0;
	}
	return 0;
}

int jobs_wait(int count, char **words)
{
	int status = 0;

	for (struct job *job = jobs; job < jobs + JOBS; job++) {
		if (job->count == 0 || (count > 1 && job->last != atoi(words[1])))
			continue;
		while (job->alive > 0 && !job->stopped && await(0))
			;
		if (count > 1)
			status = status_of(job->status);
		if (job->alive == 0)
			job->count = 0;
	}
	return status;
}

int jobs_foreground(int count, char **words)
{
	struct job *job = find(count > 1 ? words[1] : NULL);

	if (!job)
		return 1;
	printf("%s\n", job->text);
	fflush(stdout);
	if (jobs_controlled)
		tcsetpgrp(STDIN_FILENO, job->group);
	go_on(job);
	return await_job(job);
}

int jobs_background(int count, char **words)
{
	struct job *job = find(count > 1 ? words[1] : NULL);

	if (!job)
		return 1;
	go_on(job);
	show(job);
	return 0;
}

/* kill [-NUMBER] PID|%JOB ... */
int jobs_kill(int count, char **words)
{
	int number = SIGTERM, first = 1, status = 0;

	if (count > 1 && words[1][0] == '-')
		number = atoi(words[first++] + 1);
	for (int i = first; i < count; i++) {
		struct job *job = words[i][0] == '%' ? find(words[i]) : NULL;
		pid_t target = job ? -job->group : atoi(words[i]);

		if (target == 0 || kill(target, number) < 0) {
			fprintf(stderr, "sh: kill: %s: %s\n", words[i], strerror(errno));
			status = 1;
		}
	}
	return status;
}
