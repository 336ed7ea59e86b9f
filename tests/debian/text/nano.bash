# What nano does: the same on Linux and on the kernel.
nano --version | head -1; nano --help | head -1 | cut -c1-5
