; Where the processor enters the kernel: one stub for each of the 256 vectors, and the code they
; share.

%include "kernel/cpu/trap_frame.inc"

; Vectors for which the processor pushes an error code: Intel SDM volume 3, table 6-1.
%define has_error_code(vector) ((vector) == 8 || ((vector) >= 10 && (vector) <= 14) || \
	(vector) == 17 || (vector) == 21 || (vector) == 29 || (vector) == 30)

section .text
bits 32
extern trap_dispatch

	; EXERCISE 2.3 (interrupts, part 2): 256 stubs, trap_stub_0 to trap_stub_255, by %rep. Each
	; makes the stack look the same (a zero where the processor pushes no error code), pushes
	; its vector, and jumps to trap_common.
	; SOLUTION 2.3 {
%assign vector 0
%rep 256
trap_stub_ %+ vector:
%if !has_error_code(vector)
	push dword 0			; so that every frame looks the same
%endif
	push dword vector
	jmp trap_common
%assign vector vector + 1
%endrep
	; } SOLUTION 2.3

; Makes a struct trap_frame (kernel/cpu/trap.h), calls trap_dispatch, and goes back.
trap_common:
	; EXERCISE 2.3 (interrupts, part 3): save, call, restore.
	; 1. save_registers: part 4, in kernel/cpu/trap_frame.inc.
	; 2. trap_dispatch(frame): the frame begins where ESP points.
	; 3. restore_registers, IRET. It brings the interrupt flag back; until then interrupts stay
	;    off.
	; SOLUTION 2.3 {
	save_registers
	push esp
	call trap_dispatch
	add esp, 4
	restore_registers
	iret
	; } SOLUTION 2.3

section .rodata
global trap_stubs
trap_stubs:
%assign vector 0
%rep 256
	dd trap_stub_ %+ vector
%assign vector vector + 1
%endrep
