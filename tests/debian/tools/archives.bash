# Archives, copies and secrets: 7z, cpio, rsync, rcs, openssl, gpg, and small databases.
mkdir d; seq 3000 >d/numbers; echo text >d/t; ln -s t d/l; chmod 640 d/t
7z a -bd -mx=5 a.7z d >/dev/null; 7z l -ba a.7z | awk '{ print $4, $NF }' 2>/dev/null | sort
7z x -bd -oout a.7z >/dev/null && cmp d/numbers out/d/numbers && echo 7z
7z a -bd -tzip a.zip d >/dev/null && 7z t a.zip | grep -c Ok
find d | sort | cpio -o -H newc 2>/dev/null >a.cpio; cpio -itv <a.cpio 2>/dev/null | sed 's/ [A-Z][a-z][a-z] .*:[0-9]*//'
rsync -a d/ copy/ && rsync -ai --delete d/ copy/ | wc -l
echo more >>d/t; rm d/l; rsync -rlci --delete d/ copy/
rsync -a --checksum --stats d/ other/ | grep -i 'files transferred'
echo one >f; ci -q -u -t-none f; co -q -l f; echo two >>f; ci -q -u -mchange f; rlog f | grep -c '^revision'; rcsdiff -q -r1.1 -r1.2 f
echo secret | openssl enc -aes-256-cbc -pbkdf2 -pass pass:x -out e 2>/dev/null; openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:x -in e
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out key 2>/dev/null; openssl rsa -in key -check -noout
openssl dgst -sha256 -sign key -out sign f && openssl dgst -sha256 -verify <(openssl rsa -in key -pubout 2>/dev/null) -signature sign f
openssl req -x509 -new -key key -subj /CN=name -days 9 -out cert 2>/dev/null; openssl x509 -in cert -noout -subject; openssl verify -CAfile cert cert
echo text | openssl dgst -md5 -r
gpg --version | head -1; mkdir -m 700 g
echo message | gpg --homedir g --batch --quiet --print-md sha1
printf 'k\nv\n' >kv
mkdir db; printf 'VERSION=3\nformat=print\ntype=btree\nHEADER=END\n key1\n value1\n key2\n value2\nDATA=END\n' | mdb_load db; mdb_dump -p db | tail -5; mdb_stat db | sed -n '/Status/,$p'
printf 'store a 1\nstore b 2\nfetch a\ncount\nquit\n' | gdbmtool -q -n base 2>&1
