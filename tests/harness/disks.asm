; disks.asm: ATA commands in programmed I/O on three drives; the table says which.
%include "guest.inc"

SELECT_LBA equ 0xe0
SLAVE equ 0x10

main:
	mov si, commands
.next:
	cmp word [si], 0
	je .end
	call issue
	call transfer
	add si, COMMAND_SIZE
	jmp .next
.end:
	mov al, 0
	jmp end_machine

; Writes the command at si: device, the "previous" registers, the current ones, the opcode.
issue:
	mov dx, [si]
	add dx, 6
	mov al, [si + 2]
	out dx, al
	lea bx, [si + 4]
	call four
	lea bx, [si + 8]
	call four
	mov dx, [si]
	add dx, 7
	mov al, [si + 3]
	out dx, al
	ret

; Writes sector count and the three address registers from the four bytes at bx.
four:
	mov dx, [si]
	add dx, 2
	mov cx, 4
.next:
	mov al, [bx]
	out dx, al
	inc bx
	inc dx
	loop .next
	ret

; Moves data while the drive asks for it. Prints the first byte of the last sector read, "." for
; no data, "E" for an error.
transfer:
	mov byte [letter], "."
.poll:
	mov dx, [si]
	add dx, 7
	in al, dx
	test al, 0x80
	jnz .poll
	test al, 0x01
	jnz .error
	test al, 0x08
	jz .done
	mov dx, [si]
	mov cx, 256
	cmp byte [si + 12], 0
	jne .write
	mov di, buffer
	rep insw
	mov al, [buffer]
	mov [letter], al
	jmp .poll
.write:
	push si
	mov si, buffer
	rep outsw
	pop si
	jmp .poll
.error:
	mov byte [letter], "E"
.done:
	mov al, [letter]
	jmp put

; command base, device, opcode, sector count (0 is 256, or 65536), 48-bit address, direction
%macro command 6
	dw %1
	db %2, %3
	db (%4) >> 8, ((%5) >> 24) & 0xff, ((%5) >> 32) & 0xff, ((%5) >> 40) & 0xff
	db (%4) & 0xff, (%5) & 0xff, ((%5) >> 8) & 0xff, ((%5) >> 16) & 0xff
	db %6
%endmacro
COMMAND_SIZE equ 13

commands:
	command 0x1f0, SELECT_LBA | SLAVE, 0x20, 1, 5, 0 ; hdb: READ SECTORS
	command 0x170, SELECT_LBA, 0xc6, 16, 0, 0 ; hdc: SET MULTIPLE MODE
	command 0x170, SELECT_LBA, 0xc4, 0, 0x20, 0 ; hdc: READ MULTIPLE, 256 sectors
	command 0x170, SELECT_LBA | SLAVE, 0x24, 3, 0x12345678, 0 ; hdd: READ SECTORS EXT
	command 0x170, SELECT_LBA | SLAVE, 0xc6, 16, 0, 0 ; hdd: SET MULTIPLE MODE
	command 0x170, SELECT_LBA | SLAVE, 0x29, 32, 0x12345600, 0 ; hdd: READ MULTIPLE EXT
	command 0x1f0, SELECT_LBA | SLAVE, 0x30, 2, 7, 1 ; hdb: WRITE SECTORS
	command 0x1f0, SELECT_LBA | SLAVE, 0xe7, 0, 0, 0 ; hdb: FLUSH CACHE
	command 0x1f0, SELECT_LBA | SLAVE | 1, 0x20, 1, 0x000002, 0 ; hdb: beyond the end
	command 0x1f0, SELECT_LBA | SLAVE, 0x20, 1, 9, 0 ; hdb: READ SECTORS
	dw 0

letter equ 0x7ffe
buffer equ 0x8000
boot_signature
