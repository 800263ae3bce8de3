"""The commands below `onward train`."""
