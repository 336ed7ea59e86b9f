; dma.asm: one READ DMA EXT on the last drive (hdd), by the bus master of the PIIX3.
%include "guest.inc"

ADDRESS_PORT equ 0xcf8
DATA_PORT equ 0xcfc
IDE_FUNCTION equ 0x80000900		; bus 0, device 1, function 1
SECTORS equ 24
LBA equ 0x10203040

main:
	mov eax, IDE_FUNCTION + 4	; the command register: I/O space and bus master
	mov edx, 5
	call write_configuration
	mov eax, IDE_FUNCTION + 0x20	; where the bus master's registers are
	mov dx, ADDRESS_PORT
	out dx, eax
	mov dx, DATA_PORT
	in eax, dx
	and al, 0xf0
	mov bx, ax
	mov dword [table], buffer
	mov dword [table + 4], 0x80000000 | SECTORS * 512
	lea dx, [bx + 12]
	mov eax, table
	out dx, eax
	mov si, registers
.next:
	lodsw
	mov dx, ax
	lodsb
	out dx, al
	cmp dx, 0x177
	jne .next
	cmp al, 0x25
	jne .next
	lea dx, [bx + 8]
	mov al, 9			; start, from the drive to memory
	out dx, al
	lea dx, [bx + 10]
.poll:
	in al, dx
	test al, 1
	jnz .poll
	mov al, [buffer + (SECTORS - 1) * 512]
	call put
	mov al, 0
	jmp end_machine

; Writes edx to the PCI configuration register eax.
write_configuration:
	push edx
	mov dx, ADDRESS_PORT
	out dx, eax
	pop eax
	mov dx, DATA_PORT
	out dx, eax
	ret

%macro register 2
	dw %1
	db %2
%endmacro
registers:
	register 0x176, 0xf0
	register 0x172, 0
	register 0x173, (LBA >> 24) & 0xff
	register 0x174, 0
	register 0x175, 0
	register 0x172, SECTORS
	register 0x173, LBA & 0xff
	register 0x174, (LBA >> 8) & 0xff
	register 0x175, (LBA >> 16) & 0xff
	register 0x177, 0x25
boot_signature
table equ 0x7e00
buffer equ 0x8000
