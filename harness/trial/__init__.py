"""Inside a trial's process: its life from its fork to its outcome, for any engine. No framework is imported here."""
