# What others does: the same on Linux and on the kernel.
hostname >/dev/null && echo hostname; seq 5 | column -c 20; printf 'a b\nccc d\n' | column -t; echo hello | hexdump -C; echo hello | xxd; xxd -p <<<abc; echo 616263 | xxd -r -p; echo; rev <<<abc; echo hi | hd; cal 2 2024 2>/dev/null | head -1; look 2>&1 | head -1 | wc -l
mkdir -p a/b; touch a/x a/b/y; tree a; tree -J a | head -3; command time -f '%x %C' true; command time -f '%e' false 2>&1 | head -1; ul <<<x; colrm 2 3 <<<abcd; col -b <<<ab; xxd -i <<<q; script --version | cut -c1-6 2>&1
