# Constants of a C header, for NASM or for the linker: each line "#define NAME number" becomes one
# in FORM. A number may be a sum or a shift, as in (896u << 20); octal ones are left out.
BEGIN {
	number = "(0x[0-9a-f]+|[1-9][0-9]*|0)u?"
	value = "^[(]?" number "( (<<|[*]|[+]|-) " number ")?[)]?$"
}
$1 == "#define" && $2 ~ /^[A-Z][A-Za-z0-9_]*$/ {
	name = $2
	sub(/^#define[ \t]+[A-Za-z0-9_]+[ \t]+/, "")
	sub(/[ \t]*\/\*.*/, "")
	if ($0 ~ value) {
		gsub(/u/, "")
		printf FORM "\n", name, $0
	}
}
