# What test_fcntl does: the same on Linux and on the kernel.
python3 -m unittest -v test.test_fcntl 2>&1 | sed 's/ in [0-9.]*s//'
