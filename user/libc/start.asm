; The first instructions of a program. Linux's stack at entry: argc, argv[], 0, envp[], 0, auxv[].

%include "kernel/abi/signal_return.inc"	; from the C header of the same name

extern libc_start

section .text
bits 32

global _start
_start:
	xor ebp, ebp		; the end of the chain of frames
	mov eax, esp
	and esp, -16		; a call wants the stack aligned when its argument is pushed
	sub esp, 12
	push eax
	call libc_start		; never returns

; Where a signal handler returns to. The frame that the kernel made begins 4 bytes below esp, or
; 8 below once the signal's number is popped; each call wants the one that it knows. A debugger
; looks up the byte before: a return address is after a call.
returned_from_handler:
	nop
global signal_return
signal_return:
	pop eax
	mov eax, SYS_sigreturn
	int 0x80

global signal_information_return
signal_information_return:
	mov eax, SYS_rt_sigreturn
	int 0x80

section .note.GNU-stack noalloc noexec nowrite progbits
