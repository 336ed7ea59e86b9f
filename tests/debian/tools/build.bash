# What builds programs: tcc, bison, flex, gperf, cmake with ninja and make.
cat >hello.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int cmp(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }
int main(int argc, char **argv) { qsort(argv + 1, argc - 1, sizeof(*argv), cmp); for (int i = 1; i < argc; i++) printf("%s %.3f\n", argv[i], i / 3.0); return argc; }
END
tcc -o hello hello.c && ./hello c a b; echo $?
tcc -run hello.c z y; echo $?
cat >calc.y <<'END'
%{
#include <stdio.h>
#include <ctype.h>
int yylex(void); void yyerror(const char *s) { puts(s); }
%}
%token NUMBER
%left '+' '-'
%left '*'
%%
lines: | lines e '\n' { printf("= %d\n", $2); };
e: NUMBER | e '+' e { $$ = $1 + $3; } | e '-' e { $$ = $1 - $3; } | e '*' e { $$ = $1 * $3; } | '(' e ')' { $$ = $2; };
%%
int yylex(void) { int c; while ((c = getchar()) == ' '); if (isdigit(c)) { yylval = 0; do yylval = yylval * 10 + c - '0'; while (isdigit(c = getchar())); ungetc(c, stdin); return NUMBER; } return c == EOF ? 0 : c; }
int main(void) { return yyparse(); }
END
bison -o calc.c calc.y && tcc -o calc calc.c && printf '1 + 2 * 3\n(4 - 1) * 5\n2 +\n' | ./calc
printf '%%option noyywrap noinput nounput\n%%%%\n[0-9]+ printf("<%%s>", yytext);\n[a-z]+ printf("[%%s]", yytext);\n%%%%\nint main(void) { return yylex(); }\n' >scan.l
flex -o scan.c scan.l && tcc -o scan scan.c && echo 'ab 12 c3' | ./scan
printf 'one\ntwo\nthree\n' | gperf | grep -c 'one\|two\|three'
printf 'rule upper\n  command = tr a-z A-Z <$in >$out\nbuild b: upper hello.c\nbuild c: upper calc.y\n' >build.ninja
ninja | sed 's/.*\r//'; ninja; head -1 b
parallel --version | head -1
parallel -k -j 2 echo {} x ::: 1 2 3 2>/dev/null
printf 'cmake_minimum_required(VERSION 3.5)\nproject(p NONE)\nfile(WRITE ${CMAKE_BINARY_DIR}/made "text")\nforeach(i RANGE 3)\nmath(EXPR s "${i} * ${i}")\nmessage(STATUS "square ${s}")\nendforeach()\nadd_custom_target(t ALL COMMAND echo built)\n' >CMakeLists.txt
cmake -G 'Unix Makefiles' -B m . 2>&1 | grep square; make -s -C m | grep built; cat m/made; echo
cmake -G Ninja -B n . >/dev/null && ninja -C n | grep -c built
