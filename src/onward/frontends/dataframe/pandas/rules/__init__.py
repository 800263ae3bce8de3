"""What each method of pandas means, in columns of a graph."""
