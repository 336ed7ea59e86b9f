; To user mode and back.
;
; IRET to a lower privilege level also loads that level's stack. Its frame is, from the top down:
; SS, ESP, EFLAGS, CS, EIP. The way back is a trap. user_enter keeps its stack pointer, so that
; user_leave can return from it.

%include "kernel/cpu/selectors.inc"	; USER_CODE, USER_DATA, KERNEL_DATA
%include "kernel/cpu/interrupts.inc"

INTERRUPTS_ON	equ EFLAGS_INTERRUPTS | EFLAGS_ALWAYS_ONE	; and IOPL 0

extern task_state_set_stack

section .text
bits 32
; void user_enter(uint32_t eip, uint32_t esp)
; Returns when user_leave is called.
global user_enter
user_enter:
	push ebp
	mov ebp, esp
	push ebx
	push esi
	push edi
	mov [kernel_stack], esp
	; EXERCISE 2.6 (user mode, part 2): user_enter(eip, esp): eip is at [ebp + 8], esp at [ebp +
	; 12]. Enters user mode by IRET, at eip, with the stack esp, USER_CODE, and USER_DATA in all
	; data segment registers and SS; interrupts enabled, IOPL 0. The next trap from user mode
	; finds the kernel's stack as it is now (task_state_set_stack), so that user_leave can
	; return from here.
	; Pitfalls: IRET to a lower privilege takes five words (Intel SDM volume 3, figure 6-4).
	; Flags that PUSHF delivers are the kernel's. Whatever is left in a register, the user can
	; read: the general registers must be 0.
	; SOLUTION 2.6 {
	push esp
	call task_state_set_stack
	add esp, 4
	mov ax, USER_DATA
	mov ds, ax
	mov es, ax
	mov fs, ax
	mov gs, ax
	push dword USER_DATA
	push dword [ss:ebp + 12]
	push dword INTERRUPTS_ON
	push dword USER_CODE
	push dword [ss:ebp + 8]
	xor eax, eax
	xor ebx, ebx
	xor ecx, ecx
	xor edx, edx
	xor esi, esi
	xor edi, edi
	xor ebp, ebp
	iret
	; } SOLUTION 2.6

; void user_leave(void)
; Called in a trap from user mode; returns from user_enter.
global user_leave
user_leave:
	mov esp, [kernel_stack]
	xor eax, eax
	mov fs, ax
	mov gs, ax
	mov ax, KERNEL_DATA
	mov ds, ax
	mov es, ax
	pop edi
	pop esi
	pop ebx
	pop ebp
	sti
	ret

section .bss
kernel_stack:	resd 1
