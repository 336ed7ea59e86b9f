; The way to user mode for a program's task that gets the processor for the first time, and for a
; task that has become a program.
;
; Both leave the kernel the way every trap does: the frame at the top of the task's kernel stack is
; popped, and IRET goes to the program. Before that, pending work is done: task_before_user.

%include "kernel/cpu/trap_frame.inc"

section .text
bits 32
extern task_switched
extern task_before_user
extern process_forked

; Where the first switch_to of a forked program returns to. ESP is at the frame of user mode.
global program_begin
program_begin:
	call task_switched
	call process_forked
	jmp to_user

; void program_enter(struct trap_frame *frame) Goes to user mode; does not return. The frame is at
; the top of the task's stack.
global program_enter
program_enter:
	cli
	mov esp, [esp + 4]
to_user:
	push esp
	call task_before_user
	add esp, 4
	restore_registers
	iret
