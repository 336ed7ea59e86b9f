# Programs in Go, whose own scheduler waits by epoll.
printf '{"a":[1,2,{"b":"text"}],"c":{"d":null,"e":true}}' >in.json
gron in.json
gron in.json | gron --ungron
gron --stream <(printf '{"x":1}\n{"x":2}\n')
gron missing.json; echo "status $?"
seq 1000 | fzf --filter 77 | head -5
printf '%s\n' alpha beta gamma alphabet | fzf --filter alp
printf '%s\n' one two | fzf --filter zzz; echo "status $?"
mkdir project && echo 'export NAME=value' >project/.envrc
export HOME=$PWD
direnv allow project/.envrc 2>&1; (cd project && direnv export bash 2>/dev/null | tr ';' '\n' | grep -o "NAME=.*")
direnv version
