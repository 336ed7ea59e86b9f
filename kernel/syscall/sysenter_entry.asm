; Into a system call and back, by SYSENTER and SYSEXIT. Intel SDM volume 2, both instructions.
;
; By agreement with the shared page (shared_page.asm) EBP is the user's stack pointer, and the
; sixth argument is there. All else is as for INT 0x80.

%include "kernel/abi/entry.inc"
%include "kernel/abi/errno.inc"
%include "kernel/cpu/interrupts.inc"
%include "kernel/cpu/memory_layout.inc"
%include "kernel/cpu/task_state.inc"
%include "kernel/cpu/trap.inc"
%include "kernel/cpu/trap_frame.inc"

ESP0		equ TASK_STATE_ESP0
INTERRUPTS	equ EFLAGS_INTERRUPTS
HARMLESS	equ EFLAGS_ALWAYS_ONE

section .text
bits 32
extern syscall_dispatch
extern syscall_leave
extern trap_return_work
extern kernel_task
extern shared_sysenter_return

; EXERCISE 3.4 (sysenter, part 2): SYSENTER has loaded CS, SS, EIP and ESP from its MSRs and
; disabled interrupts. It has saved nothing. EBP is the user's stack pointer, by agreement with the
; stub.
;
; In:	the frame that INT 0x80 would have made, on the task's kernel stack (its top is at
;	[kernel_task + ESP0]): EIP is [shared_sysenter_return], ESP is what EBP was, EFLAGS are
;	the program's, as they still are, but with the interrupt flag set. The frame's EBP is the
;	sixth argument, the word that the user's EBP points to. Then syscall_dispatch(frame), with
;	interrupts enabled, and DF, NT and TF clear.
; Out:	the program gets the frame's flags and registers, but for ECX and EDX; by SYSEXIT, which
;	loads EIP from EDX and ESP from ECX and leaves EFLAGS alone. Only if there is no work, and
;	the frame's EIP is still the return address: otherwise syscall_leave, by IRET.
;
; Pitfalls: DS may be null at the entry, so read through CS. User mode may have set any flag: NT in
; the kernel would break the next IRET, TF would step the kernel. EBP is a user pointer: if the word
; there is not wholly below KERNEL_BASE, or is not mapped, the result of the call is -EFAULT and the
; program goes on (an entry in the section .fixups: the instruction, and where to resume). An
; interrupt between the restored flags and SYSEXIT would find no frame: STI takes effect only after
; the instruction that follows it.
; SOLUTION 3.4 {
global sysenter_entry
sysenter_entry:
	mov esp, [cs:kernel_task + ESP0]
	push dword USER_DATA
	push ebp
	pushf
	or dword [esp], INTERRUPTS
	push dword USER_CODE
	push dword [cs:shared_sysenter_return]
	push eax
	push dword SYSCALL_VECTOR
	save_registers
	push dword HARMLESS
	popf
	sti
	cmp ebp, KERNEL_BASE - 4
	ja bad_stack
.sixth_argument:
	mov eax, [ebp]
	mov [esp + FRAME_EBP], eax
	push esp
	call syscall_dispatch
	cli
.leave:
	cmp dword [trap_return_work], 0
	jne syscall_leave
	mov edx, [esp + 4 + FRAME_EIP]
	cmp edx, [shared_sysenter_return]
	jne syscall_leave
	add esp, 4
	mov ecx, [esp + FRAME_ESP]
	mov [esp + FRAME_EDX], edx	; where POPA finds them
	mov [esp + FRAME_ECX], ecx
	restore_registers
	add esp, 8			; EIP and CS
	and dword [esp], ~INTERRUPTS
	popf
	sti				; takes effect after the next instruction
	sysexit

bad_stack:
	mov dword [esp + FRAME_EAX], -EFAULT
	push esp
	cli
	jmp sysenter_entry.leave

section .fixups
	dd sysenter_entry.sixth_argument, bad_stack
; } SOLUTION 3.4
