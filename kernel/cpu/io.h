/* Port input and output. */
#pragma once

#include <stdint.h>

static inline uint8_t in8(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static inline void out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void out16(uint16_t port, uint16_t value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline void out32(uint16_t port, uint32_t value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

/* Reads count bytes from a port into buffer. */
static inline void in8_repeat(uint16_t port, void *buffer, unsigned count)
{
	__asm__ volatile("cld; rep insb" : "+D"(buffer), "+c"(count) : "d"(port) : "memory");
}
