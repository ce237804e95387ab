"""What a person reads: the page, the answer in a few lines, tables, exports.

Nothing is imported here: the terminal needs a few words of this room, and the page needs matplotlib.
"""
