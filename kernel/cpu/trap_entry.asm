; Where the processor enters the kernel: one stub for each of the 256 vectors, and the code they
; share.

%include "kernel/cpu/trap_frame.inc"

; Vectors for which the processor pushes an error code: Intel SDM volume 3, table 6-1.
%define has_error_code(vector) ((vector) == 8 || ((vector) >= 10 && (vector) <= 14) || \
	(vector) == 17 || (vector) == 21 || (vector) == 29 || (vector) == 30)

section .text
bits 32
extern trap_dispatch

	; EXERCISE 2.3 (interrupts, part 2): the 256 stubs trap_stub_0 to trap_stub_255, made by
	; %rep. Each leaves the same layout on the stack: an error code (0 where the processor
	; pushes none, see has_error_code) and then its vector. All continue at trap_common.
	; Pitfall: a vector above 127 does not fit into a signed byte.
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
	; EXERCISE 2.3 (interrupts, part 3): completes the struct trap_frame (save_registers, part
	; 4, in kernel/cpu/trap_frame.inc), calls trap_dispatch(frame), and returns to the
	; interrupted code with all its registers. Interrupts stay disabled until then.
	; Pitfalls: the argument is a pointer, not the frame itself; the word that holds it belongs
	; to trap_dispatch, which may change it. IRET expects EIP on top of the stack.
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
