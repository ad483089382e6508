"""Text of issues and comments in, statements of duplication out."""
