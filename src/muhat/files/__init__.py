"""The commands for files: `muhat compare`, `muhat describe` and `muhat watch`."""
