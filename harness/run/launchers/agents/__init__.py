"""Agents: a process on each host of a cluster, which starts trials there for a parent elsewhere.

An agent imports TensorFlow once a host, forks every process of its host from there, and passes on what they
and the parent say to each other: JSON lines over one TCP connection, none longer than is stated, nothing pickled.
`python -m harness worker` is an agent; launchers differ only in who starts them.
"""
