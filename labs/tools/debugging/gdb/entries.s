# Tells gdb how the kernel was entered: call frame information, and no code.
#
# labs/tools/debugging/debug.py adds a line for each place, assembles this, and links each section to
# its place. DWARF 4, section 6.4.
#
# `entry` is for the calls in the kernel's assembly that pass C a struct trap_frame (kernel/cpu/trap.h):
# its address is on top of the stack there. `border` is for a frame that unwinding.py puts between
# assembly and what it will go back to by IRET: ESP is at what that instruction pops. Both are marked
# as for a signal handler: then gdb takes the address of the interrupted instruction as it is, not as
# that behind a call. `outermost` has no caller.

	.cfi_sections .debug_frame
	.set	breg_esp, 0x74		# DW_OP_breg4: ESP plus a signed LEB128
	.set	deref, 0x06
	.set	plus, 0x23		# DW_OP_plus_uconst
	.set	CALL, 6			# bytes of the call, and one more: gdb looks up both ends

	# A register that lies in the frame: DW_CFA_expression with its number.
	.macro	saved number, offset
	.cfi_escape 0x10, \number, 5, breg_esp, 0, deref, plus, \offset
	.endm

	.macro	place name
	.section \name, "ax"
	.cfi_startproc simple
	.endm

	.macro	placed size
	.skip	\size
	.cfi_endproc
	.endm

	.macro	entry name
	place	\name
	.cfi_signal_frame
	# ESP before: the address of user_esp, or its contents when cs & 3 says ring 3.
	.cfi_escape 0x0f, 19
	.cfi_escape breg_esp, 0, deref, plus, 68	# &frame->user_esp
	.cfi_escape breg_esp, 0, deref, plus, 60, deref	# frame->cs
	.cfi_escape 0x33, 0x1a				# lit3, and
	.cfi_escape 0x30, 0x29				# lit0, eq
	.cfi_escape 0x28, 1, 0				# bra over the next
	.cfi_escape deref
	saved	7, 0		# edi
	saved	6, 4		# esi
	saved	5, 8		# ebp
	saved	3, 16		# ebx
	saved	2, 20		# edx
	saved	1, 24		# ecx
	saved	0, 28		# eax
	saved	8, 56		# eip
	saved	41, 60		# cs
	saved	9, 64		# eflags
	placed	CALL
	.endm

	.macro	border name
	place	\name
	.cfi_signal_frame
	.cfi_escape 0x0f, 13
	.cfi_escape breg_esp, 12			# the address of the user's ESP
	.cfi_escape breg_esp, 4, deref			# CS
	.cfi_escape 0x33, 0x1a, 0x30, 0x29		# lit3, and, lit0, eq
	.cfi_escape 0x28, 1, 0, deref			# bra over the next
	.cfi_escape 0x10, 8, 2, breg_esp, 0		# eip
	.cfi_escape 0x10, 41, 2, breg_esp, 4		# cs
	.cfi_escape 0x10, 9, 2, breg_esp, 8		# eflags
	placed	2		# gdb looks up the address before, too
	.endm

	.macro	outermost name, size
	place	\name
	.cfi_def_cfa	4, 4
	.cfi_undefined	8
	placed	\size
	.endm
