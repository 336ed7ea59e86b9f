# What patch does: the same on Linux and on the kernel.
seq 10 >a; cp a orig; sed 's/5/five/;8d' a >b; diff -u a b >p; patch <p; cmp a b && echo patched; patch -R <p; cmp a orig && echo back; patch --dry-run <p; sed -i 's/^4$/four/' a; patch <p; ls; echo garbage | patch 2>&1; echo $?; patch -p1 -d . <<'END'
--- x/new
+++ y/new
@@ -0,0 +1,2 @@
+hello
+world
END
cat new
