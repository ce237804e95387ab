"""Point estimates, intervals and verdicts: what every other room of the analysis is made of."""
