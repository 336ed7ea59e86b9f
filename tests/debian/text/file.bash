# What file does: the same on Linux and on the kernel.
echo text >t; printf '#!/bin/sh\n' >s; printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\2\0\0\0' >p; : >empty; mkdir d; ln -s t l; mkfifo f
gzip -nk t; tar cf a.tar t; printf '{"a": 1}' >j
file t s p empty d l f t.gz j; file -b --mime-type t s p t.gz /bin/bash; file -L /bin/bash | cut -c1-40; file missing; cat s | file -
