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

; EXERCISE 3.4 (sysenter, part 2): the processor has loaded CS, SS, EIP and ESP from its registers,
; has switched interrupts off, and has saved nothing.
; 1. ESP is of no use: take the task's stack, [kernel_task + ESP0]. DS is still the user's, and may
;    be null: read through CS.
; 2. Build the frame that INT 0x80 would have built: SS, ESP, EFLAGS (with interrupts on: SYSENTER
;    cleared them), CS, EIP = [shared_sysenter_return], number, vector; save_registers.
; 3. User mode may have set any flag: load HARMLESS ones. Then interrupts may come.
; 4. Read the sixth argument from the user's stack into the frame's EBP. The address may be
;    anything: a word that is not below KERNEL_BASE, or is not there, makes the result -EFAULT and
;    skips the call. The instruction that reads it goes into the section .fixups, with the place to
;    continue at.
; 5. syscall_dispatch(frame).
; 6. With interrupts off: SYSEXIT is for the plain case only: no work, and EIP is still that of step
;    2. Otherwise syscall_leave.
; 7. SYSEXIT takes EIP from EDX and ESP from ECX, and leaves the flags alone: restore them, but for
;    interrupts; those go on with the last instruction before it, not earlier.
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
