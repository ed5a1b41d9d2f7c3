"""Arrays in, arrays out: nothing here knows what a kernel mean is."""
