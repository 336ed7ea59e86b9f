; The code that the command `roundtrip` times: an instruction that traps, between two readings of
; the time-stamp counter.
;
; Each trip exists twice. The kernel's is a function of C, with the argument on the stack. That of
; user mode is copied to a user page and run there: the argument is on top of the stack, and UD2
; ends it. EAX becomes the difference of the two readings.
;
; RDTSC is not serializing, but the IRET in between is; "nothing" gives what the measurement costs
; itself.

; %1: name for C's table, %2: for labels, %3 and more: the instruction
%macro trip 3+
section .rodata
	dd name_%2, %2_ring0, %2_ring3, %2_end - %2_ring3
section .data
name_%2: db %1, 0
section .text
%2_ring0:
	push ebx
	mov ebx, [esp + 8]
	rdtsc
	mov ecx, eax
	%3
	rdtsc
	sub eax, ecx
	pop ebx
	ret
%2_ring3:
	mov ebx, [esp]
	rdtsc
	mov ecx, eax
	%3
	rdtsc
	sub eax, ecx
	ud2
%2_end:
%endmacro

bits 32
section .rodata
	align 4
global trips				; struct trip, in labs/lesson2/tick_tax.c
trips:

trip "nothing", nothing, nop
trip "int3", breakpoint, int3
trip "page fault", fault, mov edx, [ebx]

section .rodata
	dd 0, 0, 0, 0			; the end of the table
