"""From any model to any format: find the source, convert it, verify the result, write it."""
