"""The report: one self-contained HTML file, and the index of a folder of them."""
