/* What only the line discipline of fs/linux/line.c can do, which stands in for fs/tty/line.c:
 * other settings than those of the beginning. */
#pragma once

#include "fs/tty/line.h"

/* Other settings; what was typed can be read, or (with `flush`) is forgotten. */
void line_set(struct line *line, const struct linux_termios *settings, bool flush);

void line_flush(struct line *line);
