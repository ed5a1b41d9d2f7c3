"""The paper's claims, and the rule that judges each from the rows of an experiment."""
