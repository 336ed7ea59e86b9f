# Every command a person types. `make` alone prints them; labs/tools has their programs.

MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# A variable of Python's or pytest's in a person's environment changes nothing here, no grade above
# all. PYTHON=NAME is for set-up.
NAMED_PYTHON := $(PYTHON)
$(foreach each,$(filter PYTHON% PYTEST_%,$(.VARIABLES)),$(eval unexport $(each)))

BUILD  := build
override PYTHON := .venv/bin/python
export PYTHONDONTWRITEBYTECODE := 1
export PYTHONUTF8 := 1

# --- what a person may set ----------------------------------------------------------------------

BOOT ?= disk
MEM  ?= 64
SEED ?= 2010
BREADTH ?= yes

# The lessons that are here: a student's tree has those up to its own.
LESSONS := $(sort $(patsubst labs/lesson%/sources,%,$(wildcard labs/lesson*/sources)))

# --- commands -----------------------------------------------------------------------------------

.PHONY: help run gdb hint grade replay diff map measure submit doctor setup format handouts clean \
	image

help::
	@echo "Apprentice: an i386 kernel to learn from. The commands:"
	@echo
	@echo "  make run        boot to the kernel's prompt in this terminal (exit leaves);"
	@echo "                  without a terminal, a short script"
	@echo "                    LESSON=n                the kernel after lesson n:" $(LESSONS)
	@echo "                    BOOT=disk|grub|direct   our loader, GRUB's CD, qemu -kernel"
	@echo "                    MEM=64                  megabytes of memory, 16 to 1024"
	@echo "                    BREADTH=no              only what the lessons teach: the core"
	@echo "                    SCRIPT='help; memory'   run these commands instead, and end"
ifneq ($(filter 4,$(LESSONS)),)
	@echo "                    PROGRAMS=DIR            put a folder's files into the guest"
	@echo "                    DEBIAN='bash python3'   put Debian's packages into the guest,"
	@echo "                                            with what they need (LESSON=6, MEM=256)"
	@echo "                    CMD='ls -l /'           run this in the guest's shell, and end;"
	@echo "                                            after 900 seconds, or LIMIT=7200"
endif
	@echo "  make gdb        the same machine, halted at its first instruction, under gdb"
	@echo "                    SERVER=4711|stdio|mi    gdb for an editor (labs/debugging.md)"
	@echo "                    FILE=PATH               shows a core: of make replay"
	@echo "                                            FILE=PATH, or of gdb's command core"
	@echo "  make hint       a hint; the next call shows the next: EX=1.3 [LAYER=1]"
	@echo "  make grade      the visible tests of a lesson, with points: LESSON=1, or EX=1.3"
	@echo "  make replay     a test's machine or program again, under gdb: TEST=test_name"
	@echo "  make diff       what a lesson adds to the one before: LESSON=1"
	@echo "  make map        a walk through the kernel, function by function: LESSON=3"
	@echo "  make measure    a lesson's measurement: your prediction, tables, plots: LESSON=1"
	@echo "                    PREDICT='10 20'         the prediction, if not at a terminal"
	@echo "  make submit     an archive of what you hand in; says what is missing: LESSON=1"
	@echo "                    FILE=../lesson1.zip     where it goes, if not to build/submit"
	@echo "  make doctor     what this machine has, what is missing, and how to fix it"
	@echo "  make handouts   the lessons' handouts, as pages for a browser"
	@echo "  make format     put the source into its form"
	@echo "  make clean      remove what was built"

SETUP  = PYTHON=$(call quoted,$(NAMED_PYTHON)) labs/tools/setup/setup.sh

setup: unix-lines
	@$(SETUP) $(if $(filter grub,$(BOOT)),test,run)

# A checkout with a carriage return at each line's end (core.autocrlf): no script runs.
.PHONY: unix-lines
unix-lines:
	@! grep -q "$$(printf '\r')" labs/tools/setup/setup.sh || { \
		echo "CRLF line ends, with which no script runs: see make doctor" >&2; exit 1; }

# Is $1 one word, and one of $2?
is_one = $(and $(filter 1,$(words $1)),$(filter $2,$1))

$(if $(call is_one,$(BOOT),disk grub direct),,$(error BOOT=$(BOOT): disk, grub or direct))
$(if $(call is_one,$(BREADTH),yes no),,$(error BREADTH=$(BREADTH): yes or no))

# A path that is forgotten, as in SUBMISSION=$$unset, is none that was not given.
PATHS := PROGRAMS ROOT SUBMISSION SUBMISSIONS OUTPUT FILE
$(foreach each,$(PATHS),$(if $(filter command,$(origin $(each))),$(if \
	$(value $(each)),,$(error $(each)= has no value: give one, or leave it out))))

define line_end


endef

# A word for the shell, whatever is in it. A recipe's line would end where one in it does.
quoted = $(if $(findstring $(line_end),$1),$(error a line ends in a value that was given; SCRIPT \
	has semicolons between its commands))'$(subst ','\'',$1)'
# A variable as the person who set it typed it, make's own signs too: for the shell, as an option.
typed  = $(if $(filter command environment,$(origin $1)),$(value $1),$($1))
given  = $(call quoted,$(call typed,$1))
option = $(if $(call typed,$1),--$2=$(call given,$1))

CORE  := $(filter no,$(BREADTH))
OPTIONS = --build $(OUT) --boot $(BOOT) --memory=$(call given,MEM) --seed=$(call given,SEED) \
	$(call option,SCRIPT,script)
RUN   = $(PYTHON) -m labs.tools.machine.run $(OPTIONS)
DEBUG = $(PYTHON) -m labs.tools.debugging.debug $(OPTIONS)

# What make runs last is its own child, not a shell's, and knows it: it ends with make, however that
# ends (labs/tools/machine/work_folder.py).
AS_CHILD = MAKE_PROCESS=$$PPID exec

# One make builds at a time.
ALONE = labs/tools/setup/alone.sh

# What is built is said on stderr: the output is the guest's.
run: setup
	@$(ALONE) $(MAKE) -s LESSON=$(LESSON) image-$(BOOT) $(HOST_TOOLS) >&2
	@$(AS_CHILD) $(RUN)

gdb: setup-test
	@$(ALONE) $(MAKE) -s LESSON=$(LESSON) image-$(BOOT) $(HOST_TOOLS) >&2
	@$(AS_CHILD) $(DEBUG) $(call option,SERVER,server) $(call option,FILE,dump)

hint: setup
	@$(PYTHON) -m labs.tools.course.hint $(call option,LAYER,layer) -- $(call given,EX)

# GRADING is for instructors: labs/author.mk.
grade: setup-test
	@$(AS_CHILD) $(PYTHON) -m labs.tools.grading.grade --lesson $(call quoted,$(LESSON)) \
		$(if $(CORE),--core) $(call option,EX,exercise) $(GRADING)

submit: setup
	@$(PYTHON) -m labs.tools.course.submit --lesson $(call quoted,$(LESSON)) \
		$(call option,FILE,file)

replay: setup-test
	@$(AS_CHILD) $(PYTHON) -m labs.tools.debugging.replay --test=$(call given,TEST) \
		$(call option,MODE,mode) $(call option,BATCH,batch) $(call option,FILE,dump)

map: setup
	@$(PYTHON) -m labs.tools.course.walk $(call quoted,$(LESSON))

diff: setup
	@$(PYTHON) -m labs.tools.course.difference $(call quoted,$(LESSON))

.PHONY: setup-test
setup-test: unix-lines
	@$(SETUP) test

measure: setup-test
	@test -z "$(CORE)" || { echo "make measure: its commands are breadth"; exit 1; }
	@test $(LAB) != storage || { echo "make measure: in the storage lab: make lab"; exit 1; }
	@test -f labs/$(LAB)/measure.py || { echo "make measure: say LESSON=1 or another"; exit 1; }
	@$(ALONE) $(MAKE) -s image-disk $(HOST_TOOLS)
	@$(PYTHON) -m labs.$(LAB).measure --build $(OUT) --predict=$(call given,PREDICT)

doctor:
	@python3 labs/tools/setup/doctor.py

format: setup-test
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs .venv/bin/clang-format -i
	@.venv/bin/ruff format -q labs tests && .venv/bin/ruff check -q --fix labs tests

handouts: setup-test labs/conf.py labs/index.md
	@$(PYTHON) -m sphinx -q -W -b html labs $(BUILD)/handouts
	@echo "$(BUILD)/handouts/index.html"

clean:
	rm -rf $(BUILD)

# What makes lessons is not in a student's tree; the storage lab is in that of its own lesson only.
-include labs/author.mk
LESSON ?= $(if $(wildcard labs/storage/sources),storage,$(lastword $(LESSONS)))
-include labs/storage/lab.mk
-include labs/page/page.mk

# --- how it is built: one short line a step, V=1 shows the commands -----------------------------

Q   := $(if $(V),,@)
say  = @printf '  %-5s %s\n' $1 $2

# --- the kernel ---------------------------------------------------------------------------------

# What a command says, asked when it is first needed. The tools are chosen by trying them.
once = $(or $($1),$(eval $1 := $$(shell $2))$($1))
tool = $(call once,tool_$1,labs/tools/setup/toolchain.sh $1)

# uint32_t is unsigned int, as printk's formats want it. A bare compiler may have unsigned long.
INT32 := -U__INT32_TYPE__ -D__INT32_TYPE__=int -U__INT32_MAX__ -D__INT32_MAX__=0x7fffffff \
	-U__UINT32_TYPE__ '-D__UINT32_TYPE__=unsigned int' \
	-U__UINT32_MAX__ -D__UINT32_MAX__=0xffffffffu

# Where a tree and the compiler are changes no byte of a kernel. A gcc that was moved (Homebrew's)
# may give its headers' folder as bin/../lib, and then writes it without that.
HEADERS = $(call once,compiler_headers,$(call tool,cc) -print-file-name=include)
HERE    = $(call quoted,-ffile-prefix-map=$(CURDIR)=.) \
	$(patsubst %,-ffile-prefix-map=%=include,$(HEADERS) $(realpath $(HEADERS)))

# A function in a table has the table's parameters, needed or not. What waits in a list is often a
# local variable of the task that sleeps: gcc 14 takes it for one that stays there.
CFLAGS = -std=gnu11 -march=i686 -O2 -g -I. $(INT32) $(HERE) \
	-Wall -Wextra -Wno-unused-parameter -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wdate-time -Werror=implicit-function-declaration $(if $(CI),-Werror) \
	-ffreestanding -fno-pic -fno-stack-protector -fno-omit-frame-pointer \
	-fno-optimize-sibling-calls -fno-asynchronous-unwind-tables -fno-strict-aliasing \
	-fcf-protection=none -mgeneral-regs-only -mno-red-zone \
	$(call once,own_options,labs/tools/setup/toolchain.sh options)

# Quiet about what concerns programs only: stacks and segments that may be executed.
LINKING = -nostdlib -z noexecstack \
	$(call once,quiet_linking,$(call tool,ld) --help | grep -o -m 1 -e --no-warn-rwx-segments)

# A lesson is a list of files and a main.c: lesson n links what the lessons up to n have added. What
# no lesson teaches, and only Linux's programs want, has lists of its own, the breadth.
ifneq ($(origin LAB),file)
$(if $(call is_one,$(LESSON),$(LESSONS)),,$(error LESSON=$(LESSON): the lessons are $(LESSONS)$(if \
	$(wildcard labs/storage), storage)))
LAB   := lesson$(LESSON)
LATER := $(shell seq $$(($(LESSON) + 1)) 9)
LISTS := $(patsubst %,labs/lesson%/sources,$(filter-out $(LATER),$(LESSONS)))
LISTS += $(if $(CORE),,$(wildcard $(LISTS:%/sources=%/breadth)))
endif

OUT     := $(BUILD)/$(LAB)$(if $(CORE),-core)
# A line FOLDER/ is all the sources in a folder, those that are given as object code, too. A line
# -FILE takes a file away: another one implements its header now.
LINES   := $(shell cat $(LISTS))
FOLDERS := $(filter %/,$(LINES))
LISTED  := $(filter-out %/,$(LINES)) $(sort $(wildcard $(FOLDERS:=*.c) $(FOLDERS:=*.asm)) \
	$(patsubst %.o,%,$(wildcard $(FOLDERS:=*.c.o) $(FOLDERS:=*.asm.o))))
SOURCES := $(filter-out -% $(patsubst -%,%,$(filter -%,$(LISTED))),$(LISTED)) labs/$(LAB)/main.c
OBJECTS := $(SOURCES:%=$(BUILD)/objects/%.o)
KERNEL  := $(OUT)/kernel.elf

# CACHED, which make test sets: a cache of compiled files, which the compiler is a word of.
$(BUILD)/objects/%.c.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CACHED) $(call tool,cc) $(CFLAGS) -MMD -MP -c $< -o $@

# A fact has one place: a constant of a C header name.h is for NASM in name.inc, and for the
# linker in name.ld, which are made here.
CONSTANTS := $(BUILD)/constants
MADE_FROM  = $(patsubst %.h,$(CONSTANTS)/%.$1,$(wildcard boot/*.h kernel/*/*.h mm/*.h))
NASM      := nasm -I $(CONSTANTS)/

$(CONSTANTS)/%.inc: %.h labs/tools/setup/constants.awk
	@mkdir -p $(@D)
	$(Q)awk -v FORM='%%define %s %s' -f labs/tools/setup/constants.awk $< >$@

$(CONSTANTS)/%.ld: %.h labs/tools/setup/constants.awk
	@mkdir -p $(@D)
	$(Q)awk -v FORM='%s = %s;' -f labs/tools/setup/constants.awk $< >$@

# NASM 2.16 names no included file with -MD, which assembles; with -M it does.
ASSEMBLE = $(NASM) -f elf32 -M -MP -MT $@ -MF $(@:.o=.d) $< && \
	$(NASM) -f elf32 -g -F dwarf $< -o $@ && \
	{ ! command -v python3 >/dev/null || python3 -I -S labs/tools/setup/debug_paths.py $@; }

$(BUILD)/objects/%.asm.o: %.asm Makefile | $(call MADE_FROM,inc)
	@mkdir -p $(@D)
	$(call say,NASM,$<)
	$(Q)$(ASSEMBLE)

# What a later lesson writes is given as object code.
$(BUILD)/objects/%.o: %.o
	@mkdir -p $(@D)
	$(Q)cp $< $@

# Linked twice: the first kernel has no symbols, and gives the addresses for those of the second.
LINK = $(call tool,ld) $(LINKING) -L$(CONSTANTS) -T boot/kernel.ld $(OBJECTS)

$(OUT):
	@mkdir -p $@

$(OUT)/unnamed.elf: $(OBJECTS) boot/kernel.ld labs/tools/setup/symbols.awk $(LISTS) $(FOLDERS) \
		$(call MADE_FROM,ld) | $(OUT)
	$(Q)echo | awk -f labs/tools/setup/symbols.awk >$(OUT)/no_symbols.c
	$(Q)$(call tool,cc) $(CFLAGS) -c $(OUT)/no_symbols.c -o $(OUT)/no_symbols.o
	$(Q)$(LINK) $(OUT)/no_symbols.o -o $@

$(OUT)/kernel.elf: $(OUT)/unnamed.elf
	$(Q)$(call tool,nm) -n $< | awk -f labs/tools/setup/symbols.awk >$(OUT)/symbols.c
	$(Q)$(call tool,cc) $(CFLAGS) -c $(OUT)/symbols.c -o $(OUT)/symbols.o
	$(call say,LD,$@)
	$(Q)$(LINK) $(OUT)/symbols.o -o $@

# --- user programs ------------------------------------------------------------------------------

# Static Linux programs for the i386, with a small C library of their own (user/libc, user/include):
# any compiler for the i386 builds them. One file a program, but for those that are named here.
ONE_FILE  := $(wildcard user/*.c)
TESTING   := $(filter-out user/testing/places.c,$(wildcard user/testing/*.c))
SHELL_OF_COURSE := $(wildcard user/sh/*.c)
USER      := $(patsubst %.c,$(BUILD)/user/%,$(notdir $(ONE_FILE) $(TESTING))) \
	$(if $(SHELL_OF_COURSE),$(BUILD)/user/sh)
USER_LIBC := $(patsubst user/%,$(BUILD)/user/objects/%.o,$(wildcard user/libc/*.c user/libc/*.asm))

# The compiler's own headers, and ours: system headers all, which -MMD would leave out.
USER_CFLAGS = $(CFLAGS) -ffunction-sections -fdata-sections -nostdinc -isystem user/include \
	-isystem $(HEADERS)

$(BUILD)/user/objects/%.c.o: user/%.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CACHED) $(call tool,cc) $(USER_CFLAGS) -MD -MP -c $< -o $@

$(BUILD)/user/objects/%.asm.o: user/%.asm Makefile | $(call MADE_FROM,inc)
	@mkdir -p $(@D)
	$(Q)$(ASSEMBLE)

$(patsubst user/%.c,$(BUILD)/user/%,$(ONE_FILE)): $(BUILD)/user/%: $(BUILD)/user/objects/%.c.o
$(patsubst user/testing/%.c,$(BUILD)/user/%,$(TESTING)): $(BUILD)/user/%: \
		$(BUILD)/user/objects/testing/%.c.o $(BUILD)/user/objects/testing/places.c.o
$(BUILD)/user/sh: $(SHELL_OF_COURSE:user/%=$(BUILD)/user/objects/%.o)

$(USER): $(USER_LIBC)
	$(call say,USER,$@)
	$(Q)$(call tool,ld) $(LINKING) -static --gc-sections $(call tool,base)0x08048000 $^ -o $@

# For the guest: without what only a debugger reads.
$(BUILD)/user/bin/%: $(BUILD)/user/%
	@mkdir -p $(@D)
	$(Q)$(call tool,strip) -o $@ $<

.PHONY: user-programs
user-programs: $(USER) $(USER:$(BUILD)/user/%=$(BUILD)/user/bin/%)

-include $(wildcard $(BUILD)/user/objects/*.d $(BUILD)/user/objects/*/*.d)

# A kernel that unpacks files gets them; make run PROGRAMS=DIR CMD='...' adds to them.
ifneq ($(filter fs/files.c,$(LISTED)),)
HOST_TOOLS += user-programs
OPTIONS    += --user $(BUILD)/user/bin
endif
OPTIONS    += $(if $(CORE),--core) $(call option,PROGRAMS,programs) \
	$(call option,DEBIAN,debian)
ifneq ($(filter command,$(origin CMD)),)
export TEXT_OF_CMD := $(value CMD)
OPTIONS    += --command "$$TEXT_OF_CMD" $(call option,LIMIT,limit)
endif

# --- the boot disk ------------------------------------------------------------------------------

# The boot sector and the second stage come before the kernel.
KERNEL_LBA    := 64

# How many sectors the loader reads in one BIOS call: make measure tries others.
READ_SECTORS  ?= 127
LOADER_OBJECTS := $(OUT)/stage2.o $(BUILD)/objects/boot/protected_mode.asm.o \
	$(OUT)/loader.o $(OUT)/load_elf.o  $(BUILD)/objects/kernel/cpu/machine.c.o
LOADER_CFLAGS  = $(CFLAGS) -Os

# The kernel for a disk: without what only a debugger reads, which takes a machine seconds to load.
# Lesson 1 measures how a file is loaded: all of it.
$(OUT)/kernel.loaded: $(KERNEL)
	$(Q)$(if $(filter 1,$(LESSON)),cp,$(call tool,objcopy) -S) $< $@

# In whole sectors; its size and sum go into the loader.
$(OUT)/kernel.sectors: $(OUT)/kernel.loaded
	$(Q)cp $< $@
	$(Q)truncate -s %512 $@

$(OUT)/stage2.o: boot/stage2.asm Makefile | $(OUT) $(call MADE_FROM,inc)
	$(Q)$(ASSEMBLE)

$(OUT)/load_elf.o: boot/load_elf.c Makefile | $(OUT)
	$(Q)$(call tool,cc) $(LOADER_CFLAGS) -MMD -MP -c $< -o $@

$(OUT)/loader.o: boot/loader.c Makefile $(OUT)/kernel.sectors
	$(Q)$(call tool,cc) $(LOADER_CFLAGS) -MMD -MP -c $< -o $@ \
		-DKERNEL_LBA=$(KERNEL_LBA)u \
		-DSECTORS_PER_READ=$(READ_SECTORS)u \
		-DKERNEL_BYTES=$$(stat -c %s $(OUT)/kernel.loaded)u \
		-DKERNEL_SUM=$$(od -An -v -t u4 -w4 $(OUT)/kernel.sectors | \
			awk '{ sum = (sum + $$1) % 4294967296 } END { printf "%.0f", sum }')u

$(OUT)/stage2.elf: $(LOADER_OBJECTS) boot/stage2.ld $(call MADE_FROM,ld)
	$(Q)$(call tool,ld) $(LINKING) -L$(CONSTANTS) -T boot/stage2.ld $(LOADER_OBJECTS) -o $@

$(OUT)/stage2.bin: $(OUT)/stage2.elf
	$(Q)$(call tool,objcopy) -O binary $< $@

# Its check of its own size is an error to -M.
$(OUT)/mbr.bin: boot/mbr.asm $(OUT)/stage2.bin Makefile $(call MADE_FROM,inc)
	$(Q)$(NASM) -f bin -DSTAGE2_SECTORS=$$(($$(stat -c %s $(OUT)/stage2.bin) / 512)) $< -o $@

$(OUT)/boot.img: $(OUT)/mbr.bin $(OUT)/stage2.bin $(OUT)/kernel.sectors
	$(call say,DISK,$@)
	$(Q)cat $(OUT)/mbr.bin $(OUT)/stage2.bin >$@
	$(Q)test $$(stat -c %s $@) -le $$(($(KERNEL_LBA) * 512))
	$(Q)truncate -s $$(($(KERNEL_LBA) * 512)) $@
	$(Q)cat $(OUT)/kernel.sectors >>$@
	$(Q)truncate -s %1M $@

# --- GRUB's CD ----------------------------------------------------------------------------------

$(OUT)/grub.iso: $(OUT)/kernel.loaded boot/grub.cfg
	@mkdir -p $(OUT)/iso/boot/grub
	$(call say,GRUB,$@)
	$(Q)cp $< $(OUT)/iso/boot/kernel.elf
	$(Q)cp boot/grub.cfg $(OUT)/iso/boot/grub/
	$(Q)grub-mkrescue -o $@ $(OUT)/iso >$(OUT)/grub.log 2>&1 || { cat $(OUT)/grub.log; exit 1; }

.PHONY: image-disk image-grub image-direct everything
image-disk: $(OUT)/boot.img
image-grub: $(OUT)/grub.iso
image-direct: $(KERNEL)
everything: image-disk image-grub image-direct $(HOST_TOOLS)

-include $(OBJECTS:.o=.d) $(LOADER_OBJECTS:.o=.d)
