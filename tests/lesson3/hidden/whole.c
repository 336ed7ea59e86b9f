/* What the program of lesson 3's picture does: it prints, grows its heap, and passes a bad pointer.
 * The test puts another word into its file: only who runs the program knows the sum.
 */
#include "tests/lesson4/programs/program.h"

#define CALL_BRK 45
#define KERNEL	 0xc0100000u

static volatile uint32_t secret = 0x5ec4e75a;

static int32_t grown(void)
{
	uint32_t end = call(CALL_BRK, 0, 0, 0);

	if ((uint32_t)call(CALL_BRK, end + 10000, 0, 0) != end + 10000)
		return 0;
	*(volatile uint32_t *)(end + 8000) = end;
	return *(volatile uint32_t *)(end + 8000) == end;
}

int run(int count, char **words)
{
	if (count != 3)
		return 1;
	say("sum", number_of(words[1]) + number_of(words[2]) + secret);
	say("heap", grown());
	say("fault", call(CALL_WRITE, 1, KERNEL, 16));
	return 0;
}
