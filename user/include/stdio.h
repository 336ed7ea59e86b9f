/* Buffered input and output, and formatted text. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#define EOF    (-1)
#define BUFSIZ 1024

typedef struct stream FILE;

extern FILE *const stdin;
extern FILE *const stdout; /* written out at the end of a line on a terminal, else when full */
extern FILE *const stderr; /* written out at once */

/* mode: "r", "w" or "a". */
FILE *fopen(const char *path, const char *mode);
int fclose(FILE *stream);
int fflush(FILE *stream); /* NULL: all */
int fileno(FILE *stream);
int ferror(FILE *stream);
int feof(FILE *stream);

int fgetc(FILE *stream);
char *fgets(char *line, int size, FILE *stream);
size_t fread(void *memory, size_t size, size_t count, FILE *stream);
int fputc(int character, FILE *stream);
int fputs(const char *text, FILE *stream);
size_t fwrite(const void *memory, size_t size, size_t count, FILE *stream);

int getchar(void);
int putchar(int character);
int puts(const char *text);
void perror(const char *what);

/* The formats: %d %i %u %x %X %o %c %s %p %%, with the flags '-', '0', '#', '+' and ' ', a width
 * and a precision, and the lengths hh, h, l, ll, z, j and t. No floating point. */
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
int dprintf(int descriptor, const char *format, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int vfprintf(FILE *stream, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
