# The course's kernels in a browser. Included by the Makefile.

.PHONY: page share page-kernels setup-page page-check

help::
	@echo
	@echo "  make page       a folder of pages that run the kernels in a browser: build/page"
	@echo "  make share      the same with the kernel of this tree alone, to show it: build/share"
	@echo "                    [LESSON=n]"

MODULES := $(BUILD)/npm/node_modules
PAGES   := $(LESSONS) $(if $(wildcard labs/storage/sources),storage)
PAGE     = $(PYTHON) -m labs.page.build --modules $(MODULES)

setup-page: setup-test
	@$(SETUP) page

page-kernels:
	@for lesson in $(LESSONS_OF_PAGE); do $(MAKE) -s LESSON=$$lesson image-disk || exit; done
	@$(MAKE) -s LESSON=$(lastword $(LESSONS)) $(if $(wildcard user/*.c),user-programs)

page: setup-page
	@$(ALONE) $(MAKE) -s LESSONS_OF_PAGE='$(PAGES)' page-kernels
	@$(PAGE) --site $(BUILD)/page $(PAGES)

share: setup-page
	@$(ALONE) $(MAKE) -s LESSONS_OF_PAGE=$(call quoted,$(LESSON)) page-kernels
	@$(PAGE) --site $(BUILD)/share $(call quoted,$(LESSON))
