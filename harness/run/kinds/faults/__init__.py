"""Faults as a benchmark: jobs that something is done to, and a supervisor that brings them back."""
