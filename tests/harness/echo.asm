; echo.asm: a prompt that answers each line in upper case; "quit" ends the machine with status 5.
%include "guest.inc"

main:
	cli ; wherever it is stopped, it is here and not in the BIOS's handler of the timer
	mov si, prompt
	call print
	mov di, line
.next:
	call get
	cmp al, 10
	je .answer
	mov [di], al
	inc di
	jmp .next
.answer:
	mov byte [di], 0
	cmp dword [line], "quit"
	je .quit
	mov si, line
.upper:
	lodsb
	test al, al
	jz .newline
	and al, 0xdf
	call put
	jmp .upper
.newline:
	mov al, 10
	call put
	jmp main
.quit:
	mov al, 5
	jmp end_machine

; Waits for a character and returns it in al.
get:
	mov dx, 0x3fd
.wait:
	in al, dx
	test al, 1
	jz .wait
	mov dx, 0x3f8
	in al, dx
	ret

prompt:
	db "> ", 0
boot_signature
line equ 0x8000
