"""Engines, one folder each: frameworks that train (`harness.protocol.engine`)."""
