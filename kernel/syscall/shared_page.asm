; The page that every program sees at SHARED_PAGE, read-only: how to make a system call on this
; processor. Programs are told by the auxiliary vector where its code is.
;
;	SHARED_PAGE		room for a description of the page, for who wants one
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

; EXERCISE 3.4 (sysenter, part 3): the user's stub has the registers of INT 0x80 and must keep
; them all. SYSEXIT comes back with ECX, EDX changed, and with the ESP that was in EBP.
; An interrupted call is made again two bytes before the place of return: INT 0x80 must be there.
; SOLUTION 3.4 {
	align 16, db 0x90
vsyscall:
	push ecx
	push edx
	push ebp			; the sixth argument
	mov ebp, esp
	sysenter
	int 0x80			; never reached but by a call that begins again
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
