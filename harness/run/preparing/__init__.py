"""`prepare`: what is asked, what of it is there, the processes that write the rest, what it took."""
