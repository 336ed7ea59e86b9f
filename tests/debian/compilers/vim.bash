# What vim does without a terminal, by its script: the same on Linux and on the kernel.
printf '%s\n' gamma alpha beta alpha >list
vim.tiny -u NONE -es -c '%sort u' -c '%s/a$/A/' -c 'normal Goadded' -c 'wq' list; echo $?; cat list
vim.tiny -u NONE -es -c 'g/e/d' -c '1t.' -c 'r !echo from a shell' -c 'w! copy' -c 'q!' list; echo $?; cat copy; cat list
vim.tiny -u NONE -es -c '%!tr a-z A-Z' -c 'x' copy; cat copy; vim.tiny --version | head -1 | cut -c1-20; ls -A
TERM=ansi vim.tiny -u NONE -s <(printf 'ihello\033:wq! typed\n') new </dev/null >/dev/null 2>&1; echo $?; cat typed
