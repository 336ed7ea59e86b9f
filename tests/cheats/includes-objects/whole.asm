; The object file of the reference, as data.
	incbin "@ROOT@/build/objects/@FILE@.o"
