# What tar does: the same on Linux and on the kernel.
mkdir -p src/sub; seq 1000 >src/a; head -c 100000 /dev/zero >src/sub/zero; ln -s a src/link; ln src/a src/hard; chmod 750 src/sub; touch -d '2020-02-02 UTC' src/a src/sub/zero src/sub src
tar --sort=name --owner=0 --group=0 --mtime='2020-01-01 UTC' -cf all.tar src; tar tvf all.tar | sed 's/ \+/ /g'; sha256sum all.tar
for z in gzip bzip2 xz zstd; do tar -c --$z -f all.$z src; mkdir out.$z; tar -x -f all.$z -C out.$z; diff -r src out.$z/src && echo $z ok; done
tar -xOf all.tar src/a | tail -1; tar -df all.tar; echo $?; tar -rf all.tar out.xz/src/a; tar --delete -f all.tar src/sub; tar tf all.tar
tar xf all.tar --strip-components=2 out.xz/src/a 2>&1; ls; tar cf - src | (mkdir copy; cd copy; tar xf -); stat -c '%a %s %Y' copy/src/a copy/src/sub/zero; tar xf missing.tar; echo $?
