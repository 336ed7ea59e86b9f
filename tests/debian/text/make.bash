# What make does: the same on Linux and on the kernel.
cat >Makefile <<'END'
NAMES := one two three
all: $(NAMES:%=out/%) total
out/%: %.in | out ; @echo making $@; sed s/x/y/ $< >$@
out: ; mkdir -p $@
total: $(foreach n,$(NAMES),out/$(n)) ; cat $^ >$@; wc -l <$@
.PHONY: all fail
fail: ; @echo about to fail; false
info: ; $(info $(words $(NAMES)) $(sort c b a) $(patsubst %.c,%.o,x.c) $(shell echo from a shell) $(word 2,$(NAMES)))
END
for n in one two three; do echo x $n >$n.in; done
make -j3 -s; make; touch -d '+1 hour' two.in; make -n 2>/dev/null | head -2; make fail; echo $?; make info 2>&1 | head -1; make nothing; echo $?; make -k fail all -s 2>&1 | tail -2; make -f - <<<'a: ; @echo from the input'; make -v | head -1; make -j2 -O -B -s | sort
