; From one task to another: the processor's state in the kernel is its stack, and what a C function
; must keep for its caller.

section .text
bits 32
extern task_switched

; EXERCISE 4.1 (threads, part 1): switch_to is an ordinary function for the task that calls it; it
; only takes its time.
; 1. Push what the caller expects to find again: EBP, EBX, ESI, EDI. Everything else the compiler
;    has saved, or does not need.
; 2. Save ESP in from->esp, load it from to->esp. It is the structure's first field.
; 3. Pop, in the opposite order, what the other task had pushed, and return to its caller.
; 4. thread_begin is where a new thread's first switch_to returns to. kthread_create (in
;    kernel/task/thread.c) has put the function, its argument and kthread_exit into EBX, ESI and EDI
;    of the forged frame. Call task_switched(), enable interrupts, call function(argument) with an
;    aligned stack, and when it returns, call kthread_exit().
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
	call edi
; } SOLUTION 4.1
