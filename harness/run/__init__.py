"""The parent: starts trials, gives them turns, watches them, and records how each ended."""
