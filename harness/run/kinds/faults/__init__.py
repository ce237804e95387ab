"""Faults as a benchmark: jobs that something is done to, and a supervisor that brings them back."""

from harness.run.kinds.faults.run import FaultsRun

KIND = FaultsRun
