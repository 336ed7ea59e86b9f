; The task switch: what is saved is the stack pointer, and the registers that a C function must
; preserve for its caller.

section .text
bits 32
extern task_switched

; EXERCISE 4.1 (threads, part 1):
;
; switch_to(from, to)	an ordinary C function for the task that calls it: it returns when `from`
;			gets the processor again, with the registers that every C function must
;			preserve (System V ABI for the i386, 3-11). In between, ESP is in
;			from->esp, the first field of struct task, and the stack there holds a
;			struct switch_frame (kernel/task/switch.h).
; thread_begin		where the first switch_to to a new thread "returns" to, with the registers
;			of the forged frame (kernel/task/thread.c): EBX the function, ESI its
;			argument, EDI kthread_exit. Calls task_switched(), then function(argument)
;			with interrupts enabled, and kthread_exit() when that returns.
;
; Pitfalls: there is no return address on thread_begin's stack. Once the arguments of a CALL are
; pushed, the stack pointer must be a multiple of 16.
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
