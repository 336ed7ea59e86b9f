/* What job control asks about the one program there is until lesson 4: nobody could continue it if
 * it stopped. */
#include "kernel/process/process.h"
#include "kernel/process/signal.h"

bool signal_is_ignored(const struct process *process, int signal)
{
	return false;
}

bool process_group_is_orphaned(const struct process *member)
{
	return true;
}
