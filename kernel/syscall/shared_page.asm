; The page that every program sees at SHARED_PAGE, read-only: how to make a system call on this
; processor. Programs are told by the auxiliary vector where its code is.
;
;	SHARED_PAGE		room for a description of the page (kernel/linux)
;	SHARED_PAGE + ROOM	vsyscall: the same call as INT 0x80, faster
;
; The kernel has the page among its data, at another address, so its labels are counted from its
; beginning.

%include "mm/space.inc"

SHARED_PAGE	equ SPACE_SHARED	; the last page below the kernel
ROOM		equ 0x400

%define address(label) (SHARED_PAGE + (label) - shared_page)

section .data
bits 32
align 4096
global shared_page
shared_page:
	times ROOM db 0

; EXERCISE 3.4 (sysenter, part 3): vsyscall, the stub that programs call (CALL) with the registers
; of INT 0x80. It returns with the result in EAX and all other registers as they were. SYSEXIT
; comes back to return_here, with ECX and EDX changed, and ESP as EBP was at SYSENTER. The word at
; the top of the stack is then the sixth argument.
;
; Pitfall: a call that a signal interrupts is restarted two bytes before return_here. An INT 0x80
; must be there, and it must find the registers of the call.
; SOLUTION 3.4 {
	align 16, db 0x90
vsyscall:
	push ecx
	push edx
	push ebp			; the sixth argument
	mov ebp, esp
	sysenter
	int 0x80			; reached only when a call is restarted
return_here:
	pop ebp
	pop edx
	pop ecx
	ret
vsyscall_end:
; } SOLUTION 3.4

	align 4096, db 0

section .rodata
global shared_sysenter_return
shared_sysenter_return:	dd address(return_here)
global shared_vsyscall
shared_vsyscall:	dd address(vsyscall)
global shared_vsyscall_end
shared_vsyscall_end:	dd address(vsyscall_end)
