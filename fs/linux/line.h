/*
 * The terminal's line discipline, between the keys and a program that reads. It edits lines,
 * echoes, turns ^C into a signal, and gives lines or single bytes to the reader.
 *
 * It does not depend on tasks or devices. line_type may be called from interrupt handlers; the
 * others disable interrupts where that matters.
 */
#pragma once

#include "fs/tty/tty.h"
#include "kernel/abi/terminal_modes.h"

struct line {
	union {
		struct linux_termios settings;
		struct linux_termios2 all; /* these, and the speeds that BOTHER stands for */
	};
	/* To the screen, as it is; to the foreground group. */
	void (*put)(struct line *line, const char *text, uint32_t length);
	void (*signal)(struct line *line, int signal);

	struct tty_ring *ring; /* what was typed; in the other modes than canonical without marks */
	bool is_quoted;	       /* the next byte is taken as it is */
};

/* Settings as Linux's at the beginning, an empty line in the ring, which lives as long. */
void line_initialize(struct line *line, struct tty_ring *ring,
		     void (*put)(struct line *line, const char *text, uint32_t length),
		     void (*signal)(struct line *line, int signal));

/* One byte from the keyboard or the serial line. */
void line_type(struct line *line, uint8_t byte);

/* Can a byte be typed without being lost? A full line that nobody can read does not count: what
 * does not fit into it is lost. */
bool line_has_room(const struct line *line);

/* How many bytes can be read now; in canonical mode, 1 at least for an end of file. */
uint32_t line_available(const struct line *line);

/* Takes up to size bytes: in canonical mode not beyond the end of the line, and then *is_end is
 * set. Returns how many; 0 for an end of file, or when nothing is available. */
uint32_t line_take(struct line *line, char *to, uint32_t size, bool *is_end);

/* Shows a program's output: with OPOST and ONLCR, a newline gets its carriage return. */
void line_output(struct line *line, const char *text, uint32_t length);

/* The settings with the speeds in bits a second: those that the control flags name, or (BOTHER)
 * those that were set. glibc 2.42 and later asks for them (TCGETS2). */
struct linux_termios2 line_settings(const struct line *line);

/* Other settings; what was typed can be read, or (with `flush`) is forgotten. */
void line_set(struct line *line, const struct linux_termios2 *settings, bool flush);

void line_flush(struct line *line);
