"""What repeated decisions say about the method itself."""
