# The storage lab: its kernel is the last lesson's with the breadth, and drives. Included by the
# Makefile, and in a student's tree of this lesson only.

ifeq ($(LESSON),7)
override LESSON := storage
endif
SCALE  ?= 100
READS  ?= $(if $(filter full 1,$(SCALE)),100000,1000)

.PHONY: lab

help::
	@echo
	@echo "The storage lab:"
	@echo
	@echo "  make run        without a terminal: make lab; LESSON=storage: a shell, and its drives"
	@echo "                    ROOT=disk.img           / is an ext4 on this image, made if it is"
	@echo "                                            not there, with PROGRAMS and DEBIAN"
	@echo "  make lab        the storage lab's measurement: raw sectors against files"
	@echo "                    READS=1000 SEED=2010    how many random reads, and which"
	@echo "                    SCALE=100|full          a hundredth of 2 TB, or all of it"
	@echo "  make lab X=3    another experiment, as a page; X=list: which there are"

ifeq ($(LESSON),storage)
LAB   := storage
LISTS := $(LESSONS:%=labs/lesson%/sources) $(wildcard $(LESSONS:%=labs/lesson%/breadth)) \
	$(wildcard labs/storage/sources labs/storage/breadth)
RUN    = $(PYTHON) -m labs.storage.run $(OPTIONS) --reads $(READS) --scale $(SCALE) \
	$(if $(ROOT),--root '$(ROOT)')
DEBUG  = $(RUN) --gdb
EXPERIMENT = $(PYTHON) -m labs.storage.experiments '$(X)' --build $(OUT) --predict '$(PREDICT)'
HOST_TOOLS := $(BUILD)/host/lab-file
# For the lab half of the memory is the block cache: at full size 91,000 pointer blocks are read.
ifeq ($(filter full 1,$(SCALE)) $(origin MEM),$(SCALE) file)
MEM := 1024
endif
endif

lab: setup$(if $(X),-test)
	@$(MAKE) -s image-$(BOOT) $(HOST_TOOLS)
	@$(AS_CHILD) $(if $(X),$(EXPERIMENT),$(RUN) --lab)

$(BUILD)/host/lab-file: labs/storage/labfile.c Makefile
	@mkdir -p $(@D)
	$(call say,HOST,$<)
	$(Q)gcc -std=gnu11 -O2 -g -Wall -Wextra $(if $(CI),-Werror) -I. -MMD -MP $< -o $@ \
		-lext2fs -lcom_err

-include $(BUILD)/host/lab-file.d
