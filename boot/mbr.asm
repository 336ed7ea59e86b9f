; The boot sector: the BIOS loads these 512 bytes to 0x7c00; they read the second stage and jump to
; it.
;
; The build passes STAGE2_SECTORS. A sector count is never written by hand: if a loader reads too
; little, the failure shows far from its cause.

; From the C headers of the same names: addresses, and ports.
%include "boot/second_stage.inc"
%include "kernel/cpu/machine.inc"
%include "kernel/cpu/pc.inc"

bits 16
org 0x7c00

CODE_LIMIT	equ 440			; then come a disk's signature and partition table
SLACK		equ 40			; bytes that stay free for changes
TRIES		equ 3			; a real disk may fail once and then work

%if STAGE2_SECTORS < 1 || STAGE2_ADDRESS + STAGE2_SECTORS * 512 > 0x10000
%error "the second stage must be within one 64 KiB segment: BIOS reads do not cross it"
%endif

start:
	jmp 0x0000:.segments		; some BIOSes enter at 07c0:0000; CS must be 0
.segments:
	cli				; no interrupt between the two halves of a new stack
	xor ax, ax
	mov ds, ax
	mov es, ax
	mov ss, ax
	mov sp, start			; the stack grows down from the boot sector
	sti
	cld
	mov [boot_drive], dl		; the one register that the BIOS promises to set

	; EXERCISE 1.4 (the boot loader, part 1): read the second stage with INT 13h, function 42h
	; (Enhanced Disk Drive specification 3.0). `packet` says how many sectors to read, to which
	; address, and from which LBA.
	; The carry flag says that a read failed. It is tried again after a reset of the drive
	; (function 0), whether that works or not; TRIES times in all. Then: SI = read_text,
	; [status] = the BIOS's status of the last read, and jump to fail. The last four bytes of
	; the second stage must be STAGE2_MAGIC. If they are not: SI = short_text, and jump to fail.
	; Pitfalls: the BIOS may change EAX to EDX, and writes into packet.count how many sectors
	; it has read. The boot drive is not always 0x80: it is in [boot_drive].
	; SOLUTION 1.4 {
	mov di, TRIES
.try:
	mov si, packet
	mov dl, [boot_drive]
	mov ah, 0x42			; extended read: DS:SI points to the packet
	int 0x13
	jnc .check
	mov [status], ah
	xor ah, ah			; reset the drive, then try again
	mov dl, [boot_drive]
	int 0x13
	mov word [packet.count], STAGE2_SECTORS	; the BIOS may have written what it managed to read
	dec di
	jnz .try
	mov si, read_text
	jmp fail

.check:
	mov si, short_text
	cmp dword [STAGE2_ADDRESS + STAGE2_SECTORS * 512 - 4], STAGE2_MAGIC
	jne fail
	; } SOLUTION 1.4
	mov dl, [boot_drive]
	jmp 0x0000:STAGE2_ADDRESS

; Prints the text at SI and the BIOS's status, and ends the run as kernel/cpu/machine.c does: QEMU's
; exit port, its power switch, or a stop.
fail:
	call print
	mov al, [status]
	shr al, 4
	call print_digit
	mov al, [status]
	and al, 0x0f
	call print_digit
stop:
	mov al, EXIT_FIRST + EXIT_BOOT_FAILED
	out EXIT_PORT, al
	mov dx, POWER_PORT
	mov ax, POWER_SOFT_OFF
	out dx, ax
.halt:
	cli
	hlt
	jmp .halt

print_digit:				; AL = 0 to 15
	cmp al, 10
	jb .decimal
	add al, 'a' - '0' - 10
.decimal:
	add al, '0'
	jmp print_character

print:					; SI = text, ended by a zero
	lodsb
	test al, al
	jz print_done
	call print_character
	jmp print

print_character:			; AL, to the serial line and to the screen
	mov cx, 0xffff
	mov ah, al
	mov dx, SERIAL_LINE_STATUS	; wait, with a bound, for an empty transmitter
.wait:
	in al, dx
	test al, SERIAL_CAN_SEND
	loopz .wait
	mov al, ah
	mov dx, SERIAL_PORT
	out dx, al
	mov ah, 0x0e			; teletype
	mov bx, 0x0007
	int 0x10
print_done:
	ret

read_text:	db 13, 10, "boot: cannot read stage 2, status ", 0
short_text:	db 13, 10, "boot: stage 2 is incomplete, status ", 0
status:		db 0
boot_drive:	db 0

	align 4
packet:					; Enhanced Disk Drive specification 3.0
	db 16, 0			; its size
.count:	dw STAGE2_SECTORS
	dw STAGE2_ADDRESS, 0		; offset and segment
	dq 1				; LBA: the sector after this one

code_end:
%if (code_end - start) > CODE_LIMIT - SLACK
%error "the boot sector is too long"
%endif

	times 510 - ($ - $$) db 0
	dw 0xaa55
