"""`doctor --prove`: an acceptance run: small cells of all that a machine should run, and what only hardware tells.

Each answer is a `harness.record.proof.Proof`: passed, failed with evidence, or unknown with the reason.
"""
