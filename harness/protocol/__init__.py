"""What a parent and its trials say to each other, and what each side must be able to do."""
