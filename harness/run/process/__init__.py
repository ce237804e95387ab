"""The processes of a trial: preloaded parents, clusters, interpreters, and what they leave behind."""
