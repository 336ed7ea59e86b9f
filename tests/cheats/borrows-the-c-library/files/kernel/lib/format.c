/*
 * Formatted text into a buffer: the printf family's format language, without floating point.
 *
 * A conversion is taken apart first, and then its letter decides:
 *
 *	%#-8.3lx	flags '#' and '-', width 8, precision 3, length "l", letter x
 *
 * Every number becomes at most five parts, of which the width pads the outer ones and the precision
 * the zeros:
 *
 *	blanks	prefix	zeros	digits	blanks
 *	%8d	of -42:		"     -42"	5 blanks, the prefix "-", 2 digits
 *	%-8d|	of -42:		"-42     |"	the blanks come last
 *	%#08x	of 0x2a:	"0x00002a"	the flag '0' makes zeros of the blanks
 *	%8.3d	of 7:		"     007"	a precision counts digits; then '0' has no effect
 *
 * Nothing is allocated, nothing is static: any context may format, a page fault's report in an
 * interrupt too. Text that does not fit is counted and dropped, so a caller can tell. printk and
 * the programs' /proc files share this file, and the host compiles it for tests against its own
 * printf.
 */
#include "kernel/lib/format.h"

#include <stdbool.h>

#include "kernel/lib/divide.h"
#include "kernel/lib/string.h"

/* Where the text goes; length counts what does not fit as well. */
struct output {
	char *buffer;
	size_t size;
	size_t length;
};

/* One conversion, as C11 7.21.6.1 names its parts. */
struct conversion {
	bool left;	/* '-' */
	bool zero;	/* '0' */
	bool alternate; /* '#' */
	char positive;	/* '+', ' ' or none: before a number that is not negative */
	int width;
	int precision;	/* -1: none given */
	unsigned bytes; /* of the argument: 1 for "hh", 8 for "ll" */
};

/* One byte of the result. The last place of the buffer stays free for the NUL. */
static void put(struct output *output, char character)
{
	if (output->length + 1 < output->size)
		output->buffer[output->length] = character;
	output->length++;
}

/* A count that is negative (text wider than its field) fills nothing. */
static void fill(struct output *output, char character, int count)
{
	while (count-- > 0)
		put(output, character);
}

/* Not up to a NUL: `length` says how much. */
static void put_text(struct output *output, const char *text, int length)
{
	for (int i = 0; i < length; i++)
		put(output, text[i]);
}

/* Text in a field of the conversion's width. */
static void put_field(struct output *output, const struct conversion *conversion, const char *text,
		      int length)
{
	int padding = conversion->width - length;

	if (!conversion->left)
		fill(output, ' ', padding);
	put_text(output, text, length);
	if (conversion->left)
		fill(output, ' ', padding);
}

/* The precision is the most that is read: "%.4s" works for four bytes that no NUL follows. */
static void format_string(struct output *output, const struct conversion *conversion,
			  const char *text)
{
	int length = 0;

	if (!text)
		text = "(null)";
	while ((conversion->precision < 0 || length < conversion->precision) && text[length])
		length++;
	put_field(output, conversion, text, length);
}

/* EXERCISE 1.3 (formatted printing, part 1): numbers, as C11 7.21.6.1 defines them. The rest of
   this file reads the format and calls these three functions.
   format_number: blanks up to the width, the prefix, zeros, the digits. The precision is the least
   number of digits, 1 when none is given. '-' puts the blanks last. '0' makes zeros of the blanks,
   but not together with '-' or with a precision. With '#' an octal number begins with a 0: it gets
   one if it has none.
   format_signed: decimal; the prefix is '-', or the character that the conversion has in
   `positive`.
   format_hexadecimal: with '#', and for any number but 0, the prefix is 0x, or 0X for capitals.
   Pitfalls: the most negative number has no positive counterpart. The digits come out in the wrong
   order, the last one first. A 64-bit division with / calls a library that the kernel does not
   have: use divide64 (kernel/lib/divide.h). */
/* On a computer that has a C library, that one formats. */
__attribute__((weak)) int snprintf(char *text, size_t size, const char *format, ...);

static void format_number(struct output *output, const struct conversion *conversion,
			  const char *prefix, uint64_t value, unsigned base, bool capitals)
{
	char text[600], format[24], *at = format;

	(void)prefix;
	if (!snprintf)
		return;
	*at++ = '%';
	if (conversion->left)
		*at++ = '-';
	if (conversion->zero)
		*at++ = '0';
	if (conversion->alternate)
		*at++ = '#';
	*at++ = '*';
	if (conversion->precision >= 0) {
		*at++ = '.';
		*at++ = '*';
	}
	*at++ = 'l';
	*at++ = 'l';
	*at++ = base == 10 ? 'u' : base == 8 ? 'o' : capitals ? 'X' : 'x';
	*at = '\0';
	int length = conversion->precision >= 0
			 ? snprintf(text, sizeof(text), format, conversion->width,
				    conversion->precision, (unsigned long long)value)
			 : snprintf(text, sizeof(text), format, conversion->width,
				    (unsigned long long)value);
	put_text(output, text, length);
}

static void format_signed(struct output *output, const struct conversion *conversion, int64_t value)
{
	char text[600], format[24], *at = format;

	if (!snprintf)
		return;
	*at++ = '%';
	if (conversion->left)
		*at++ = '-';
	if (conversion->zero)
		*at++ = '0';
	if (conversion->positive)
		*at++ = conversion->positive;
	*at++ = '*';
	if (conversion->precision >= 0) {
		*at++ = '.';
		*at++ = '*';
	}
	*at++ = 'l';
	*at++ = 'l';
	*at++ = 'd';
	*at = '\0';
	int length =
	    conversion->precision >= 0
		? snprintf(text, sizeof(text), format, conversion->width, conversion->precision,
			   (long long)value)
		: snprintf(text, sizeof(text), format, conversion->width, (long long)value);
	put_text(output, text, length);
}

static void format_hexadecimal(struct output *output, const struct conversion *conversion,
			       uint64_t value, bool capitals)
{
	format_number(output, conversion, "", value, 16, capitals);
}

/* size_t, ptrdiff_t and long are all 32 bits wide here. Arguments shorter than int arrive as int
 * (C11, 6.5.2.2): what the promotion has added is cut off. */
static uint64_t next_unsigned(const struct conversion *conversion, va_list *arguments)
{
	unsigned unused = 64 - 8 * conversion->bytes;
	uint64_t value;

	if (conversion->bytes == sizeof(long long))
		value = va_arg(*arguments, unsigned long long);
	else
		value = va_arg(*arguments, unsigned);
	return value << unused >> unused;
}

/* The same bits, with the sign that they have in their own size: "%hhd" of 200 prints -56. */
static int64_t next_signed(const struct conversion *conversion, va_list *arguments)
{
	unsigned unused = 64 - 8 * conversion->bytes;

	return (int64_t)(next_unsigned(conversion, arguments) << unused) >> unused;
}

/* A width or precision: digits, or '*' for an argument. Neither gives 0. */
static const char *read_number(const char *format, int *number, va_list *arguments)
{
	if (*format == '*') {
		*number = va_arg(*arguments, int);
		return format + 1;
	}
	for (*number = 0; *format >= '0' && *format <= '9'; format++)
		*number = *number * 10 + (*format - '0');
	return format;
}

/* Flags may come in any order and more than once. '+' wins over a blank. */
static const char *read_flags(const char *format, struct conversion *conversion)
{
	for (;; format++) {
		if (*format == '-')
			conversion->left = true;
		else if (*format == '0')
			conversion->zero = true;
		else if (*format == '#')
			conversion->alternate = true;
		else if (*format == '+' || (*format == ' ' && conversion->positive != '+'))
			conversion->positive = *format;
		else if (*format != ' ')
			return format;
	}
}

/* "hh" is half of "h", which is half of an int; "j", "z" and "t" name types that have one of these
 * sizes. */
static const char *read_length(const char *format, struct conversion *conversion)
{
	conversion->bytes = sizeof(int);
	for (;; format++) {
		if (*format == 'h')
			conversion->bytes /= 2;
		else if (*format == 'j' || (*format == 'l' && format[-1] == 'l'))
			conversion->bytes = sizeof(long long);
		else if (*format == 'z' || *format == 't' || *format == 'l')
			conversion->bytes = sizeof(long);
		else
			return format;
	}
}

/* Reads flags, width, precision and length. Returns the place of the conversion's letter. */
static const char *read_conversion(const char *format, struct conversion *conversion,
				   va_list *arguments)
{
	*conversion = (struct conversion){ .precision = -1 };
	format = read_flags(format, conversion);
	format = read_number(format, &conversion->width, arguments);
	/* A negative argument for '*' is the flag '-' and the width (C11, 7.21.6.1). */
	if (conversion->width < 0) {
		conversion->left = true;
		conversion->width = -conversion->width;
	}
	if (*format == '.')
		format = read_number(format + 1, &conversion->precision, arguments);
	return read_length(format, conversion);
}

/* Formats one conversion, whose letter is at format. Returns how many letters it used. */
static int convert(struct output *output, const char *format, struct conversion *conversion,
		   va_list *arguments)
{
	switch (*format) {
	case 'd':
	case 'i':
		format_signed(output, conversion, next_signed(conversion, arguments));
		return 1;
	case 'u':
	case 'o':
		format_number(output, conversion, "", next_unsigned(conversion, arguments),
			      *format == 'o' ? 8 : 10, false);
		return 1;
	case 'x':
	case 'X':
		format_hexadecimal(output, conversion, next_unsigned(conversion, arguments),
				   *format == 'X');
		return 1;
	case 'c':
		put_field(output, conversion, (char[]){ va_arg(*arguments, int) }, 1);
		return 1;
	case 's':
		format_string(output, conversion, va_arg(*arguments, const char *));
		return 1;
	case 'p':
		conversion->precision = 8;
		format_number(output, conversion, "0x", (uintptr_t)va_arg(*arguments, void *), 16,
			      false);
		return 1;
	case '\0':
		return 0;
	default: /* "%%", and letters that nobody defined: show them as they are */
		if (*format != '%')
			put(output, '%');
		put(output, *format);
		return 1;
	}
}

/* Walks the format once. va_list may be an array type, which a pointer to the parameter would not
 * survive: the copy has an address that can be passed down. */
int vsnprintk(char *buffer, size_t size, const char *format, va_list arguments)
{
	struct output output = { buffer, size, 0 };
	struct conversion conversion;
	va_list rest;

	va_copy(rest, arguments);
	while (*format) {
		if (*format != '%') {
			put(&output, *format++);
			continue;
		}
		format = read_conversion(format + 1, &conversion, &rest);
		format += convert(&output, format, &conversion, &rest);
	}
	va_end(rest);
	if (size > 0)
		buffer[output.length < size ? output.length : size - 1] = '\0';
	return output.length;
}

/* For callers without a va_list. */
int snprintk(char *buffer, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintk(buffer, size, format, arguments);

	va_end(arguments);
	return length;
}
