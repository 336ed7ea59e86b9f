/* The printf family's format language, without floating point: C11 7.21.6.1. */
#include "user/libc/format.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DIGITS 24 /* of 64 bits in base 8, and room for a sign or a prefix */

/* One conversion, and where its characters go. */
struct field {
	void (*put)(void *target, char character);
	void *target;
	int written;

	bool left, zero, alternate;
	char positive; /* '+', ' ' or none: before a number that is not negative */
	int width;
	int precision; /* -1: none given */
	int longs;     /* -2 "hh", -1 "h", 0, 1 "l", 2 "ll" */
};

static void put(struct field *field, char character)
{
	field->put(field->target, character);
	field->written++;
}

static void put_times(struct field *field, char character, int times)
{
	while (times-- > 0)
		put(field, character);
}

/* prefix, zeros, text, in a field of its width. */
static void put_padded(struct field *field, const char *prefix, int zeros, const char *text,
		       int length)
{
	int padding = field->width - (int)strlen(prefix) - zeros - length;

	if (!field->left)
		put_times(field, ' ', padding);
	for (; *prefix; prefix++)
		put(field, *prefix);
	put_times(field, '0', zeros);
	for (int i = 0; i < length; i++)
		put(field, text[i]);
	if (field->left)
		put_times(field, ' ', padding);
}

static void put_number(struct field *field, const char *prefix, uint64_t value, unsigned base,
		       const char *digits)
{
	char text[DIGITS], *start = text + DIGITS;
	int zeros = 0;

	if (value == 0 && field->precision != 0)
		*--start = '0';
	for (; value > 0; value /= base)
		*--start = digits[value % base];
	int length = text + DIGITS - start;

	if (field->precision >= 0)
		zeros = field->precision - length;
	else if (field->zero && !field->left)
		zeros = field->width - (int)strlen(prefix) - length;
	put_padded(field, prefix, zeros > 0 ? zeros : 0, start, length);
}

static void put_signed(struct field *field, int64_t value)
{
	const char sign[2] = { value < 0 ? '-' : field->positive };

	put_number(field, sign, value < 0 ? -(uint64_t)value : (uint64_t)value, 10, "0123456789");
}

static void put_hexadecimal(struct field *field, uint64_t value, bool capitals)
{
	const char *prefix = capitals ? "0X" : "0x";

	put_number(field, field->alternate && value ? prefix : "", value, 16,
		   capitals ? "0123456789ABCDEF" : "0123456789abcdef");
}

static void put_octal(struct field *field, uint64_t value)
{
	put_number(field, field->alternate && value ? "0" : "", value, 8, "01234567");
}

static void put_string(struct field *field, const char *text)
{
	size_t limit = field->precision >= 0 ? (size_t)field->precision : INT_MAX;

	if (!text)
		text = "(null)";
	put_padded(field, "", 0, text, strnlen(text, limit));
}

static void put_pointer(struct field *field, void *pointer)
{
	field->alternate = true;
	put_hexadecimal(field, (uintptr_t)pointer, false);
}

static int64_t next_signed(const struct field *field, va_list *arguments)
{
	if (field->longs >= 2)
		return va_arg(*arguments, long long);
	int value = va_arg(*arguments, int);

	if (field->longs == -1)
		return (short)value;
	return field->longs < -1 ? (signed char)value : value;
}

static uint64_t next_unsigned(const struct field *field, va_list *arguments)
{
	if (field->longs >= 2)
		return va_arg(*arguments, unsigned long long);
	unsigned value = va_arg(*arguments, unsigned);

	if (field->longs == -1)
		return (unsigned short)value;
	return field->longs < -1 ? (unsigned char)value : value;
}

static const char *read_flags(struct field *field, const char *format)
{
	for (;; format++) {
		if (*format == '-')
			field->left = true;
		else if (*format == '0')
			field->zero = true;
		else if (*format == '#')
			field->alternate = true;
		else if (*format == '+')
			field->positive = '+';
		else if (*format != ' ')
			return format;
		else if (!field->positive)
			field->positive = ' ';
	}
}

static const char *read_number(int *number, const char *format, va_list *arguments)
{
	*number = 0;
	if (*format == '*') {
		*number = va_arg(*arguments, int);
		return format + 1;
	}
	for (; isdigit(*format); format++)
		*number = *number * 10 + *format - '0';
	return format;
}

static const char *read_length(struct field *field, const char *format)
{
	for (;; format++) {
		if (*format == 'l')
			field->longs++;
		else if (*format == 'h')
			field->longs--;
		else if (*format == 'j')
			field->longs = 2;
		else if (*format != 'z' && *format != 't')
			return format;
	}
}

/* Reads what is between '%' and the conversion's letter. Returns the letter's place. */
static const char *read_field(struct field *field, const char *format, va_list *arguments)
{
	field->left = field->zero = field->alternate = false;
	field->positive = field->longs = 0;
	field->precision = -1;
	format = read_flags(field, format);
	format = read_number(&field->width, format, arguments);
	if (field->width < 0) {
		field->left = true;
		field->width = -field->width;
	}
	if (*format == '.')
		format = read_number(&field->precision, format + 1, arguments);
	return read_length(field, format);
}

static void convert(struct field *field, char letter, va_list *arguments)
{
	switch (letter) {
	case 'd':
	case 'i':
		put_signed(field, next_signed(field, arguments));
		break;
	case 'u':
		put_number(field, "", next_unsigned(field, arguments), 10, "0123456789");
		break;
	case 'x':
	case 'X':
		put_hexadecimal(field, next_unsigned(field, arguments), letter == 'X');
		break;
	case 'o':
		put_octal(field, next_unsigned(field, arguments));
		break;
	case 'c':
		put_padded(field, "", 0, (char[]){ va_arg(*arguments, int) }, 1);
		break;
	case 's':
		put_string(field, va_arg(*arguments, const char *));
		break;
	case 'p':
		put_pointer(field, va_arg(*arguments, void *));
		break;
	default: /* "%%" */
		put(field, letter);
	}
}

int format_text(void (*put_one)(void *target, char character), void *target, const char *format,
		va_list arguments)
{
	struct field field = { .put = put_one, .target = target };
	va_list rest;

	va_copy(rest, arguments);
	for (; *format; format++) {
		if (*format != '%') {
			put(&field, *format);
			continue;
		}
		format = read_field(&field, format + 1, &rest);
		if (!*format)
			break;
		convert(&field, *format, &rest);
	}
	va_end(rest);
	return field.written;
}

/* ---- into memory ---- */

struct memory {
	char *text;
	size_t size, length;
};

static void put_into_memory(void *target, char character)
{
	struct memory *memory = target;

	if (memory->length + 1 < memory->size)
		memory->text[memory->length++] = character;
}

int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
	struct memory memory = { text, size, 0 };
	int length = format_text(put_into_memory, &memory, format, arguments);

	if (size > 0)
		text[memory.length] = '\0';
	return length;
}

int snprintf(char *text, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(text, size, format, arguments);

	va_end(arguments);
	return length;
}
