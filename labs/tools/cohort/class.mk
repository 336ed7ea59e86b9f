# A job for each submission of a class; labs/tools/cohort/grade_class.py runs it in OUTPUT/work. ONE
# is the command that grades one, PLACE its folder.

.SUFFIXES:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

RESULTS := $(patsubst %,results/%.json,$(shell cat names))

all: $(RESULTS)

$(RESULTS): results/%.json: jobs/%.json
	@cd "$$PLACE" && $(ONE) "$$WORK" $*
