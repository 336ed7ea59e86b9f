# Turns `nm -n` of the kernel into C: functions' addresses and names, for kernel/report/symbols.h.
# W is a function that is OPTIONAL (kernel/lib/optional.h), and is there.
BEGIN {
	print "#include \"kernel/report/symbols.h\""
	print "const struct symbol symbols[] __attribute__((section(\".symbols\"))) = {"
}
$2 ~ /^[tTW]$/ && $3 !~ /^(text_start|text_end|kernel_start)$/ {
	printf "\t{ 0x%s, \"%s\" },\n", $1, $3
	count++
}
END {
	if (count == 0)
		print "\t{ 0, \"\" },"
	print "};"
	printf "const uint32_t symbol_count __attribute__((section(\".symbols\"))) = %d;\n", count
}
