/*
 * A ring of the latest system calls, and how a record is shown.
 *
 * Record n is at ring[n % 1024], and total says how many there have been. A call writes its record
 * twice: when it begins, and when it has a result. In between, calls of other tasks may have taken
 * every place of the ring, so syscall_trace_end checks whether the place still holds its record:
 *
 *	total = 5	ring[4] = { sequence 4, read, ? }	a task waits in read
 *	total = 1029	ring[4] = { sequence 1028, write, 5 }	its result is lost: no place
 *
 * A record is written and copied with interrupts disabled, so no reader sees half of one. The ring
 * is a variable of the kernel, for the debugger and the host; no lock is taken, and nothing is
 * printed, so tracing changes little of what it watches.
 */
#include "kernel/syscall/syscall_trace.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"
#include "kernel/task/time.h"
#include "mm/user_copy.h"

struct syscall_trace syscall_trace;
volatile bool syscall_trace_on;

/* Copies the first string among the arguments of record->call; nothing if it cannot be read. */
static void copy_text(struct syscall_record *record)
{
	const char *letters = record->call ? record->call->arguments : "";
	const char *string = strchr(letters, 's');

	if (string && string_from_user(record->text, record->arguments[string - letters],
				       sizeof(record->text)) == -EFAULT)
		record->text[0] = '\0';
	record->text[sizeof(record->text) - 1] = '\0';
}

/* EXERCISE 3.5 (the trace ring): see the opening comment, and kernel/syscall/syscall_trace.h.

   - syscall_trace_begin: adds a record and returns its sequence number. A record becomes visible
     whole, or not at all: a reader may interrupt you.
   - syscall_trace_end: completes the record of this number, if it is still in the ring.
   - syscall_trace_read: copies records from *next on; what has been overwritten is counted in
     *lost.

   Pitfalls: `total` wraps around, so compare differences of sequence numbers, not the numbers, and
   without a sign: a reader may be late by more than 2^31.
   copy_text reads user memory and may sleep in later lessons: not with interrupts disabled, and
   not on a record in the ring. Callers may have interrupts disabled already: they stay so.
   Interrupts must not be disabled while a thousand records are copied: eight at most. */
/* SOLUTION 3.5 { */
/* SYSCALL_TRACE_RECORDS is a power of two, so the numbers may wrap. */
static struct syscall_record *place(uint32_t sequence)
{
	return &syscall_trace.ring[sequence % SYSCALL_TRACE_RECORDS];
}

/* Returns the record's number, for syscall_trace_end. */
uint32_t syscall_trace_begin(const struct trap_frame *frame, const struct syscall *call)
{
	struct syscall_record record = {
		.start = time_stamp(),
		.pid = current->pid,
		.number = frame->eax,
		.arguments = { frame->ebx, frame->ecx, frame->edx, frame->esi, frame->edi,
			       frame->ebp },
		.call = call,
	};

	copy_text(&record);
	bool enabled = interrupts_disable();

	record.sequence = syscall_trace.total;
	*place(record.sequence) = record;
	syscall_trace.total++;
	interrupts_restore(enabled);
	return record.sequence;
}

/* A call may last long, and its record be overwritten meanwhile: the number tells. */
void syscall_trace_end(uint32_t sequence, int result)
{
	struct syscall_record *record = place(sequence);
	bool enabled = interrupts_disable();

	if (record->sequence == sequence && !record->finished) {
		uint64_t ticks = time_stamp() - record->start;

		record->ticks = ticks > UINT32_MAX ? UINT32_MAX : ticks;
		record->result = result;
		record->finished = 1;
	}
	interrupts_restore(enabled);
}

/* Moves *next to the oldest record that is still there. */
static void skip_lost(uint32_t *next, uint32_t *lost)
{
	uint32_t behind = syscall_trace.total - *next;

	if (behind > SYSCALL_TRACE_RECORDS) {
		*lost += behind - SYSCALL_TRACE_RECORDS;
		*next += behind - SYSCALL_TRACE_RECORDS;
	}
}

/* Copies, because a record may change as soon as interrupts are enabled again. */
uint32_t syscall_trace_read(uint32_t *next, struct syscall_record *records, uint32_t count,
			    uint32_t *lost)
{
	uint32_t copied = 0;

	while (copied < count) {
		bool enabled = interrupts_disable();

		skip_lost(next, lost);
		bool is_end = *next == syscall_trace.total;

		if (!is_end)
			records[copied++] = *place((*next)++);
		interrupts_restore(enabled);
		if (is_end)
			break;
	}
	return copied;
}
/* } SOLUTION 3.5 */

/* A line that is being written; what does not fit is cut off. */
struct call_line {
	char *text;
	size_t size, length;
};

static void __attribute__((format(printf, 2, 3))) append_text(struct call_line *line,
							      const char *format, ...)
{
	va_list arguments;

	if (line->length >= line->size)
		return;
	va_start(arguments, format);
	line->length +=
	    vsnprintk(line->text + line->length, line->size - line->length, format, arguments);
	va_end(arguments);
}

/* The letter is one of those that struct syscall explains. */
static void append_argument(struct call_line *line, const struct syscall_record *record,
			    char letter, uint32_t value)
{
	if (strchr("dfFa", letter))
		append_text(line, "%d", value);
	else if (letter == 'o')
		append_text(line, "0%o", value);
	else if (letter == 's' && record->text[0])
		append_text(line, "\"%s\"", record->text);
	else
		append_text(line, "0x%x", value);
}

/* One line, as printf's family returns it: the length even if it was cut. A negated errno has a
 * name. */
int syscall_trace_format(const struct syscall_record *record, char *text, size_t size)
{
	const struct syscall *call = record->call;
	const char *letters = call ? call->arguments : "";
	struct call_line line = { text, size, 0 };

	append_text(&line, "%d ", record->pid);
	if (call)
		append_text(&line, "%s(", call->name);
	else
		append_text(&line, "call_%u(", record->number);
	for (unsigned i = 0; letters[i] && i < 6; i++) {
		if (i > 0)
			append_text(&line, ", ");
		append_argument(&line, record, letters[i], record->arguments[i]);
	}
	if (!record->finished)
		append_text(&line, ") = ?\n");
	else if (is_error(record->result))
		append_text(&line, ") = %d %s\n", record->result, errno_name(-record->result));
	else
		append_text(&line, ") = %d\n", record->result);
	return line.length;
}
