"""Tables as plain columns and rows: the page, the terminal, Markdown and pandas show the same ones."""
