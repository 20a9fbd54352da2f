"""The reference engine: the stages as linear programmes over edges, stated in PuLP or in HiGHS."""
