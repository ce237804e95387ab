"""Runs on a terminal."""
