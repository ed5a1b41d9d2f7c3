"""Linear algebra on arrays: Gram matrices in tiles, spectra, distances, memory and threads."""
