"""`muhat compare` and `muhat describe`."""
