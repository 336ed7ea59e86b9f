; Into a system call and back, by INT 0x80.
;
; The error code of the frame is the number of the call: eax is overwritten with the result, and a
; call that a signal interrupted may have to be restarted.

%include "kernel/abi/entry.inc"		; SYSCALL_VECTOR
%include "kernel/cpu/trap_frame.inc"

section .text
bits 32
extern syscall_dispatch
extern trap_return
extern trap_return_work

; EXERCISE 3.1 (the gate, part 1): into the kernel and back.
;
; syscall_entry	The gate of vector 0x80 leads here, on the task's kernel stack, which has the
;		user's EIP, CS, EFLAGS, ESP and SS. Interrupts are enabled. Completes a struct
;		trap_frame (kernel/cpu/trap.h), with the number of the call as its error_code, and
;		calls syscall_dispatch(frame).
; syscall_leave	Goes back to user mode, with the registers that the frame holds. SYSENTER's calls
;		jump to this label, too: interrupts are disabled, and below the frame there is
;		still one word, the argument of the last call. While trap_return_work (32 bits) is
;		not 0, trap_return(frame) must be called: it does that work, and may leave more.
;
; Pitfalls: work that an interrupt adds after the last check would wait for the next trap. The word
; that holds an argument belongs to the function that is called: after the call it may be changed.
; SOLUTION 3.1 {
global syscall_entry
syscall_entry:
	push eax
	push dword SYSCALL_VECTOR
	save_registers
	push esp
	call syscall_dispatch
	cli
global syscall_leave
syscall_leave:
	pop eax				; the argument's word: the callee may have changed it
	cmp dword [trap_return_work], 0
	jne .work
	restore_registers
	iret
.work:
	push esp
	call trap_return
	cli
	jmp syscall_leave
; } SOLUTION 3.1
