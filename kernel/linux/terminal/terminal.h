/* Terminals with settings, sessions and job control: the console, and pseudo-terminals. */
#pragma once

#include "fs/linux/line.h"
#include "kernel/lib/list.h"

struct terminal;

/* What is at the other end of a terminal: a keyboard and a screen, or a program. */
struct terminal_hardware {
	/* Shows a piece of text; only after has_room, unless it is an echo, which may be lost. */
	void (*put)(struct line *line, const char *text, uint32_t length);
	/* For TERMINAL_CHUNK bytes and more? NULL: always. */
	bool (*has_room)(const struct terminal *terminal);
	/* A program has taken what was typed: more can come. */
	void (*resume)(struct terminal *terminal);
	/* The last file is closed; it may free the terminal. NULL: nothing to do. */
	void (*leave)(struct terminal *terminal);
};

#define TERMINAL_CHUNK 256u

struct terminal {
	struct line line; /* first: the two have one address */
	const struct terminal_hardware *hardware;
	uint32_t device;     /* as in struct process */
	int32_t session;     /* whose terminal it is; 0: nobody's */
	int32_t *foreground; /* the process group in front; 0: none */
	struct linux_window_size window;
	struct wait_queue readers, writers; /* wake when something can be read, or written */
	uint32_t files;			    /* that are open */
	bool is_hung_up;		    /* nobody is at the other end any more */
	struct list link;		    /* in the list of all terminals */
};

/* Adds a zeroed terminal whose hardware, device and foreground are set, with a ring for what is
 * typed. One that is freed is taken out of the list of all. */
void terminal_add(struct terminal *terminal, struct tty_ring *ring);

/* NULL: there is none with this device number. */
struct terminal *terminal_find(uint32_t device);

/* The other end has gone: reads get the end, writes -EIO, the session SIGHUP. */
void terminal_hang_up(struct terminal *terminal);

/* For the operations of files: open, which gives the file those of a terminal; and ioctl. */
int terminal_open(struct file *file, struct terminal *terminal);
int terminal_control(struct terminal *terminal, uint32_t command, uint32_t argument);
