"""More functions of pandas for the battery, in other styles."""
