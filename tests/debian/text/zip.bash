# What zip does: the same on Linux and on the kernel.
mkdir d; seq 500 >d/a; echo b >d/b; TZ=UTC touch -d '2021-01-01 UTC' d/a d/b d; zip -Xrq z.zip d; unzip -l z.zip | tail -1; unzip -tq z.zip; mkdir o; unzip -q z.zip -d o; diff -r d o/d && echo same; unzip -p z.zip d/b; zip -d z.zip d/b; unzip -Z1 z.zip; zipinfo -t z.zip
