"""The reference engine: the stages as linear programmes in PuLP."""
