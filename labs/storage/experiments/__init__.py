"""The family of experiments around the question of the lab (labs/storage/README.md).

`make lab X=3` runs one and writes its page to build/lab. A module here is one experiment and has
five parts: what it asks and expects (ABOUT), how it measures (`measure`), its plots, what it
says, and `checks`: what must hold of the figures, which the tests ask, too. ALL in family.py lists
them.
"""
