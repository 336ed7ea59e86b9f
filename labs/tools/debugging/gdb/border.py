"""Where the border is between the kernel's assembly and what it interrupted: an address at which no
code is, for a frame that only gdb sees (unwinding.py, entries.s)."""

BORDER = 0xFFFFE000
