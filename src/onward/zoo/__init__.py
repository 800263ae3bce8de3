"""Many models on many targets, each converted and proved, and what is kept of it."""
