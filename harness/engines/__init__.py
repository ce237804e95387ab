"""What trains: one folder an engine. Only here is a framework imported, and only when a trial runs."""
