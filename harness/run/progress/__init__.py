"""What a run tells while it runs, and how long it still takes."""
