"""Column generation on HiGHS: a second exact method, which tests compare with."""
