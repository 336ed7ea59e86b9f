; The beginning of the shared page, as Linux's C libraries expect it. They treat it as a shared
; library in memory (they are told its address by AT_SYSINFO_EHDR), so it begins with an ELF header,
; and has symbols: of the call, and of what handlers of signals return to.
;
; Tool Interface Standard, ELF 1.2, book I (headers, symbols, hash table) and book III (dynamic
; section); Linux Standard Base, core, chapter 10.7 (versions).

%include "kernel/abi/signal_return.inc"
%include "mm/space.inc"

SHARED_PAGE	equ SPACE_SHARED

%define address(label) (SHARED_PAGE + (label) - page)

section .rodata
bits 32
align 16
global shared_page_elf
shared_page_elf:
page:
	db 0x7f, "ELF", 1, 1, 1		; 32 bits, little-endian, version 1
	times 9 db 0
	dw 3, 3				; a shared object, for the 386
	dd 1, 0				; version, no entry
	dd program_headers - page, 0, 0
	dw 52, 32, 2, 40, 0, 0		; sizes of headers, and their numbers

; One segment to load, which is the page itself, and the dynamic section in it.
program_headers:
	dd 1, 0, SHARED_PAGE, SHARED_PAGE, 4096, 4096, 5, 4096
	dd 2, dynamic - page, address(dynamic), address(dynamic), strings - dynamic, \
		strings - dynamic, 4, 4

; Where a dynamic linker finds the tables: pairs of a tag and an address, a size or an offset into
; the strings.
dynamic:
	dd 4, address(hash)		; DT_HASH
	dd 5, address(strings)		; DT_STRTAB
	dd 6, address(symbols)		; DT_SYMTAB
	dd 10, strings_end - strings	; DT_STRSZ
	dd 11, 16			; DT_SYMENT
	dd 14, name_page - strings	; DT_SONAME
	dd 0x6ffffff0, address(versions) ; DT_VERSYM
	dd 0x6ffffffc, address(defined)	; DT_VERDEF
	dd 0x6ffffffd, 2		; DT_VERDEFNUM
	dd 0, 0

; A symbol has its name by an offset into these; offset 0 is the empty one.
strings:
	db 0
name_page:	db "linux-gate.so.1", 0
name_call:	db "__kernel_vsyscall", 0
name_sigreturn:	db "__kernel_sigreturn", 0
name_rt_sigreturn: db "__kernel_rt_sigreturn", 0
name_version:	db "LINUX_2.5", 0
strings_end:

%macro symbol 4				; name, label, end, section
	dd %1 - strings, address(%2), %3 - %2
	db 0x12, 0			; global, a function
	dw %4
%endmacro

	align 4, db 0
symbols:
	times 16 db 0			; symbol 0 is none
global shared_page_call
shared_page_call:			; what exercise 3.4 writes: filled in by shared_page_elf.c
	symbol name_call, page, page, 1
	symbol name_sigreturn, sigreturn, rt_sigreturn, 1
	symbol name_rt_sigreturn, rt_sigreturn, end, 1

; A library is asked for symbols that it does not have: with 16 buckets the lists of those that
; glibc asks for, such as __vdso_time, are empty. The symbols' own are 12, 14 and 14.
hash:
	dd 16, 4			; buckets, symbols
	times 12 dd 0
	dd 1, 0, 2, 0			; buckets 12 to 15: their first symbols
	dd 0, 0, 3, 0			; the next one after each symbol

; The version of each symbol, and the two that there are: the library's own, and Linux's. Programs
; in Go look for versions without asking whether there are any.
%macro version 5			; flags, number, hash, name, bytes to the next one
	dw 1, %1, %2, 1
	dd %3, 20, %5
	dd %4 - strings, 0
%endmacro

; Flag 1 (VER_FLG_BASE) marks the library's own; the hashes are ELF's, of the names.
defined:
	version 1, 1, 0x0fcef091, name_page, 28
	version 0, 2, 0x03ae75f5, name_version, 0
versions:
	dw 0, 2, 2, 2

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
global shared_page_elf_end
shared_page_elf_end:
