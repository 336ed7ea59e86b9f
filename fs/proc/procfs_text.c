/* Text in /proc: what does not fit is lost. */
#include "fs/proc/procfs.h"

#include "kernel/report/printk.h"

void procfs_print(struct procfs_text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text->length +=
	    vsnprintk(text->bytes + text->length, text->size - text->length, format, arguments);
	va_end(arguments);
	if (text->length >= text->size)
		text->length = text->size - 1;
}
