"""Linear algebra on arrays: spectra, distances, whitening, memory and threads."""
