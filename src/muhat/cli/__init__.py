"""Commands of the shell: compare, describe, watch, reproduce and prepare."""
