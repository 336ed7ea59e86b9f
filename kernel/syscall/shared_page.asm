; The page that every program sees at SHARED_PAGE, read-only: how to make a system call, and where
; signal handlers return to. Linux's programs look at it as at a shared library in memory (they are
; told its address by AT_SYSINFO_EHDR), so it begins with an ELF header.
;
; Tool Interface Standard, ELF 1.2, book I (headers, symbols, hash table) and book III (dynamic
; section).

%include "kernel/abi/numbers.inc"
%include "mm/space.inc"

SHARED_PAGE	equ SPACE_SHARED	; the last page below the kernel

%define address(label) (SHARED_PAGE + (label) - page)

section .rodata
bits 32
align 4096
global shared_page
shared_page:
page:
	db 0x7f, "ELF", 1, 1, 1		; 32 bits, little-endian, version 1
	times 9 db 0
	dw 3, 3				; a shared object, for the 386
	dd 1, 0				; version, no entry
	dd program_headers - page, 0, 0
	dw 52, 32, 2, 40, 0, 0		; sizes of headers, and their numbers

program_headers:
	dd 1, 0, SHARED_PAGE, SHARED_PAGE, end - page, end - page, 5, 4096
	dd 2, dynamic - page, address(dynamic), address(dynamic), strings - dynamic, \
		strings - dynamic, 4, 4

dynamic:
	dd 4, address(hash)		; DT_HASH
	dd 5, address(strings)		; DT_STRTAB
	dd 6, address(symbols)		; DT_SYMTAB
	dd 10, strings_end - strings	; DT_STRSZ
	dd 11, 16			; DT_SYMENT
	dd 14, name_page - strings	; DT_SONAME
	dd 0, 0

strings:
	db 0
name_page:	db "linux-gate.so.1", 0
name_call:	db "__kernel_vsyscall", 0
name_sigreturn:	db "__kernel_sigreturn", 0
name_rt_sigreturn: db "__kernel_rt_sigreturn", 0
strings_end:

%macro symbol 4				; name, label, end, section
	dd %1 - strings, address(%2), %3 - %2
	db 0x12, 0			; global, a function
	dw %4
%endmacro

	align 4, db 0
symbols:
	times 16 db 0
	symbol name_call, vsyscall, vsyscall_end, 1
	symbol name_sigreturn, sigreturn, rt_sigreturn, 1
	symbol name_rt_sigreturn, rt_sigreturn, end, 1

hash:					; one bucket: a list of all symbols
	dd 1, 4, 1
	dd 0, 2, 3, 0

; EXERCISE 3.4 (sysenter, part 3): the stub of ring 3 has the registers of INT 0x80 and must keep
; them all. SYSEXIT comes back with ECX, EDX changed, and with the ESP that was in EBP.
; An interrupted call is begun again two bytes before the place of return: there stands INT 0x80.
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

; Where a handler of a signal returns to, when its program brought no place of its own.
	align 16, db 0x90
sigreturn:
	pop eax				; the signal's number
	mov eax, SYS_sigreturn
	int 0x80
	align 16, db 0x90
rt_sigreturn:
	mov eax, SYS_rt_sigreturn
	int 0x80
end:
	align 4096, db 0

global shared_sysenter_return
shared_sysenter_return:	dd address(return_here)
global shared_vsyscall
shared_vsyscall:	dd address(vsyscall)
