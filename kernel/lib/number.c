/*
 * Numbers that people type: "42" and "0x2a".
 *
 * The whole text must be a number that fits into 64 bits: no sign, no blank, nothing after the last
 * digit. A parser that stops at the first strange character would take "1O0" for 1.
 */
#include "kernel/lib/number.h"

#include "kernel/lib/divide.h"

/* The value of a digit, or 16 for any other character. */
static unsigned digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : 16;
}

/* Is there room for one more digit? value * base + digit <= UINT64_MAX is asked the other way
 * round, because the product itself may wrap: value <= (UINT64_MAX - digit) / base. A digit that
 * the base does not have (the 16 of digit_value, or an 'a' in a decimal number) ends it as well,
 * and so does the NUL of a text without a digit. */
bool number_parse(const char *text, uint64_t *value)
{
	unsigned base = 10;

	if (text[0] == '0' && text[1] == 'x') {
		base = 16;
		text += 2;
	}
	*value = 0;
	do {
		unsigned digit = digit_value(*text);

		if (digit >= base || *value > divide64(UINT64_MAX - digit, base, 0))
			return false;
		*value = *value * base + digit;
	} while (*++text);
	return true;
}
