# What compress does: the same on Linux and on the kernel.
seq 30000 >f; sum=$(sha256sum <f)
for z in gzip bzip2 xz zstd; do $z -k f; done 2>/dev/null
for z in gzip bzip2 xz zstd; do case $z in gzip) e=gz ;; bzip2) e=bz2 ;; xz) e=xz ;; *) e=zst ;; esac; $z -t f.$e 2>&1 | sed 's/ *$//'; [ "$($z -dc f.$e | sha256sum)" = "$sum" ] && echo $z; done
gzip -nc -9 f | wc -c; gzip -l f.gz | tail -1 | awk '{ print $2 }' 2>/dev/null; xz -9 -c f | wc -c; bzip2 -c f | md5sum; zcat f.gz | tail -1; xzcat f.xz | head -1; echo bad | gzip -d; echo $?; xz -T2 -c f | xz -dc | tail -1; zstd -19 -c f 2>/dev/null | zstd -dc | wc -l; xz --robot -l f.xz | tail -1 | cut -f1-4; zgrep -c 77 f.gz
