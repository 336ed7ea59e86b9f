; settings.asm: prints the seed and the script that the host gave, read from fw_cfg.
%include "guest.inc"

FW_CFG_SELECT equ 0x510
FW_CFG_DATA equ 0x511
FW_CFG_DIRECTORY equ 0x19
ENTRY_SIZE equ 64

main:
	mov si, seed
	call print_item
	mov si, script
	call print_item
	mov al, 0
	jmp end_machine

; Prints the item whose name is at si, if there is one.
print_item:
	mov dx, FW_CFG_SELECT
	mov ax, FW_CFG_DIRECTORY
	out dx, ax
	mov di, entry
	mov cx, 4
	call read_bytes
	mov bl, [entry + 3]		; how many, big-endian; fewer than 256
.next:
	mov di, entry
	mov cx, ENTRY_SIZE
	call read_bytes
	push si
	mov di, entry + 8
	mov cx, [si]
	add si, 2
	repe cmpsb
	pop si
	je .found
	dec bl
	jnz .next
	ret
.found:
	mov ax, [entry + 4]
	xchg al, ah
	mov dx, FW_CFG_SELECT
	out dx, ax
	mov cx, [entry + 2]
	xchg cl, ch
	mov dx, FW_CFG_DATA
.character:
	in al, dx
	call put
	loop .character
	mov al, 10
	jmp put

; Reads cx bytes of the selected item to di.
read_bytes:
	mov dx, FW_CFG_DATA
	rep insb
	ret

%macro name 1
	dw %%end - $ - 2
	db %1, 0
%%end:
%endmacro
seed:
	name "opt/org.apprentice/seed"
script:
	name "opt/org.apprentice/script"
boot_signature
entry equ 0x8000
