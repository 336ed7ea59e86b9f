; Into a system call and back, by INT 0x80.
;
; The error code of the frame is the number of the call: eax is overwritten with the result, and a
; call that a signal interrupted may have to be begun again.

%include "kernel/abi/entry.inc"		; SYSCALL_VECTOR
%include "kernel/cpu/trap_frame.inc"

section .text
bits 32
extern syscall_dispatch
extern trap_return
extern trap_return_work

; EXERCISE 3.1 (the gate, part 1): INT 0x80 comes here from user mode, on the kernel's stack, with
; EIP, CS, EFLAGS, ESP, SS on it.
; 1. Push the number of the call as the error code, then the vector; save_registers.
; 2. syscall_dispatch(frame).
; 3. syscall_leave: SYSENTER's calls come here as well, with the argument on the stack still, and
;    interrupts off. While trap_return_work is not 0: trap_return(frame), and look again, with
;    interrupts off.
; 4. Drop the argument, restore_registers, IRET.
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
	cmp dword [trap_return_work], 0
	jne .work
	add esp, 4
	restore_registers
	iret
.work:
	call trap_return
	cli
	jmp syscall_leave
; } SOLUTION 3.1
