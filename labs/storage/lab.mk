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
	@echo "  make run        a shell, and the lab's drives; without a terminal, the lab's tables"
	@echo "                    ROOT=disk.img           / is an ext4 on this image, made if it is"
	@echo "                                            not there, with PROGRAMS and DEBIAN"
	@echo "  make lab        the storage lab's measurement: raw sectors against files; your"
	@echo "                  prediction first, then a report in build/lab/report"
	@echo "                    READS=1000 SEED=2010    how many random reads, and which"
	@echo "                    SCALE=100|full          a hundredth of 2 TB, or all of it"
	@echo "                    PREDICT='2 1.5'         the prediction, if not at a terminal"
	@echo "                    FILE=PATH               read a file or a device of this computer"
	@echo "  make lab X=3    another experiment, as a page; X=list: which there are"

ifeq ($(LESSON),storage)
LAB   := storage
LISTS := $(LESSONS:%=labs/lesson%/sources) $(wildcard $(LESSONS:%=labs/lesson%/breadth)) \
	$(wildcard labs/storage/sources labs/storage/breadth)
RUN    = $(PYTHON) -m labs.storage.run $(OPTIONS) --reads=$(call given,READS) --scale=$(call given,SCALE) \
	$(call option,ROOT,root)
DEBUG  = $(RUN) --gdb
EXPERIMENT = $(PYTHON) -m labs.storage.experiments --build $(OUT) \
	--predict=$(call given,PREDICT) -- $(call given,X)
RANDOM_READS = $(PYTHON) -m labs.storage.x1 $(OPTIONS) --reads=$(call given,READS) --scale=$(call given,SCALE) \
	--predict=$(call given,PREDICT) $(call option,FILE,file)
HOST_TOOLS := $(BUILD)/host/lab-file
# For the lab half of the memory is the block cache: at full size 91,000 pointer blocks are read.
ifeq ($(filter full 1,$(SCALE)) $(origin MEM),$(SCALE) file)
MEM := 1024
endif
endif

lab: setup-test
	@$(ALONE) $(MAKE) -s LESSON=$(LESSON) image-direct $(HOST_TOOLS) \
		$(if $(FILE),$(BUILD)/host/seekrw) >&2
	@$(AS_CHILD) $(if $(filter-out 1,$(X)),$(EXPERIMENT),$(RANDOM_READS))

$(BUILD)/host/lab-file: labs/storage/labfile.c Makefile
	@mkdir -p $(@D)
	$(call say,HOST,$<)
	$(Q)gcc -std=gnu11 -O2 -g -Wall -Wextra $(if $(CI),-Werror) -I. -MMD -MP $< -o $@ \
		-lext2fs -lcom_err

# For a disk of this computer.
$(BUILD)/host/seekrw: user/seekrw.c Makefile
	@mkdir -p $(@D)
	$(call say,HOST,$<)
	$(Q)gcc -std=gnu11 -O2 -g -Wall -Wextra $(if $(CI),-Werror) -I. -MMD -MP $< -o $@

-include $(BUILD)/host/lab-file.d $(BUILD)/host/seekrw.d
