; panic.asm: ends as the kernel does after a panic, with its words and status 63.
%include "guest.inc"

main:
	mov si, text
	call print
	mov al, 63
	jmp end_machine

text:
	db "booting", 10, "PANIC: page fault at 0x00000010", 10, "EAX=0", 10
	db "backtrace:", 10, "  0xc0101234 page_free+0x24", 10, 0
boot_signature
