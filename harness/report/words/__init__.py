"""What figures say, in words: the same sentences on the terminal, in Markdown and on the page."""
