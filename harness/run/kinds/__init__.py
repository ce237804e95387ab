"""Kinds of run, one a file: what each sets out to do."""
