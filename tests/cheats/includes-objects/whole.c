/* The object file of the reference, as data, and a linker's option in a section. */
__asm__(".section .text\n.incbin \"@ROOT@/build/objects/@FILE@.o\"\n");
