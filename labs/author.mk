# What only the whole repository has, and no student's tree: the machine that makes lessons, and the
# file system's tests on the host. Included by the Makefile.

# For commands, and at a terminal, make run is the latest kernel with its shell; else the lab.
OF_LAB   := $(SCRIPT)$(filter command environment,$(origin READS) $(origin SCALE))
TERMINAL  = $(if $(OF_LAB),,$(shell test -t 0 && test -t 2 && echo yes))
IS_SHELL := $(and $(filter run,$(MAKECMDGOALS)),$(or $(CMD)$(PROGRAMS),$(TERMINAL)),$(if $(ROOT),,yes))
LESSON ?= $(if $(IS_SHELL),$(lastword $(LESSONS)),storage)

.PHONY: autograder bugs course exam grade-class similarity snakemake
.PHONY: setup-suite picture crash fuzz layouts faults fsx full-disks start book check-book slides check-slides prove mistakes shares thirds bench \
	budget tables test test-fast compilers container distributions debian

help::
	@echo
	@echo "What makes the lessons, and proves them:"
	@echo
	@echo "  make crash      power cuts at every request of the file system, on the host, with figures"
	@echo "                    [SEED=2010] [STATES=60000] [MUTANT=all]"
	@echo "                    TASKS=4                 instead: 2 to 4 tasks make system calls in the"
	@echo "                                            guest; [SEED=2010] [COUNT=7] [KIND=ext4]"
	@echo "                                            [MUTANT=all], or ONLY=CUT, a wrong one"
	@echo "  make fuzz       the file system on damaged images: [SECONDS=60] [IMAGE=ext4|ext3|checksums]"
	@echo "                    TARGET=superblock       only this is damaged: descriptors, inodes,"
	@echo "                                            extents, directories, journal"
	@echo "  make layouts    the file system writes to more than a hundred layouts of mke2fs, tune2fs"
	@echo "                    and resize2fs, on the host and in the guest: [LAYOUTS='tune2fs-j']"
	@echo "  make faults     each request of the drive fails in turn, or is damaged, on the host"
	@echo "  make fsx        the same file operations here and on Linux, and what differs:"
	@echo "                    [SEED=2010] [COUNT=20000] [KIND=ext4-4k]"
	@echo "                    TOGETHER=yes            instead: tasks on one file, and what each of"
	@echo "                                            them knows: [TASKS=4] [COUNT=100000] [KIND=ext4]"
	@echo "  make full-disks   ways to fill a disk, on several kinds of it: what write() has accepted"
	@echo "                  is there afterwards: [SEED=2010] [KIND=ext3-4k] [WAY=names]"
	@echo "  make start      a student's tree: LESSON=1 DIR=../my-kernel"
	@echo "  make book       handouts, storage lab and references: pages, PDF, EPUB, plain Markdown"
	@echo "                    LANGUAGE=zh_CN          in Chinese"
	@echo "  make check-book   each page of book, decks and report, asked by axe; drawings, translations, PDF"
	@echo "  make slides     the lessons' slides, for a browser: English and Chinese"
	@echo "                    PDF=yes                 and a PDF of each, next to it"
	@echo "                    PLOTS=yes               draws the plots of slides/figures.toml first"
	@echo "  make check-slides   each page of each deck, laid out and measured; all commands typed"
	@echo "  make grade      an instructor's: hidden tests too, each exercise by itself, sandboxed:"
	@echo "                    LESSON=1 SUBMISSION=dir [SEED=word] [OUTPUT=dir]"
	@echo "  make course     what instructors keep, and a template a lesson to hand out: DIR=../course"
	@echo "                    COURSE=autumn-2026      this year's word: last year's measurements are"
	@echo "                                            refused, and submissions of others are told"
	@echo "  make grade-class   the grades of a class (INSTRUCTOR.md): LESSON=1 SUBMISSIONS=dir OUTPUT=dir"
	@echo "                    [ROSTER=students.csv] [RULES=rules.toml] [JOBS=n] [CLUSTER=slurm]"
	@echo "  make exam       exam questions from the graders' bugs, and their key: LESSON=4 SEED=2026"
	@echo "                    [COUNT=6] [LANGUAGE=zh_CN] [OUTPUT=dir]"
	@echo "  make similarity   which submissions of that are alike: LESSON=1 OUTPUT=dir [ARCHIVE='dir dir']"
	@echo "  make autograder   what a platform grades with: LESSON=1 [OUTPUT=dir]"
	@echo "                    FORMAT=gradescope|prairielearn|autolab|classroom50"
	@echo "                    HIDDEN=after_due_date   how Gradescope shows hidden tests: hidden,"
	@echo "                                            after_due_date, after_published, visible"
	@echo "  make prove      the graders' proof: handout 0, reference 100, other ways too,"
	@echo "                  mutants, cheats"
	@echo "                    LESSON=1 [SAMPLE=k]     one lesson; this many mutants, and one cheat"
	@echo "                    ONLY='4.6-*'            what of these has such a name"
	@echo "                    REPEAT=20               instead: this many half-finished submissions a"
	@echo "                                            lesson, graded three times, idle and busy"
	@echo "                    CLASS=200               instead: a class of this many submissions, graded,"
	@echo "                                            and killed and graded again: the same bytes"
	@echo "                    ENVIRONMENTS=20         instead: this many exercises a lesson, graded in"
	@echo "                                            twelve environments: variables, locales, folders"
	@echo "                    GENERATED=6             instead: this many machine-made mutants an"
	@echo "                                            exercise, of seed 2010 if none is named:"
	@echo "                                            [SEED=2010] [EX=1.3]; the survivors' diffs"
	@echo "  make mistakes   what a student reads after a usual mistake (tests/mistakes):"
	@echo "                    LESSON=1 ONLY='1.2-*' [RENEW=yes]"
	@echo "  make shares     which part of its exercise's hidden points a mutant keeps that all visible"
	@echo "                  tests pass, of those that are new in tests/mutants, or have changed:"
	@echo "                    LESSON=1 [ONLY='1.2-*']   these, new or not"
	@echo "  make thirds     what of an exercise's points is lost when a third of it is left out:"
	@echo "                    LESSON=1 [ONLY=1.2]       this one, new or not"
	@echo "  make bench      instructions per operation, here and on Linux (labs/bench)"
	@echo "                    STORAGE=1               of drives and files"
	@echo "  make budget     how many lines of code each lesson and part has, and may have"
	@echo "  make page-check   the pages of make page in headless Chromium, and each command in them"
	@echo "  make bugs       planted bugs of the kernel, and what gdb's commands that go back say of them:"
	@echo "                    [BUG='dma tlb']"
	@echo "  make picture    the README's picture, from a run"
	@echo "  make tables     that into CONTRIBUTING.md, what to read into the handouts"
	@echo "  make test       everything that proves the project; installs what is missing"
	@echo "                    WHOLE=yes               every case of what has many equal ones; else of"
	@echo "                                            some a sample, always the same"
	@echo "                    RENEW=yes               and notes how long tests take, tests/seconds.txt"
	@echo "  make compilers  a lesson's kernel by each compiler that is here, and whether it boots:"
	@echo "                    [LESSON=6] [CROSS='clang clang-lld']"
	@echo "  make container  builds the dev container with buildah, and grades an exercise in it"
	@echo "  make distributions   make run and make test on a bare Debian 12 and 13, in a"
	@echo "                  container: [DIST=12|13|next] [WHO=user|root] [COMMAND='make run']"
	@echo "  make debian     Debian's programs on the kernel, compared with this machine's Linux, many"
	@echo "                  minutes: [SET='base text/tar']"
	@echo "  make test-fast  the same without the slow parts, for the loop while you write"

TASKS_OF_CRASH = $(call option,TASKS,tasks) $(call option,COUNT,count) \
	$(call option,KIND,kind) $(call option,MUTANT,mutant) $(call option,ONLY,only)

ifneq ($(TASKS)$(ONLY),)
crash: setup
	@$(ALONE) $(MAKE) -s LESSON=storage image-direct user-programs
	@$(AS_CHILD) $(PYTHON) -m labs.storage.crash.tasks --seed=$(call given,SEED) $(TASKS_OF_CRASH)
else
crash: setup
	@$(AS_CHILD) $(PYTHON) -m labs.storage.crash --seed=$(call given,SEED) \
		$(call option,STATES,states) $(if $(filter full,$(SCALE)),--scale full) \
		$(call option,MUTANT,mutant)
endif

fuzz: setup
	@$(AS_CHILD) $(PYTHON) -m labs.storage.fuzz --seed=$(call given,SEED) \
		$(call option,SECONDS,seconds) $(call option,IMAGE,image) \
		$(call option,TARGET,target)

layouts: setup-test
	@$(ALONE) $(MAKE) -s LESSON=storage image-direct user-programs
	@$(IN_MEMORY) LAYOUTS=$(call quoted,$(or $(LAYOUTS),all)) $(PYTHON) -m pytest $(AT_ONCE) tests/host/test_ext_layouts.py

faults: setup-test
	@$(IN_MEMORY) FAULTS=all $(PYTHON) -m pytest $(AT_ONCE) tests/host/test_vfs_faults.py

fsx: setup
	@$(ALONE) $(MAKE) -s LESSON=storage image-direct user-programs
	@$(AS_CHILD) $(PYTHON) -m labs.storage.$(if $(TOGETHER),together,fsx) --seed=$(call given,SEED) \
		$(if $(TOGETHER),$(call option,TASKS,tasks)) $(call option,COUNT,count) $(call option,KIND,kind)

full-disks: setup
	@$(ALONE) $(MAKE) -s LESSON=storage image-direct user-programs
	@$(AS_CHILD) $(PYTHON) -m labs.storage.full_disks --seed=$(call given,SEED) \
		$(call option,KIND,kind) $(call option,WAY,way)

bugs: setup-test
	@$(if $(BUG),BUG=$(call given,BUG)) WHOLE=yes $(PYTHON) -m pytest -q -rP tests/debugger/test_bugs.py

start: setup
	@$(PYTHON) -m labs.tools.course.start -- $(call given,LESSON) $(call given,DIR)

DECKS = $(filter-out README index,$(basename $(notdir $(wildcard slides/*.md))))

book: setup-test
	@$(PYTHON) -m labs.tools.course.book $(BUILD)/book$(LANGUAGE:%=/%) $(LANGUAGE:%=--language=%)

check-book: setup-browser
	@WHOLE=yes $(PYTHON) -m pytest tests/tree/test_book.py tests/tree/test_drawings.py tests/tree/test_access.py

slides: setup-test
	@$(if $(PLOTS),$(PYTHON) -m slides.draw)
	@$(PYTHON) -m sphinx -q -W -b revealjs slides $(BUILD)/slides
	@$(PYTHON) -m sphinx -q -W -b revealjs -D language=zh_CN slides $(BUILD)/slides/zh_CN
	@echo "$(BUILD)/slides/index.html; in Chinese: $(BUILD)/slides/zh_CN/index.html"
	@$(if $(PDF),$(PYTHON) -m slides.pdf $(foreach each,$(DECKS),$(BUILD)/slides/$(each).html $(BUILD)/slides/zh_CN/$(each).html))

check-slides: setup-test
	@WHOLE=yes $(PYTHON) -m pytest tests/tree/test_slides.py

budget: setup
	@$(PYTHON) -m labs.tools.course.budget

picture: setup-test
	@$(PYTHON) -m labs.tools.course.picture

tables: setup
	@$(PYTHON) -m labs.tools.course.tables

setup-suite: unix-lines
	@$(SETUP) suite

# All lessons, unless one is named.
THE_LESSON = $(if $(filter command environment override,$(origin LESSON)),--lesson $(call quoted,$(LESSON)))
GRADING = $(call option,SUBMISSION,submission) $(call option,OUTPUT,output) \
	$(SEED_OF_RUN)
SEED_OF_RUN = $(if $(filter command environment,$(origin SEED)),--seed=$(call given,SEED))

grade-class: setup-test
	@$(AS_CHILD) $(PYTHON) -m labs.tools.cohort.grade_class --lesson=$(call quoted,$(LESSON)) \
		--submissions=$(call given,SUBMISSIONS) --output=$(call given,OUTPUT) \
		$(call option,ROSTER,roster) $(call option,RULES,rules) $(call option,JOBS,jobs) \
		$(call option,CLUSTER,cluster)

course: setup
	@$(PYTHON) -m labs.tools.cohort.course --dir=$(call given,DIR) $(call option,COURSE,course) \
		$(if $(filter command environment,$(origin LESSON)),$(call option,LESSON,lesson))

autograder: setup
	@$(PYTHON) -m labs.tools.cohort.autograder --format=$(call given,FORMAT) \
		--lesson=$(call quoted,$(LESSON)) $(call option,HIDDEN,hidden) $(call option,OUTPUT,output)

exam: setup
	@$(PYTHON) -m labs.tools.cohort.exam --lesson=$(call quoted,$(LESSON)) --seed=$(call given,SEED) \
		$(call option,COUNT,count) $(call option,LANGUAGE,language) $(call option,OUTPUT,output)

similarity: setup-suite
	@$(PYTHON) -m labs.tools.cohort.similarity --lesson=$(call quoted,$(LESSON)) \
		--output=$(call given,OUTPUT) $(call option,ARCHIVE,archive)

# Snakemake has an environment of its own: only who has a cluster needs it.
snakemake: setup
	@$(PYTHON) -m venv $(BUILD)/snakemake
	@$(BUILD)/snakemake/bin/pip install -q \
		-r labs/tools/setup/requirements-$(or $(filter slurm kubernetes,$(CLUSTER)),cluster).txt

mistakes: setup-test
	@$(IN_MEMORY) $(PYTHON) -m labs.tools.proving.mistakes $(THE_LESSON) \
		$(call option,ONLY,only) $(if $(SAMPLE),--sample=$(call given,SAMPLE) $(SEED_OF_RUN)) $(if $(RENEW),--renew)

shares: setup-test
	@$(IN_MEMORY) $(AS_CHILD) $(PYTHON) -m labs.tools.proving.prove_shares $(THE_LESSON) \
		$(call option,ONLY,only)

thirds: setup-test
	@$(IN_MEMORY) $(AS_CHILD) $(PYTHON) -m labs.tools.proving.prove_thirds $(THE_LESSON) \
		$(call option,ONLY,only)

ifdef CLASS
prove: setup-test
	@$(AS_CHILD) $(PYTHON) -m labs.tools.proving.prove_class --count=$(call given,CLASS) \
		$(call option,KILLS,kills) $(call option,JOBS,jobs) $(SEED_OF_RUN) $(THE_LESSON)
else ifdef REPEAT
prove: setup-test
	@$(IN_MEMORY) $(AS_CHILD) $(PYTHON) -m labs.tools.proving.prove_repeat \
		--count=$(call given,REPEAT) $(SEED_OF_RUN) $(THE_LESSON)
else ifdef ENVIRONMENTS
prove: setup-test
	@$(AS_CHILD) $(PYTHON) -m labs.tools.proving.prove_environments \
		--count=$(call given,ENVIRONMENTS) $(SEED_OF_RUN) $(THE_LESSON) $(call option,ONLY,only)
else ifdef GENERATED
prove: setup-suite
	@$(IN_MEMORY) $(AS_CHILD) $(PYTHON) -m labs.tools.proving.prove_generated \
		--generated=$(call given,GENERATED) $(SEED_OF_RUN) $(THE_LESSON) $(call option,EX,exercise)
else
prove: setup-test
	@$(IN_MEMORY) $(AS_CHILD) $(PYTHON) -m labs.tools.proving.prove $(THE_LESSON) \
		$(if $(SAMPLE),--sample=$(call given,SAMPLE) $(SEED_OF_RUN)) $(if $(CHANGED),--changed) $(call option,ONLY,only)
endif

# Instructions per operation: the same program with two C libraries, the compiler's and our own.
BENCH_LESSON := 6
BENCH := $(BUILD)/bench/bench_glibc $(BUILD)/user/bin/bench
SHARES := $(BUILD)/user/bin/shares

$(BUILD)/bench/bench_glibc: user/bench.c Makefile
	@mkdir -p $(@D)
	$(call say,USER,$@)
	$(Q)$(call tool,cc) -std=gnu11 -march=i686 -O2 -Wall -Wextra $(if $(CI),-Werror) -static -MMD -MP $< -o $@

# The tests want the kernel without processes, too.
.PHONY: bench-files
bench-files: $(BENCH) $(SHARES)
	@$(MAKE) -s LESSON=3 image-direct
	@$(MAKE) -s LESSON=$(BENCH_LESSON) image-direct

ifdef STORAGE
bench: setup-test
	@$(ALONE) $(MAKE) -s LESSON=storage image-direct user-programs
	@$(AS_CHILD) $(PYTHON) -m labs.bench.storage
else
bench: setup-test
	@$(ALONE) $(MAKE) -s bench-files
	@$(PYTHON) -m labs.bench.bench --kernel $(BUILD)/lesson$(BENCH_LESSON)/kernel.elf \
		--programs $(BENCH) --shares $(SHARES)
endif

# The last lesson and the storage lab have nearly all there is to compile: one make each compiles it
# on all processors. Warnings are errors, as students' trees, which take these objects, must have
# none.
AT_FULL_WIDTH = $(ALONE) $(MAKE) -s -j$$(nproc) CI=1
BUILD_ALL = $(AT_FULL_WIDTH) LESSON=$(lastword $(LESSONS)) image-disk user-programs && \
	$(AT_FULL_WIDTH) LESSON=storage everything && \
	$(ALONE) $(MAKE) -s CI=1 all-lessons

# Two processes a processor: while a test waits, another one works. BY_FILE: those of a file that
# share something are with one process (tests/seconds.py); else one that has no test left takes some
# from another one.
AT_ONCE = -n $$(($$(nproc) * 2)) --maxprocesses=9 --dist worksteal
BY_FILE = $(AT_ONCE) --dist loadfile --no-loadscope-reorder

# Tests build the kernel in many trees: what is the same there is compiled once.
test test-fast: export CACHED = $(shell command -v ccache || :)
test test-fast: export CCACHE_DIR := $(CURDIR)/$(BUILD)/ccache
test test-fast: export CCACHE_NOHASHDIR := 1

# Where their temporary files go: into memory, if there is room.
IN_MEMORY = TMPDIR=$$(labs/tools/setup/temporary.sh)

# The trees of a whole lesson have up to 3.3 GiB.
prove: export MEMORY_NEEDED := $(if $(SAMPLE)$(ONLY)$(CHANGED)$(REPEAT)$(GENERATED),,$(shell echo $$((5 << 20))))

# Tests start hundreds of Pythons: here alone they keep bytecode, in folders that git ignores.
test test-fast prove mistakes shares thirds: export PYTHONDONTWRITEBYTECODE :=

# The whole proof of the graders takes some minutes: here a sample of it, and all by make prove.
test: setup-browser
	@$(BUILD_ALL)
	@$(IN_MEMORY) NOT_PROVED=$(BUILD)/not-proved $(PYTHON) -m pytest $(BY_FILE) \
		$(if $(WHOLE),--both-kernels,--either-kernel) \
		$(if $(RENEW),--seconds) tests
	@$(MAKE) -s prove SAMPLE=3 SEED=1
	@cat $(BUILD)/not-proved

# What tests build they find here already: two of them build nothing at the same time.
.PHONY: all-lessons
all-lessons: everything bench-files
	@for lesson in $(LESSONS); do $(MAKE) -s LESSON=$$lesson image-disk image-direct || exit; done

# Debian's programs on the latest kernel, compared with this machine's Linux: a table.
debian: setup-test
	@$(ALONE) $(MAKE) -s LESSON=6 image-direct user-programs
	@$(PYTHON) -m tests.support.debian_programs $(SET)

# CROSS may name several sets here: nothing else is to see it.
compilers: unix-lines
	@env -u CROSS $(SETUP) test
	@env -u CROSS $(PYTHON) -m labs.tools.proving.compilers $(call option,CROSS,cross) $(THE_LESSON)

container: setup
	@labs/tools/setup/container.sh

# What is said on the command line (DIST, WHO, COMMAND) reaches it in its environment.
distributions:
	@labs/tools/setup/distributions.sh

# Two to three minutes on two idle processors: the tests that take less than 0.7 s of a processor
# each (of texts, of the tools, of the kernel's and the file system's parts on the host, of the guest, drives
# and gdb), and of each exercise's visible tests the gates, so that every lesson's kernel boots and
# each exercise works. Left out is what takes long (students' trees, graders, measurements, random
# operations, power cuts), and the exercises' other tests. tests/seconds.py chooses.
test-fast: setup-test
	@$(SETUP) page || echo "without the tests of the browser's PC: they say so" >&2
	@$(BUILD_ALL)
	@$(IN_MEMORY) $(PYTHON) -m pytest $(BY_FILE) --fast tests

-include $(BUILD)/bench/bench_glibc.d

# The pages in headless Chromium: every lesson, both languages, each kind of end, sizes, access.
.PHONY: page-check setup-browser
setup-browser: setup-suite
	@$(SETUP) page || echo "without the tests of the browser's PC: they say so" >&2

page-check: setup-suite page
	@$(IN_MEMORY) PAGES=all $(PYTHON) -m pytest -s tests/page
