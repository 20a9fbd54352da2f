"""Sources and sinks: the applications of an experiment, a process for each end of all flows in a host."""
