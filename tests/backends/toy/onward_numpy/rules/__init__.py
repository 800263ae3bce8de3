"""What NumPy says for each op; a family a file."""
