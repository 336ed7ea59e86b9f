"""The crash laboratory: workloads on the file system's library, with a power cut at every request.

    .venv/bin/python -m labs.storage.crash --seed 2010 --states 60000

The program in tests/host/crash runs the operations on an image in memory, records what the library
writes and flushes, and judges what power cuts leave of it. Here are the images, the workloads, the
mutants of the library, and the words in which a violation is told.
"""
