/* Numbers that people type. */
#include "kernel/lib/number.h"

#include "kernel/lib/divide.h"

/* The value of a digit, or 16 for any other character. */
static unsigned digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return 16;
}

bool number_parse(const char *text, uint64_t *value)
{
	unsigned base = 10;

	if (text[0] == '0' && text[1] == 'x') {
		base = 16;
		text += 2;
	}
	*value = 0;
	if (*text == '\0')
		return false;
	for (; *text; text++) {
		unsigned digit = digit_value(*text);

		if (digit >= base || *value > divide64(UINT64_MAX - digit, base, 0))
			return false;
		*value = *value * base + digit;
	}
	return true;
}
