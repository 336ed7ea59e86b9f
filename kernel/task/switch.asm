; From one task to another: the processor's state in the kernel is its stack, and what a C function
; must keep for its caller.

%include "kernel/cpu/trap_frame.inc"

section .text
bits 32
extern task_switched
extern task_before_user
extern task_forked
extern kthread_exit

; EXERCISE 4.1 (threads, part 1): switch_to is an ordinary function for the task that calls it; it
; only takes its time.
; 1. Push what the caller expects to find again: EBP, EBX, ESI, EDI. Everything else the compiler
;    has saved, or does not need.
; 2. Save ESP in from->esp, load it from to->esp. It is the structure's first field.
; 3. Pop, in the opposite order, what the other task had pushed, and return to its caller.
; 4. thread_begin is where a new thread's first switch_to returns to. kthread_create (in
;    kernel/task/thread.c) has put function and argument into EBX and ESI of the forged frame. Call
;    task_switched(), switch interrupts on, call function(argument) with an aligned stack, and when
;    it returns, kthread_exit().
; SOLUTION 4.1 {
; void switch_to(struct task *from, struct task *to)
global switch_to
switch_to:
	mov eax, [esp + 4]
	mov edx, [esp + 8]
	push ebp
	push ebx
	push esi
	push edi
	mov [eax], esp
	mov esp, [edx]
	pop edi
	pop esi
	pop ebx
	pop ebp
	ret

global thread_begin
thread_begin:
	call task_switched
	sti
	and esp, -16
	sub esp, 12
	push esi
	call ebx
	call kthread_exit
; } SOLUTION 4.1

; Where the first switch_to of a program returns to. ESP is at the frame of ring 3, as trap.h
; has it.
global program_begin
program_begin:
	call task_switched
	call task_forked
	jmp to_user

; void task_enter_user(struct trap_frame *frame) Goes to ring 3; does not return. The frame is at
; the top of the task's stack.
global task_enter_user
task_enter_user:
	cli
	mov esp, [esp + 4]
to_user:
	push esp
	call task_before_user
	add esp, 4
	restore_registers
	iret
